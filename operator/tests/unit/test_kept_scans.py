"""What ledgers looked like a moment ago is enough to wait by, and nothing is done by it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from situations import quickstart, with_status
from test_plan_bookkeeper import HEALTHY, JOBS_IMAGE
from test_plan_drain_pause import SCAN, seen, told

from herdkeeper.bookkeeper.observe.ledgers import LedgerScans, ScanRequest
from herdkeeper.bookkeeper.plan.bookies import plan_bookkeeper
from herdkeeper.bookkeeper.state.bookies import BeingScanned, LedgerScan
from herdkeeper.clients import paged_reads
from herdkeeper.clients.paged_reads import FORGOTTEN_SECONDS, LONGEST_USE_SECONDS, PagedReads
from herdkeeper.clients.zookeeper import Znodes
from herdkeeper.codecs.bookkeeper.placement import PlacementRule
from herdkeeper.shared.unknown import Unknown

RULE = PlacementRule({}, 2, 1)
DATABASE = quickstart("HerdDBCluster")
ASKED = ScanRequest(("bk-bookie-3-dddddd",), (DATABASE,), RULE, "bookie 3 is read-only")


class Clock:
    seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


class Reads(PagedReads):
    """Reads that a test ends, by a clock that a test sets. `begun`: how many there were."""

    def __init__(self):
        self.clock, self.begun = Clock(), 0
        super().__init__(self.clock, wait_seconds=0.0)

    def _have_it_read(self):
        self.begun += 1

    def end(self, answer, seconds):
        """What is being read returns this after so long."""
        self.clock.seconds += seconds
        running = self._next()
        assert running is not None
        running.read = SimpleNamespace(read_page=lambda: answer)
        self._read(running)


def scanned(answer, seconds):
    """The first scan has ended."""
    reads = Reads()
    scans = LedgerScans(reads, "zk/ledgers", "/ledgers", None)
    assert isinstance(scans.current(ASKED), BeingScanned)
    reads.end(answer, seconds)
    return scans


@pytest.mark.parametrize(
    ("situation", "seconds", "asked", "later", "age"),
    [
        ("a moment later", 2.0, ASKED, 39.0, 39.0),
        ("twenty times as long as reading took", 2.0, ASKED, 40.0, None),
        ("a minute at most", 30.0, ASKED, 60.0, None),
        ("reading took no time", 0.0, ASKED, 0.001, None),
        ("another bookie leaves as well", 2.0, replace(ASKED, bookies=("another",)), 1.0, None),
        ("another bookie is lost", 2.0, replace(ASKED, lost=frozenset({"another"})), 1.0, None),
        ("the rule has changed", 2.0, replace(ASKED, rule=replace(RULE, minimum=3)), 1.0, None),
        ("something else was seen", 2.0, replace(ASKED, seen="bookie 3 is writable"), 1.0, 1.0),
    ],
)
def test_a_scan_is_kept_for_a_while_that_depends_on_how_long_it_took(situation, seconds, asked, later, age):
    scans = scanned(SCAN, seconds)
    scans.reads.clock.seconds += later
    found = scans.recent(asked, needed=False)
    assert (None if found is None else (found.age_seconds, found.to_act_by)) == (None if age is None else (age, False)), situation
    assert scans.reads.last("zk/others") is None


def test_that_a_scan_failed_is_kept_as_long():
    scans = scanned(Unknown("one ledger is not readable"), 2.0)
    assert scans.recent(ASKED, needed=True) == Unknown("one ledger is not readable")
    assert scans.reads.begun == 1


def test_the_databases_of_a_kept_scan_are_those_of_now():
    scans, moved_on = scanned(SCAN, 2.0), with_status(DATABASE, nodes=3)
    found = scans.recent(replace(ASKED, databases=(moved_on,)), needed=False)
    assert isinstance(found, LedgerScan)
    assert found.databases == (moved_on,)


def test_a_drain_waits_by_a_kept_scan_and_does_nothing_by_it():
    old = replace(SCAN, seconds=2.0, age_seconds=10.0, to_act_by=False)
    waiting = plan_bookkeeper(told(seen(scan=old), before=seen()), JOBS_IMAGE)
    assert (waiting.actions, waiting.needs_ledgers) == ((), False)
    assert waiting.requeue_after_seconds == pytest.approx(30.0), "its age counts"
    acting = plan_bookkeeper(seen(metadata=HEALTHY, scan=old), JOBS_IMAGE)
    assert acting.actions
    assert acting.needs_ledgers
    assert not plan_bookkeeper(seen(metadata=HEALTHY), JOBS_IMAGE).needs_ledgers


def test_a_scan_that_was_asked_for_before_is_acted_by_once_it_ended_if_what_was_seen_before_it_still_holds():
    scans = scanned(SCAN, 20.0)
    found = scans.current(ASKED)
    assert isinstance(found, LedgerScan)
    assert (found.seconds, found.to_act_by) == (20.0, True)
    assert scans.reads.begun == 1


@pytest.mark.parametrize(
    ("situation", "asked", "later"),
    [
        ("the bookie was writable meanwhile", replace(ASKED, seen="bookie 3 is writable"), 0.0),
        ("another bookie leaves as well", replace(ASKED, bookies=("another",)), 0.0),
        ("it is old", ASKED, LONGEST_USE_SECONDS + 1),
    ],
)
def test_another_scan_is_made_to_act_by(situation, asked, later):
    scans = scanned(SCAN, 20.0)
    scans.reads.clock.seconds += later
    assert isinstance(scans.current(asked), BeingScanned), situation
    assert scans.reads.begun == 2


def test_nothing_is_done_twice_by_one_scan():
    scans = scanned(SCAN, 20.0)
    assert isinstance(scans.current(ASKED), LedgerScan)
    assert isinstance(scans.current(ASKED), BeingScanned)
    assert isinstance(scans.recent(ASKED, needed=False), LedgerScan), "it is still good enough to wait by"


def test_while_another_scan_runs_a_drain_waits_by_the_last_one():
    scans = scanned(SCAN, 2.0)
    scans.reads.clock.seconds += 600.0
    found = scans.recent(ASKED, needed=True)
    assert isinstance(found, LedgerScan)
    assert (found.age_seconds, found.to_act_by) == (600.0, False)
    assert scans.reads.begun == 2


def test_a_scan_that_an_ensemble_answers_too_slowly_is_told_once_the_last_one_is_old(monkeypatch):
    monkeypatch.setattr(paged_reads, "PAGE_SECONDS", -1.0)
    scans = replace(scanned(SCAN, 2.0), znodes=lambda: Znodes("zk:2181", Mock(usable=True, client=Mock(client_id=None))))
    scans.reads.clock.seconds += 60.0
    for _ in range(4):
        assert isinstance(scans.recent(ASKED, needed=True), LedgerScan)
        scans.reads._read(scans.reads._next())
        scans.reads.clock.seconds += FORGOTTEN_SECONDS / 3
    why = "ZooKeeper at zk:2181, /ledgers/LAYOUT: TimeoutError this observation took too long: the servers answer too slowly"
    assert scans.recent(ASKED, needed=True) == BeingScanned.after(f"0 of 0; {why}")


def test_a_drain_waits_for_a_scan_and_is_looked_at_again_at_its_end():
    being_scanned = BeingScanned.after("3000 of 7000")
    made = plan_bookkeeper(seen(scan=being_scanned), JOBS_IMAGE)
    assert made.actions == ()
    assert made.wait is not None
    assert made.wait.sentence == "ScanningLedgers: the ledgers are being scanned (3000 of 7000)"
    assert made.requeue_after_seconds == 30.0
