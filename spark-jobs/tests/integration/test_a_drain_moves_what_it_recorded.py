"""A drain's move on real bookies: the recorded ledgers, no other one, and none that is being written. The read-back then proves it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from kazoo.client import KazooClient
from synthetic_ledgers import PASSWORD, SyntheticLedger, write_entries

from herdkeeper.codecs.bookkeeper.layout import LedgerLayout, ledger_path
from herdkeeper.codecs.bookkeeper.share import read_record
from herdkeeper.codecs.bookkeeper.underreplication import lock_path
from herdkeeper_e2e.server_processes import LEDGERS_ROOT, Servers, servers
from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_jobs.audit.read_back import ReadBack, read_back
from herdkeeper_jobs.bookkeeper.metadata import VersionedMetadata, open_catalog
from herdkeeper_jobs.copies.plan import AuditBudget

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
LEAVES, KEPT, SPARE = (f"bookie-{number}" for number in range(3))
ENTRIES = 20
CLOSED, NOT_RECORDED, WRITTEN, TURNED, CAME_BACK, DELETED, WITHOUT_ENTRIES = range(1, 8)
BOTH, MOVED = (LEAVES, KEPT), (SPARE, KEPT)

Segments = dict[int, tuple[str, str]]
"""The bookies of each segment, by its first entry."""


@dataclass(frozen=True)
class Stage:
    """Three bookies; two copies of each entry."""

    servers: Servers
    client: KazooClient

    def put(self, ledger_id: int, segments: Segments, closed: bool) -> None:
        """A ledger as a writer leaves it: its metadata (format version 2), and its entries on all of these bookies."""
        text = (
            f"quorumSize: 2\nensembleSize: 2\nackQuorumSize: 2\nlength: {ENTRIES * 100 if closed else 0}\n"
            f"lastEntryId: {ENTRIES - 1 if closed else -1}\nstate: {'CLOSED' if closed else 'OPEN'}\n"
            + "".join(
                "segment {\n" + "".join(f'  ensembleMember: "{bookie}"\n' for bookie in bookies) + f"  firstEntryId: {first}\n}}\n"
                for first, bookies in segments.items()
            )
            + f'digestType: CRC32C\npassword: "{PASSWORD.decode()}"\n'
        )
        path = LEDGERS_ROOT + ledger_path(LedgerLayout.HIERARCHICAL, ledger_id)
        self.client.create(path, f"BookieMetadataFormatVersion\t2\n{text}".encode(), makepath=True)
        if ledger_id != WITHOUT_ENTRIES:
            holders = tuple(sorted({bookie for bookies in segments.values() for bookie in bookies}))
            with open_catalog(self.servers.zookeeper, LEDGERS_ROOT) as catalog:
                write_entries([SyntheticLedger(ledger_id, holders, ENTRIES, 100)], catalog.bookie_addresses())

    def found(self, ledger_id: int) -> tuple[Segments, bool]:
        """A ledger's segments, and whether it is closed."""
        with open_catalog(self.servers.zookeeper, LEDGERS_ROOT) as catalog:
            read = catalog.read_ledger_metadata(ledger_id)
        assert isinstance(read, VersionedMetadata)
        return {segment.first_entry_id: segment.bookies for segment in read.metadata.segments}, read.metadata.closed  # type: ignore[misc]

    def read_back(self, record: str) -> ReadBack:
        """What the second container of the Job tells."""
        with open_catalog(self.servers.zookeeper, LEDGERS_ROOT) as catalog:
            return read_back(catalog, LEAVES, read_record(record), AuditBudget(2))


@pytest.fixture
def stage() -> Iterator[Stage]:
    with servers() as running:
        running.start_zookeeper()
        running.start_bookies(3)
        with running.client() as client:
            yield Stage(running, client)


def test_a_drain_moves_the_recorded_ledgers_and_leaves_those_that_are_written_or_came_since(stage: Stage) -> None:
    stage.put(CLOSED, {0: BOTH}, closed=True)
    stage.put(NOT_RECORDED, {0: BOTH}, closed=True)
    stage.put(WRITTEN, {0: BOTH}, closed=False)
    stage.put(TURNED, {0: BOTH, 10: MOVED}, closed=False)
    stage.put(CAME_BACK, {0: BOTH, 10: BOTH}, closed=True)
    record = f"{CLOSED} 0:0\n{WRITTEN} 0:0\n{TURNED} 0:0\n{CAME_BACK} 0:0\n{DELETED} 0:0\n"

    code, said = stage.servers.move_recorded(LEAVES, record)

    assert code == 0, said
    assert {ledger: stage.found(ledger) for ledger in (CLOSED, NOT_RECORDED, WRITTEN, TURNED, CAME_BACK)} == {
        CLOSED: ({0: MOVED}, True),
        NOT_RECORDED: ({0: BOTH}, True),
        WRITTEN: ({0: BOTH}, False),
        TURNED: ({0: MOVED, 10: MOVED}, False),
        CAME_BACK: ({0: BOTH, 10: BOTH}, True),
    }
    assert stage.read_back(record).trouble == ()


def test_a_ledger_that_can_not_be_moved_is_named_and_holds_up_no_other(stage: Stage) -> None:
    stage.put(CLOSED, {0: BOTH}, closed=True)
    stage.put(WITHOUT_ENTRIES, {0: BOTH}, closed=True)
    record = f"{WITHOUT_ENTRIES} 0:0\n{CLOSED} 0:0\n"

    code, said = stage.servers.move_recorded(LEAVES, record)

    assert code == 1
    assert f"ledger {WITHOUT_ENTRIES} could not be moved: " in said.splitlines()[-1]
    assert stage.found(CLOSED) == ({0: MOVED}, True)
    assert any(f"ledger {WITHOUT_ENTRIES} still names {LEAVES}" in trouble for trouble in stage.read_back(record).trouble)


def test_a_ledger_that_autorecovery_copies_is_moved_once_its_lock_is_free(stage: Stage) -> None:
    """Both may choose the same bookie: BookKeeper checks only the place that it replaces."""
    stage.put(CLOSED, {0: BOTH}, closed=True)
    stage.put(NOT_RECORDED, {0: BOTH}, closed=True)
    record = f"{CLOSED} 0:0\n{NOT_RECORDED} 0:0\n"
    lock = lock_path(LEDGERS_ROOT, CLOSED)
    stage.client.create(lock, ephemeral=True, makepath=True)

    with ThreadPoolExecutor() as threads:
        job = threads.submit(stage.servers.move_recorded, LEAVES, record)
        wait_for("the other ledger's move", lambda: stage.found(NOT_RECORDED) == ({0: MOVED}, True) or Pending("it stays"), Limit(120))
        assert stage.found(CLOSED) == ({0: BOTH}, True)
        stage.client.delete(lock)
        code, said = job.result()

    assert code == 0, said
    assert stage.found(CLOSED) == ({0: MOVED}, True)
    assert stage.client.get_children(lock.rpartition("/")[0]) == []


def test_two_jobs_of_a_drain_at_once_move_each_ledger_once(stage: Stage) -> None:
    """The pod of the first may live on, on a machine that the cluster took for lost, or its Job was deleted and made again."""
    ledgers = range(100, 132)
    for ledger in ledgers:
        stage.put(ledger, {0: BOTH}, closed=True)
    record = "".join(f"{ledger} 0:0\n" for ledger in ledgers)

    with ThreadPoolExecutor() as threads:
        first = threads.submit(stage.servers.move_recorded, LEAVES, record)
        wait_for("the first Job", lambda: "move-0" in stage.servers.processes or Pending("it has not started"), Limit(60))
        jobs = [first.result, threads.submit(stage.servers.move_recorded, LEAVES, record).result]
        ended = [job() for job in jobs]

    assert [code for code, _ in ended] == [0, 0], ended
    assert {ledger: stage.found(ledger) for ledger in ledgers} == dict.fromkeys(ledgers, ({0: MOVED}, True))
    said = [line for _, output in ended for line in output.splitlines()]
    assert sorted(said.count(f"ledger {ledger}: MOVE") for ledger in ledgers) == [1] * len(ledgers)
    assert stage.read_back(record).trouble == ()
    assert stage.client.get_children(lock_path(LEDGERS_ROOT, ledgers[0]).rpartition("/")[0]) == []
