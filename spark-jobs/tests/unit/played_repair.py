"""A repair's environment, played: ZooKeeper's locks, a catalog of one ledger, its three bookies, and BookKeeper's client."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import cast

import pyarrow as pa
from kazoo.exceptions import ConnectionLoss, NodeExistsError
from played_bookie import PlayedBookie, ledger, packed

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper.codecs.bookkeeper.entry import master_key
from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata
from herdkeeper.protocol.audit_finding import Finding, FindingKind, Severity
from herdkeeper_jobs.audit.job import AuditResult, audit
from herdkeeper_jobs.audit.request import AuditRequest
from herdkeeper_jobs.audit.schema import HOLDINGS_ARROW, holdings_to_batch
from herdkeeper_jobs.bookkeeper.metadata import LedgerCatalog, VersionedMetadata
from herdkeeper_jobs.copies.check import check_copies
from herdkeeper_jobs.copies.plan import AuditBudget, AuditTask
from herdkeeper_jobs.repair.relocation import Relocation
from herdkeeper_jobs.repair.rewrite import RepairSettings
from herdkeeper_jobs.repair.run import RepairResult, repair

NAMES = ("b0", "b1", "b2")
LOCK = "/l/underreplication/locks/urL0000000001"
KEY = master_key(b"herddb")
SETTINGS = RepairSettings("herdkeeper-audit run-1", timeout_seconds=120.0, visible_seconds=120.0, poll_seconds=0.01)


@dataclass
class PlayedLocks:
    """ZooKeeper's locks, as one session's client sees them."""

    owners: dict[str, int] = field(default_factory=dict)
    """The owning session by path."""
    data: dict[str, bytes] = field(default_factory=dict)
    listeners: list[Callable[[str], None]] = field(default_factory=list)
    silent: bool = False
    on_sync: Callable[[], object] = lambda: None
    """Called when this session's member is to catch up with the leader."""
    client_id: tuple[int, bytes] | None = (7, b"")
    """None while it is not connected."""

    def create(self, path: str, data: bytes, ephemeral: bool, makepath: bool) -> None:
        if path in self.owners:
            raise NodeExistsError
        assert ephemeral
        self.owners[path], self.data[path] = 0 if self.client_id is None else self.client_id[0], data

    def sync(self, path: str) -> None:
        self.on_sync()

    def exists(self, path: str) -> SimpleNamespace | None:
        if self.silent:
            raise ConnectionLoss
        return SimpleNamespace(ephemeralOwner=self.owners[path]) if path in self.owners else None

    def delete(self, path: str) -> None:
        del self.owners[path]

    def add_listener(self, listener: Callable[[str], None]) -> None:
        self.listeners.append(listener)

    def remove_listener(self, listener: Callable[[str], None]) -> None:
        self.listeners.remove(listener)


@dataclass
class PlayedCatalog:
    """One ledger; successive reads return `versions`, and then the last one forever."""

    addresses: dict[str, BookieAddress]
    versions: list[VersionedMetadata | None]
    client: PlayedLocks = field(default_factory=PlayedLocks)
    root: str = "/l"
    instance_id: str = "instance-1"

    def bookie_addresses(self) -> dict[str, BookieAddress]:
        return self.addresses

    def writable_bookies(self) -> frozenset[str]:
        return frozenset(self.addresses)

    def ledger_ids(self) -> list[int]:
        return [1]

    def read_many(self, ledger_ids: Sequence[int]) -> Iterator[VersionedMetadata]:
        return (version for version in self.versions[:1] if version is not None)

    def read_ledger_metadata(self, ledger_id: int) -> VersionedMetadata | None:
        return self.versions.pop(0) if len(self.versions) > 1 else self.versions[0]


def of_herddb(last: int | None, bookies: tuple[str, ...] = NAMES, quorums: tuple[int, int] = (3, 2)) -> LedgerMetadata:
    return replace(ledger(1, last, bookies, quorums), password=b"herddb")


def bookies_with(last: int) -> list[PlayedBookie]:
    """Three bookies with all of ledger 1, which is closed and so fenced, under its master key."""
    entries = {(1, entry_id): packed(1, entry_id) for entry_id in range(last + 1)}
    return [PlayedBookie(dict(entries), master_keys={1: KEY}, fenced={1}) for _ in NAMES]


def catalog_of(addresses: dict[str, BookieAddress], *versions: LedgerMetadata) -> PlayedCatalog:
    return PlayedCatalog(addresses, [VersionedMetadata(metadata, 3 + index) for index, metadata in enumerate(versions)])


def findings_in(catalog: PlayedCatalog) -> tuple[Finding, ...]:
    return audited(catalog).findings


def audited(catalog: PlayedCatalog) -> AuditResult:
    def run(tasks: Sequence[AuditTask]) -> pa.Table:
        return pa.Table.from_batches([holdings_to_batch(check_copies(task)) for task in tasks], HOLDINGS_ARROW)

    return audit(cast("LedgerCatalog", catalog), AuditRequest(), AuditBudget(2, timeout_seconds=120.0), run)


def repaired(catalog: PlayedCatalog, findings: Sequence[Finding], settings: RepairSettings = SETTINGS) -> RepairResult:
    return repair(cast("LedgerCatalog", catalog), findings, settings)


def missing(first: int, last: int, bookie_id: str = "b1") -> Finding:
    return Finding(FindingKind.MISSING, Severity.UNDER_REPLICATED, 1, first, last, bookie_id, 0, 3, 2)


def writes(bookies: Sequence[PlayedBookie]) -> list[tuple[int, int, int]]:
    return [request for bookie in bookies for request in bookie.requests if request[0] >> 16 == 1]


@dataclass
class PlayedClient:
    """BookKeeper's client: copies the whole ledger to `targets`, and changes the metadata. `then` runs before it returns."""

    catalog: PlayedCatalog
    bookies: Mapping[str, PlayedBookie]
    then: Callable[[], None] = lambda: None
    moved: list[Relocation] = field(default_factory=list)
    held: list[dict[str, int]] = field(default_factory=list)

    def move(self, planned: Relocation, addresses: Mapping[str, BookieAddress], require_lock: Callable[[], None]) -> None:
        require_lock()
        self.moved.append(planned)
        self.held.append(dict(self.catalog.client.owners))
        chosen = dict(zip(planned.bookie_ids, planned.targets, strict=False))
        for target in chosen.values():
            self.bookies[target].entries |= {(1, number): packed(1, number) for number in range((planned.metadata.last_entry_id or 0) + 1)}
        now = self.catalog.versions[-1]
        assert now is not None
        segments = tuple(
            replace(segment, bookies=tuple(chosen.get(name, name) for name in segment.bookies)) for segment in now.metadata.segments
        )
        self.catalog.versions = [VersionedMetadata(replace(now.metadata, segments=segments), now.znode_version + 1)]
        self.then()
        require_lock()
