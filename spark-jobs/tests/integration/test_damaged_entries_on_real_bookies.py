"""A damaged entry on a real bookie with DbLedgerStorage: a rewrite in place does not last, the repair does.

Only real bookies show how their caches, their index, a restart and a compaction handle a damaged record in an entry log.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from kazoo.client import KazooClient
from synthetic_ledgers import PASSWORD, SyntheticLedger, write_entries, write_metadata
from waits import wait_until

from herdkeeper.codecs.bookkeeper.entry import DigestMismatchError, entry_digest, master_key
from herdkeeper.codecs.bookkeeper.layout import LedgerLayout, ledger_path
from herdkeeper.codecs.bookkeeper.metadata import DigestType
from herdkeeper.codecs.bookkeeper.protocol import ReadCode
from herdkeeper.protocol.audit_finding import Finding, FindingKind, RepairOutcome
from herdkeeper_e2e.server_processes import LEDGERS_ROOT, Servers, jars_of, servers
from herdkeeper_jobs.audit.job import audit
from herdkeeper_jobs.audit.request import AuditRequest
from herdkeeper_jobs.audit.schema import HOLDINGS_ARROW, holdings_to_batch
from herdkeeper_jobs.bookkeeper.connection import BookieConnection
from herdkeeper_jobs.bookkeeper.metadata import VersionedMetadata, open_catalog
from herdkeeper_jobs.copies.check import check_copies
from herdkeeper_jobs.copies.plan import AuditBudget
from herdkeeper_jobs.repair.bookkeeper_client import BookKeeperClient
from herdkeeper_jobs.repair.rewrite import RepairSettings
from herdkeeper_jobs.repair.run import repair

# The first test may have to build the jars of the images.
pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]
TOOL = Path(__file__).parents[3] / "e2e/faults/DropEntries.java"
DIGEST = entry_digest(DigestType.CRC32C, PASSWORD)
HURT, SPARE = "bookie-0", "bookie-3"
OLD_LOG = f"{HURT}/ledgers/current/0.log"
OTHERS, LEDGER, ENTRIES, DAMAGED = 1, 2, 300, 150
"""A ledger that shares the entry log, and the ledger with the damaged entry."""
READ_AHEAD = 100
"""The default of dbStorage_readAheadCacheBatchSize."""
PATIENCE_SECONDS = 90
HASTY = {
    "flushInterval": 1000,
    "gcWaitTime": 1000,
    "minorCompactionThreshold": 0.5,
    "minorCompactionInterval": 2,
    "majorCompactionThreshold": 0.95,
    "majorCompactionInterval": 4,
    "gcOverreplicatedLedgerWaitTime": 5000,
}
"""Seconds instead of hours and days."""


@dataclass(frozen=True)
class Stage:
    """Bookies, one with a damaged entry in a finished entry log."""

    servers: Servers
    client: KazooClient

    def read(self, *entry_ids: int, bookie: str = HURT) -> list[str]:
        """The bookie's answers, read one by one in this order: whole, damaged, or a code."""
        found = []
        with open_catalog(self.servers.zookeeper, LEDGERS_ROOT) as catalog:
            address = catalog.bookie_addresses()[bookie]
        with BookieConnection(bookie, address, 15.0) as connection:
            for entry_id in entry_ids:
                answer = next(connection.read_entries(LEDGER, [entry_id]))
                try:
                    found.append(answer.code.name if answer.code is not ReadCode.OK else "whole")
                    if answer.code is ReadCode.OK:
                        DIGEST.verify_as(LEDGER, entry_id, answer.data)
                except DigestMismatchError:
                    found[-1] = "damaged"
        return found

    def write_in_place(self, *entry_ids: int) -> None:
        """Writes as recovery would, with another bookie's bytes."""
        with open_catalog(self.servers.zookeeper, LEDGERS_ROOT) as catalog:
            addresses = catalog.bookie_addresses()
        with (
            BookieConnection("bookie-1", addresses["bookie-1"], 15.0) as source,
            BookieConnection(HURT, addresses[HURT], 15.0) as target,
        ):
            for entry_id in entry_ids:
                data = next(source.read_entries(LEDGER, [entry_id])).data
                assert target.recovery_add((LEDGER, entry_id), master_key(PASSWORD), data) is ReadCode.OK

    def restart(self, *bookies: str) -> None:
        for bookie in bookies or (HURT,):
            self.servers.restart_bookie(bookie)

    def compact_the_old_log(self) -> None:
        """Deletes the other ledger, so that half of the entry log is garbage. A repair that moved a copy away may have caused that
        already."""
        old = self.servers.folder / OLD_LOG
        self.client.delete(LEDGERS_ROOT + ledger_path(LedgerLayout.HIERARCHICAL, OTHERS))
        wait_until("the bookie has compacted its first entry log", lambda: not old.exists(), PATIENCE_SECONDS)

    def found(self) -> tuple[Finding, ...]:
        """The findings of a deep audit."""

        def run(tasks: object) -> pa.Table:
            return pa.Table.from_batches([holdings_to_batch(check_copies(task)) for task in tasks], HOLDINGS_ARROW)  # type: ignore[attr-defined]

        with open_catalog(self.servers.zookeeper, LEDGERS_ROOT) as catalog:
            return audit(catalog, AuditRequest(), AuditBudget(2), run).findings

    def repaired(self, found: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """Repairs; returns the findings with their outcomes."""
        racks = dict.fromkeys(self.servers.processes, "-/here")
        mover = BookKeeperClient(jars_of("bookkeeper"), self.servers.zookeeper, LEDGERS_ROOT, racks)
        with open_catalog(self.servers.zookeeper, LEDGERS_ROOT) as catalog:
            return repair(catalog, found, RepairSettings("a test", move=mover.move)).findings

    def ensemble(self) -> tuple[str, ...]:
        with open_catalog(self.servers.zookeeper, LEDGERS_ROOT) as catalog:
            read = catalog.read_ledger_metadata(LEDGER)
        assert isinstance(read, VersionedMetadata)
        return read.metadata.segments[0].bookies


@contextmanager
def staged(more: Mapping[str, object]) -> Iterator[Stage]:
    """`more` are further settings of the bookies."""

    def damage(folder: Path) -> None:
        where = (str(folder / "ledgers"), str(folder / "journal"))
        command = ["java", "-cp", f"{jars_of('bookkeeper')}/*", str(TOOL), *where, str(LEDGER), str(DAMAGED), str(DAMAGED), "damage"]
        subprocess.run(command, check=True)

    with servers() as running:
        running.start_zookeeper()
        names = running.start_bookies(4, {**HASTY, **more})
        with running.client() as client:
            ledgers = [SyntheticLedger(OTHERS, tuple(names[:3]), 1000, 200), SyntheticLedger(LEDGER, tuple(names[:3]), ENTRIES, 200)]
            write_metadata(client, LEDGERS_ROOT, ledgers)
            with open_catalog(running.zookeeper, LEDGERS_ROOT) as catalog:
                write_entries(ledgers, catalog.bookie_addresses())
            running.restart_bookie(HURT, damage)
            assert (running.folder / OLD_LOG).exists()
            yield Stage(running, client)


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged({}) as made:
        yield made


def test_a_rewrite_of_a_damaged_entry_in_place_does_not_last(stage: Stage) -> None:
    """Three ways back to the old record. If this ever fails, a damaged entry may be repaired in place."""
    before = DAMAGED - 1
    assert stage.read(DAMAGED) == ["damaged"]
    stage.write_in_place(DAMAGED)
    # 1. a read before the flush of the write cache, a second at most here, finds it whole; the read cache still has the old record
    wait_until("the entry is damaged again once it was flushed", lambda: stage.read(DAMAGED) == ["damaged"], PATIENCE_SECONDS)
    # 2. after a restart the index has the new record, but reading ahead from a neighbour finds the old one
    stage.restart()
    assert stage.read(DAMAGED) == ["whole"]
    stage.restart()
    assert stage.read(before, DAMAGED) == ["whole", "damaged"]
    # from exactly as far as it reads ahead
    stage.restart()
    assert stage.read(DAMAGED - READ_AHEAD, DAMAGED) == ["whole", "damaged"]
    stage.restart()
    assert stage.read(DAMAGED - READ_AHEAD - 1, DAMAGED) == ["whole", "whole"]
    # 3. with all entries before it rewritten as well, no read finds it any more...
    stage.write_in_place(*range(DAMAGED + 1))
    stage.restart()
    assert set(stage.read(*range(ENTRIES))) == {"whole"}
    # ...until a compaction of the entry log makes the old records current
    stage.compact_the_old_log()
    stage.restart()
    assert stage.read(DAMAGED) == ["damaged"]


def test_a_compaction_of_the_images_storage_brings_no_old_record_back() -> None:
    with staged({"ledgerStorageClass": "io.herdkeeper.bookie.GuardedLedgerStorage"}) as stage:
        stage.write_in_place(*range(DAMAGED + 1))
        stage.restart()
        assert set(stage.read(*range(ENTRIES))) == {"whole"}
        stage.compact_the_old_log()
        stage.restart()
        assert set(stage.read(*range(ENTRIES))) == {"whole"}


def test_a_repaired_entry_is_whole_after_a_flush_after_restarts_and_after_a_compaction(stage: Stage) -> None:
    found = stage.found()
    assert [(each.kind, each.bookie_id, each.first_entry_id, each.last_entry_id) for each in found] == [
        (FindingKind.CORRUPT_DIGEST, HURT, DAMAGED, DAMAGED)
    ]
    (finding,) = stage.repaired(found)
    assert (finding.repair, finding.repair_detail) == (
        RepairOutcome.REPAIRED,
        f"1 damaged entries: {ENTRIES} entries of the ledger on {HURT} were copied to {SPARE}",
    )
    assert stage.ensemble() == (SPARE, "bookie-1", "bookie-2")
    assert stage.found() == ()
    stage.restart(HURT, SPARE)
    assert stage.found() == ()
    stage.compact_the_old_log()
    stage.restart(HURT, SPARE)
    assert stage.found() == ()
    assert set(stage.read(*range(ENTRIES), bookie=SPARE)) == {"whole"}
    # the bookie deletes what was left behind by itself
    wait_until("the bookie has deleted what no metadata names", lambda: stage.read(DAMAGED) == ["NO_LEDGER"], PATIENCE_SECONDS)


def test_a_bookie_serves_on_though_the_length_of_an_entry_is_damaged() -> None:
    with servers() as running:
        running.start_zookeeper()
        names = running.start_bookies(1, {"ledgerStorageClass": "io.herdkeeper.bookie.GuardedLedgerStorage"})
        with running.client() as client:
            ledgers = [SyntheticLedger(LEDGER, tuple(names), ENTRIES, 200)]
            write_metadata(client, LEDGERS_ROOT, ledgers)
            with open_catalog(running.zookeeper, LEDGERS_ROOT) as catalog:
                write_entries(ledgers, catalog.bookie_addresses())

            def damage(folder: Path) -> None:
                log = folder / "ledgers/current/0.log"
                content = bytearray(log.read_bytes())
                content[content.index(struct.pack(">qq", LEDGER, DAMAGED)) - 4] = 0x70
                log.write_bytes(content)
                (mark,) = (folder / "journal/current").glob("*.txn")
                end = struct.pack(">qq", int(mark.stem, 16), mark.stat().st_size)
                (folder / "ledgers/current/lastMark").write_bytes(end)

            running.restart_bookie(HURT, damage)
            assert Stage(running, client).read(DAMAGED, DAMAGED + 1, DAMAGED - 1, DAMAGED) == ["IO_ERROR", "whole", "whole", "IO_ERROR"]


def test_autorecovery_copies_the_whole_entry_where_another_bookie_has_a_damaged_one(stage: Stage) -> None:
    stage.servers.start_autorecovery()
    stage.servers.kill("bookie-1")
    wait_until("the lost bookie's copies are elsewhere", lambda: stage.ensemble() == (HURT, SPARE, "bookie-2"), PATIENCE_SECONDS)
    assert stage.read(DAMAGED) == ["damaged"]
    assert set(stage.read(*range(ENTRIES), bookie=SPARE)) == {"whole"}
