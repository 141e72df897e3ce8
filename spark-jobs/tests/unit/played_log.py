"""A tablespace's log on played bookies, and a data source that reads the metadata from a file instead of ZooKeeper.

Spark plans and reads in separate processes, which find the file by the option `played`.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kazoo.exceptions import NoNodeError
from played_bookie import CRC32C, PlayedBookie, ledger

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper.codecs.bookkeeper.entry import Entry
from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata
from herdkeeper.codecs.herddb.log_entry import LogEntry, encode_log_entry
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord, encode_tablespace
from herdkeeper_jobs.bookkeeper.metadata import VersionedMetadata
from herdkeeper_jobs.datasource import BookKeeperDataSource
from herdkeeper_jobs.datasource.options import SourceOptions
from herdkeeper_jobs.storage.stored_path import replace_file

TABLESPACE = TablespaceRecord("0ab", "demo", "n0", ("n0",), 1, 60000)
NAMES = ("b0", "b1", "b2")


@dataclass
class PlayedMetadata:
    """What ZooKeeper would return; `client` is itself, since only `get` is used."""

    addresses: dict[str, BookieAddress]
    ledgers: dict[int, LedgerMetadata] = field(default_factory=dict)
    active: list[int] = field(default_factory=list)
    first: int = -1
    dropped: int = 0
    instance_id: str = "cluster-1"
    root: str = "/bk/ledgers"
    told: dict[str, bytes] = field(default_factory=dict)

    @property
    def client(self) -> PlayedMetadata:
        return self

    def get(self, path: str) -> tuple[bytes, SimpleNamespace]:
        if path == "/db/herd/tableSpaces/demo":
            return encode_tablespace(TABLESPACE), SimpleNamespace(version=0)
        if path == "/db/herd/ledgers/0ab":
            times = [1] * len(self.active)
            document = {"activeLedgers": self.active, "ledgersTimestamps": times, "firstLedger": self.first, "zkVersion": 1}
            return json.dumps(document).encode(), SimpleNamespace(version=len(self.active) + 2 * self.dropped)
        if path in self.told:
            return self.told[path], SimpleNamespace(version=0)
        raise NoNodeError

    def set(self, path: str, data: bytes, version: int = -1) -> None:
        if path not in self.told:
            raise NoNodeError
        assert version in (-1, 0), "that of what `get` gives"
        self.told[path] = data

    def ensure_path(self, path: str) -> None:
        """Does nothing: all folders exist."""

    def create(self, path: str, data: bytes) -> None:
        self.told[path] = data

    def delete(self, path: str) -> None:
        if path not in self.told:
            raise NoNodeError
        del self.told[path]

    def read_many(self, ids: Sequence[int]) -> Iterator[VersionedMetadata]:
        return (VersionedMetadata(self.ledgers[ledger_id], 0) for ledger_id in ids if ledger_id in self.ledgers)

    def bookie_addresses(self) -> dict[str, BookieAddress]:
        return self.addresses


class PlayedLog:
    """A log written by a test; every entry goes to all bookies."""

    def __init__(self, bookies: Sequence[PlayedBookie], addresses: dict[str, BookieAddress], folder: Path) -> None:
        self.bookies = bookies
        self.metadata = PlayedMetadata(addresses)
        self.file = folder / "played"

    def write(self, ledger_id: int, entries: Sequence[LogEntry], *, closed: bool) -> None:
        """Fills a ledger with entries. In an open one the last entry is not confirmed yet: the LAC trails by one."""
        for bookie in self.bookies:
            for entry_id, entry in enumerate(entries):
                payload = encode_log_entry(entry)
                bookie.entries[ledger_id, entry_id] = CRC32C.pack(Entry(ledger_id, entry_id, entry_id - 1, len(payload), payload))
        self.metadata.ledgers[ledger_id] = ledger(ledger_id, len(entries) - 1 if closed else None, NAMES)
        self.metadata.active = sorted({*self.metadata.active, ledger_id})
        self.metadata.first = self.metadata.active[0] if self.metadata.first < 0 else self.metadata.first
        self.save()

    def drop(self, ledger_id: int) -> None:
        """Drops a ledger as HerdDB does by age."""
        self.metadata.active.remove(ledger_id)
        self.metadata.dropped += 1
        del self.metadata.ledgers[ledger_id]
        self.save()

    def save(self) -> None:
        replace_file(self.file, pickle.dumps(self.metadata))

    @property
    def options(self) -> dict[str, str]:
        """The options that every reader of the log needs."""
        uri = "zk+hierarchical://z0:2181;z1:2181/bk/ledgers"
        return {"metadataServiceUri": uri, "played": str(self.file), "timeoutSeconds": "5", "pollSeconds": "0.05"}


class PlayedSource(BookKeeperDataSource):
    """`format("played")`."""

    @classmethod
    def name(cls) -> str:
        return "played"

    def catalog(self, options: SourceOptions) -> object:  # type: ignore[override]
        return session(Path(self.options["played"]))


@contextmanager
def session(file: Path) -> Iterator[PlayedSession]:
    """A session with ZooKeeper; sessions are counted."""
    with _sessions_file(file).open("ab") as counted:
        counted.write(b".")
    opened = PlayedSession(file)
    yield opened
    opened.connected = False


def sessions(log: PlayedLog) -> int:
    """The number of sessions so far."""
    file = _sessions_file(log.file)
    return file.stat().st_size if file.exists() else 0


def _sessions_file(file: Path) -> Path:
    return file.with_name("sessions")


class PlayedSession:
    """Reads the file on each request."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.connected = True

    @property
    def client(self) -> PlayedSession:
        return self

    def __getattr__(self, name: str) -> Any:
        with found(self.file) as metadata:
            value = getattr(metadata, name)
        if not callable(value):
            return value

        def ask(*arguments: Any) -> Any:
            with found(self.file) as metadata:
                return getattr(metadata, name)(*arguments)

        return ask


@contextmanager
def found(file: Path) -> Iterator[PlayedMetadata]:
    """Gives the metadata in the file, and stores changes of it."""
    metadata: PlayedMetadata = pickle.loads(file.read_bytes())
    before = dict(metadata.told)
    yield metadata
    if metadata.told != before:
        replace_file(file, pickle.dumps(metadata))
