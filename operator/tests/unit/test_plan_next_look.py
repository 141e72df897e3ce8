"""A leader is looked at again in the moment in which the answer may be another one: clients stand still until it is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_plan_leadership import BEATING, CALM, DEAD, FAILED, HUNG, WELL, A, cut_off, situation, waiting

from herdkeeper.herddb.leadership.decision import Blocked, Keep, Move, Node, Situation, decide
from herdkeeper.herddb.leadership.requeue import requeue_after_seconds
from herdkeeper.shared.unknown import Unknown


def silent(seconds: float, **more: object) -> Situation:
    return situation(a=replace(HUNG, silent_seconds=seconds), b=BEATING, **more)


def heard_by_zookeeper(seconds: float) -> Situation:
    return situation(a=replace(HUNG, silent_seconds=seconds, heartbeat=1998.0), b=BEATING)


ONE_SILENT = Node(copy=Unknown("silence"), silent_seconds=0.4)
TABLE: list[tuple[str, Situation, type, float | None]] = [
    ("all is well", CALM, Keep, None),
    ("the leader was moved: does the next one lead?", situation(a=DEAD), Move, 1.0),
    ("it has just fallen silent", silent(2.0), Keep, 1.0),
    ("it is taken for hung before the second but next", silent(3.5), Keep, 1.5),
    ("it is taken for hung in a moment", silent(4.9), Keep, 0.1),
    ("it is taken for hung now", silent(4.999), Keep, 0.05),
    ("it is allowed a longer silence", silent(5.0, hung_seconds=6.0), Keep, 1.0),
    ("it has been silent long enough, and ZooKeeper is about to confirm it", heard_by_zookeeper(5.0), Keep, 0.5),
    ("the same after a second", heard_by_zookeeper(6.0), Keep, 0.5),
    ("it has been silent for long, and ZooKeeper hears it", heard_by_zookeeper(7.1), Keep, 1.0),
    ("it does not answer, and its stream does", situation(a=ONE_SILENT), Keep, 1.0),
    ("ZooKeeper will not have answered it for too long", situation(a=cut_off(5.5)), Keep, 1.5),
    ("ZooKeeper has almost not answered it for too long", situation(a=cut_off(6.9)), Keep, 0.25),
    ("its bookies will have let it wait for too long", situation(a=waiting(WELL[A], 6.5)), Keep, 0.5),
    ("they let it wait for the first second", situation(a=waiting(WELL[A], 1.0)), Keep, 1.0),
    ("it was changed just now", situation(a=DEAD, changed_at=1999.5), Blocked, 1.0),
    ("it may be changed again in a moment", situation(a=DEAD, changed_at=1995.75), Blocked, 0.75),
    ("the storage may be to blame for a moment longer", situation(a=FAILED, changed_at=1970.5), Blocked, 0.5),
    ("nobody else can", situation(a=DEAD, b=DEAD, c=DEAD), Blocked, 1.0),
]


@pytest.mark.parametrize(("name", "seen", "decision", "seconds"), TABLE, ids=[name for name, _, _, _ in TABLE])
def test_the_next_look(name: str, seen: Situation, decision: type, seconds: float | None) -> None:
    decided = decide(seen)
    assert isinstance(decided, decision), name
    assert requeue_after_seconds(seen, decided) == (None if seconds is None else pytest.approx(seconds)), name


def test_a_leader_that_stops_answering_is_looked_at_when_it_counts_as_hung_however_the_looks_before_fell() -> None:
    for first in (2.0, 2.3, 2.61, 2.99):
        silence = first
        while isinstance(decided := decide(silent(silence)), Keep):
            again = requeue_after_seconds(silent(silence), decided)
            assert again is not None
            silence += again
        assert silence == pytest.approx(5.0, abs=0.05)
