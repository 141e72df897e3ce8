"""Reads a BookKeeper cluster's metadata from ZooKeeper: ledgers, bookies and the instance id. Read-only.

The number of requests in flight is bounded: a flood of reads expires the session (apache/bookkeeper#2802).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoAuthError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import KazooRetry

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress, decode_bookie_address
from herdkeeper.codecs.bookkeeper.layout import LedgerLayout, decode_layout, inner_levels, ledger_id_of, ledger_path
from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata, decode_ledger_metadata
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.tls.kazoo_handler import own_handler

_REQUESTS_IN_FLIGHT = 64
_SESSION_SECONDS = 20.0
_CONNECT_SECONDS = 30.0
_ANSWER_SECONDS = 30.0


class MetadataUnavailableError(RuntimeError):
    """ZooKeeper did not answer; a later retry can help."""


class ClusterNotFoundError(ValueError):
    """The given root has no BookKeeper cluster, or one that this program can't read."""


class MetadataForbiddenError(ClusterNotFoundError):
    """ZooKeeper does not let the holder of this certificate read a znode; no retry helps."""


@dataclass(frozen=True, slots=True)
class VersionedMetadata:
    """A ledger's metadata with its znode version, which grows with each change."""

    metadata: LedgerMetadata
    znode_version: int
    created_millis: int | None = None
    """Creation time by ZooKeeper's clock; None if not read."""


@dataclass(frozen=True, slots=True)
class UndecodableMetadata:
    """A ledger whose znode does not hold metadata."""

    ledger_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class LedgerCatalog:
    """The ledgers and bookies below one root. Made by `open_catalog`. All methods read afresh and raise MetadataUnavailableError."""

    client: KazooClient
    root: str
    layout: LedgerLayout
    instance_id: str

    def ledger_ids(self) -> list[int]:
        """Returns all ledger ids, ascending. Ledgers created or deleted meanwhile may be missing."""
        found: list[int] = []
        level = [f"/{name}" for name in self.names_below(self.root) if inner_levels(self.layout, name) is not None]
        while level:
            found.extend(ledger_id for path in level if (ledger_id := ledger_id_of(path)) is not None)
            inner = [path for path in level if ledger_id_of(path) is None]
            below = self._children([self.root + path for path in inner])
            level = [f"{path}/{name}" for path, names in zip(inner, below, strict=True) for name in names]
        return sorted(set(found))

    def read_ledger_metadata(self, ledger_id: int) -> VersionedMetadata | UndecodableMetadata | None:
        """Returns the metadata of one ledger; None if it doesn't exist."""
        return next(self.read_many([ledger_id]), None)

    def read_many(self, ledger_ids: Iterable[int]) -> Iterator[VersionedMetadata | UndecodableMetadata]:
        """Yields the metadata of these ledgers in order, read on demand; missing ledgers are left out."""
        ids = list(ledger_ids)
        paths = [self.root + ledger_path(self.layout, ledger_id) for ledger_id in ids]
        for ledger_id, answer in zip(ids, self._ask(self.client.get_async, paths), strict=True):
            if answer is not None:
                data, stat = answer
                yield _decode(ledger_id, data, (stat.version, stat.ctime))

    def bookie_addresses(self) -> dict[str, BookieAddress]:
        """Returns the address of each registered bookie, also of read-only ones. Bookies that are down are missing."""
        addresses: dict[str, BookieAddress] = {}
        for parent in ("/available/readonly", "/available"):
            names = [name for name in self.names_below(self.root + parent) if name != "readonly"]
            for name, data in zip(names, self.contents([f"{self.root}{parent}/{name}" for name in names]), strict=True):
                if data is not None:
                    addresses[name] = decode_bookie_address(name, data)
        return addresses

    def writable_bookies(self) -> frozenset[str]:
        """Returns the ids of the registered bookies that take entries."""
        return frozenset(name for name in self.names_below(f"{self.root}/available") if name != "readonly")

    def names_below(self, path: str) -> list[str]:
        """Lists the znodes below a path, which may be outside of the cluster's root, ascending; empty without that path."""
        return self._children([path])[0]

    def contents(self, paths: list[str]) -> list[bytes | None]:
        """Reads znodes, which may be outside of the cluster's root; None for a missing one."""
        return [None if answer is None else answer[0] for answer in self._ask(self.client.get_async, paths)]

    def _children(self, paths: list[str]) -> list[list[str]]:
        return [sorted(answer or []) for answer in self._ask(self.client.get_children_async, paths)]

    def _ask(self, request: Callable[[str], Any], paths: list[str]) -> Iterator[Any]:
        """Yields answers in the order of the paths, None for a missing znode. Bounds the requests in flight."""
        waiting: deque[tuple[str, Any]] = deque()
        for path in paths:
            waiting.append((path, request(path)))
            if len(waiting) >= _REQUESTS_IN_FLIGHT:
                yield _answer(*waiting.popleft())
        while waiting:
            yield _answer(*waiting.popleft())


@contextmanager
def open_catalog(hosts: str, root: str) -> Iterator[LedgerCatalog]:
    """Connects to ZooKeeper (`h1:2181,h2:2181`) and identifies the cluster under `root`.

    Raises MetadataUnavailableError if no member answers, ClusterNotFoundError without a cluster under `root`.
    """
    retry = KazooRetry(max_tries=-1, max_delay=2)
    client = KazooClient(hosts=hosts, timeout=_SESSION_SECONDS, connection_retry=retry, handler=own_handler())
    try:
        client.start(timeout=_CONNECT_SECONDS)
    except (KazooException, KazooTimeoutError) as error:
        client.close()
        raise MetadataUnavailableError(f"ZooKeeper at {hosts} did not answer in {_CONNECT_SECONDS:.0f} s: {error}") from error
    try:
        yield identify(client, root.rstrip("/"))
    finally:
        client.stop()
        client.close()


def identify(client: KazooClient, root: str) -> LedgerCatalog:
    """Identifies the cluster under `root`, over the caller's connection. Raises ClusterNotFoundError, MetadataUnavailableError."""
    layout, instance = (_answer(path, client.get_async(path)) for path in (f"{root}/LAYOUT", f"{root}/INSTANCEID"))
    if layout is None or instance is None:
        raise ClusterNotFoundError(
            f"ledgers root {root!r}: no LAYOUT and INSTANCEID there; give the path at which the cluster was initialised"
        )
    try:
        return LedgerCatalog(client, root, decode_layout(layout[0]), instance[0].decode("ascii"))
    except (MalformedDataError, UnicodeDecodeError) as error:
        raise ClusterNotFoundError(f"ledgers root {root!r}: {error}") from error


def _answer(path: str, request: Any) -> Any:
    try:
        return request.get(timeout=_ANSWER_SECONDS)
    except NoNodeError:
        return None
    except NoAuthError as error:
        raise MetadataForbiddenError(f"this job's certificate does not give the right to read {path} in ZooKeeper") from error
    except (KazooException, KazooTimeoutError) as error:
        raise MetadataUnavailableError(f"ZooKeeper did not answer a read: {type(error).__name__} {error}") from error


def _decode(ledger_id: int, data: bytes, version_and_time: tuple[int, int]) -> VersionedMetadata | UndecodableMetadata:
    try:
        return VersionedMetadata(decode_ledger_metadata(ledger_id, data), *version_and_time)
    except MalformedDataError as error:
        return UndecodableMetadata(ledger_id, str(error))
