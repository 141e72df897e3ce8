"""Which histories contradict the tables: each kind of fault in the data is found, and named with its operations, and nothing else is."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdkeeper_e2e.checker.contents import Contents
from herdkeeper_e2e.checker.operation import Add, Fault, Operation, Outcome, Read, Write
from herdkeeper_e2e.checker.verdict import judge
from herdkeeper_e2e.checker.violation import ViolationKind

OK, FAIL, UNKNOWN = Outcome.OK, Outcome.FAIL, Outcome.UNKNOWN
LOST, TORN, UNDEAD = ViolationKind.LOST, ViolationKind.TORN, ViolationKind.UNDEAD
STRANGER, DUPLICATE, BACK = ViolationKind.STRANGER, ViolationKind.DUPLICATE, ViolationKind.BACK_IN_TIME
BETWEEN = ViolationKind.BACK_BETWEEN_LEADERS
Found = list[tuple[ViolationKind, tuple[str, ...]]]


def add(number: int, outcome: Outcome, *rows: int) -> Operation:
    return Operation("w", number, Add(rows), number, number + 0.5, outcome, "n0")


def write(
    begun: float, value: int, outcome: Outcome, *, ended: float | None = None, leader: str = "n0", ledger: int | None = None
) -> Operation:
    until = begun + 0.5 if ended is None else ended
    return Operation("r", value, Write(0, value), begun, until, outcome, leader, ledger=ledger)


def read(begun: float, value: int | None, *, ended: float | None = None, leader: str = "n0", ledger: int | None = None) -> Operation:
    values: Mapping[int, int] = {} if value is None else {0: value}
    until = begun + 0.5 if ended is None else ended
    return Operation("q", int(begun * 10), Read(values), begun, until, OK, leader, ledger=ledger)


def found(operations: list[Operation], *contents: Contents) -> Found:
    verdict = judge(sorted(operations, key=lambda each: each.begun), contents)
    return [(violation.kind, tuple(each.name for each in violation.operations)) for violation in verdict.violations]


def rows(*present: tuple[int, str], registers: Mapping[int, int] | None = None, leader: str = "n0") -> Contents:
    return Contents(leader, present, registers or {})


@pytest.mark.parametrize(
    ("operations", "present", "expected"),
    [
        ([add(1, OK, 10)], [(10, "w/1")], []),
        ([add(1, OK, 10, 11)], [(10, "w/1"), (11, "w/1")], []),
        ([add(1, UNKNOWN, 10, 11)], [], []),
        ([add(1, UNKNOWN, 10, 11)], [(10, "w/1"), (11, "w/1")], []),
        ([add(1, FAIL, 10, 11)], [], []),
        ([add(1, OK, 10)], [], [(LOST, ("w/1",))]),
        ([add(1, OK, 10, 11)], [], [(LOST, ("w/1",))]),
        ([add(1, OK, 10, 11)], [(10, "w/1")], [(TORN, ("w/1",))]),
        ([add(1, UNKNOWN, 10, 11)], [(11, "w/1")], [(TORN, ("w/1",))]),
        ([add(1, FAIL, 10, 11)], [(11, "w/1")], [(TORN, ("w/1",))]),
        ([add(1, FAIL, 10)], [(10, "w/1")], [(UNDEAD, ("w/1",))]),
        ([add(1, OK, 10)], [(10, "w/1"), (10, "w/1")], [(DUPLICATE, ())]),
        ([add(1, OK, 10)], [(10, "w/1"), (12, "w/2")], [(STRANGER, ())]),
        # a transaction that never got to the UPDATE of its last statement, and one whose row another one wrote
        ([add(1, OK, 10, 11)], [(10, "w/1"), (11, "")], [(TORN, ("w/1",)), (STRANGER, ("w/1",))]),
        ([add(1, OK, 10), add(2, OK, 20)], [(10, "w/2"), (20, "w/2")], [(LOST, ("w/1",)), (STRANGER, ("w/1",))]),
    ],
)
def test_the_set_holds_what_was_acknowledged_as_a_whole_and_nothing_that_failed(
    operations: list[Operation], present: list[tuple[int, str]], expected: Found
):
    assert found(operations, rows(*present)) == expected


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([write(1, 1, OK), read(2, 1), write(3, 2, OK), read(4, 2)], []),
        ([read(1, 0), write(2, 1, OK), read(3, 1)], []),
        # what runs at the same time may be seen or not
        ([write(1, 1, OK, ended=5), read(2, 1, ended=3), read(2.1, 0, ended=4)], []),
        ([write(1, 1, OK), write(2, 2, UNKNOWN), read(3, 1), read(4, 2)], []),
        ([write(1, 1, OK), read(2, 0)], [(BACK, ("r/1", "q/20"))]),
        ([write(1, 1, UNKNOWN), read(2, 1), read(3, 0)], [(BACK, ("q/20", "q/30"))]),
        ([write(1, 1, OK), read(2, None)], [(BACK, ("r/1", "q/20"))]),
        # another leader may not know yet that it was replaced
        ([write(1, 1, OK, leader="n1"), read(2, 0)], []),
        ([write(1, 1, OK), read(2, 0, leader="n1"), read(3, 0)], [(BACK, ("r/1", "q/30"))]),
        # a client that can't tell which leader answered
        ([write(1, 1, OK, leader=""), read(2, 0)], []),
        ([write(1, 1, OK), read(2, 7)], [(STRANGER, ("q/20",))]),
        ([read(1, 1), write(3, 1, OK)], [(STRANGER, ("r/1", "q/10"))]),
        ([write(1, 1, FAIL), write(1.6, 2, OK), read(3, 1, leader="n1")], [(UNDEAD, ("r/1", "q/30"))]),
    ],
)
def test_reads_never_go_back_in_time_on_one_leader(history: list[Operation], expected: Found):
    last = max((each.content.value for each in history if isinstance(each.content, Write)), default=0)
    kept = max((each.content.value for each in history if isinstance(each.content, Write) and each.outcome is not FAIL), default=last)
    assert found(history, rows(registers={0: kept})) == expected


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([write(1, 1, OK, ledger=4), read(2, 1, leader="n1", ledger=5)], []),
        ([write(1, 1, OK, ledger=4), read(2, 0, leader="n1", ledger=5)], [(BETWEEN, ("r/1", "q/20"))]),
        # by the log, not by the clock: an old leader that does not know yet that it was replaced
        ([write(1, 1, OK, leader="n1", ledger=5), read(2, 0, ledger=4)], []),
        # what it shows so late is in the log before the next leader's first ledger
        ([write(1, 1, UNKNOWN, ledger=4), read(2, 0, leader="n1", ledger=5), read(3, 1, ledger=4)], [(BETWEEN, ("q/30", "q/20"))]),
        # a ledger that the same node has opened behind the other one's
        ([read(1, 0, ledger=4), write(2, 1, OK, leader="n1", ledger=5), read(3, 0, ledger=6)], [(BETWEEN, ("r/1", "q/30"))]),
        # nobody knows in which ledger
        ([write(1, 1, OK), read(2, 0, leader="n1", ledger=5)], []),
        ([write(1, 1, OK, ledger=4), read(2, 0, leader="n1")], []),
        # one that failed, or whose answer was lost, proves nothing
        ([write(1, 1, UNKNOWN, ledger=4), read(2, 0, leader="n1", ledger=5)], []),
    ],
)
def test_no_leader_shows_less_than_another_one_did_in_an_earlier_ledger(history: list[Operation], expected: Found):
    last = max(each.content.value for each in history if isinstance(each.content, Write))
    assert found(history, rows(registers={0: last})) == expected


def test_a_value_that_was_read_is_there_at_the_end_though_its_answer_was_lost():
    history = [write(1, 1, UNKNOWN), read(2, 1)]
    assert found(history, rows(registers={0: 1})) == []
    assert found(history, rows(registers={0: 0})) == [(LOST, ("q/20",))]


@pytest.mark.parametrize(
    ("at_the_end", "expected"),
    [
        ({0: 2}, []),
        ({0: 3}, []),
        ({0: 1}, [(LOST, ("r/2",))]),
        ({}, [(LOST, ("r/2",))]),
        ({0: 4}, [(UNDEAD, ("r/4",))]),
        ({0: 9}, [(STRANGER, ())]),
    ],
)
def test_a_register_ends_with_its_last_acknowledged_value_or_a_later_unknown_one(at_the_end: dict[int, int], expected: Found):
    history = [write(1, 1, OK), write(2, 2, OK), write(3, 3, UNKNOWN), write(4, 4, FAIL)]
    assert found(history, rows(registers=at_the_end)) == expected


def test_what_one_leader_has_at_the_end_the_next_one_has_too_even_if_its_answer_was_lost():
    history = [add(1, UNKNOWN, 10)]
    assert found(history, rows((10, "w/1")), rows((10, "w/1"), leader="n1")) == []
    assert found(history, rows(), rows((10, "w/1"), leader="n1")) == []
    assert found(history, rows((10, "w/1")), rows(leader="n1")) == [(LOST, ())]


def test_without_contents_nothing_is_judged():
    with pytest.raises(ValueError, match="no contents"):
        judge([add(1, OK, 10)], [])


def test_a_verdict_tells_what_was_tried_what_the_nemesis_did_and_what_is_broken():
    nemesis = Operation("nemesis", 1, Fault("leader killed"), 1, 2, OK)
    missed = Operation("nemesis", 2, Fault("bookie paused"), 2, 3, FAIL)
    told = [nemesis, add(1, OK, 10), add(2, UNKNOWN, 20), missed, add(4, OK, 30), add(5, OK, 40)]
    text = judge(told, [rows((30, "w/4"), (40, "w/5"))]).text()
    faults, gap = "2 faults, 1 of them met nobody: leader killed, bookie paused", "longest time without an acknowledged write: 3.0 s"
    for expected in ("3 w add", faults, gap, "an acknowledged write is lost", "w/1 Add(rows=(10,))", "1 violations"):
        assert expected in text
    assert judge([nemesis, add(1, OK, 10)], [rows((10, "w/1"))]).acknowledged("add", "w") == 1


@given(st.data())
def test_a_true_history_passes_and_the_loss_of_any_acknowledged_row_is_found(data: st.DataObject):
    outcomes = data.draw(st.lists(st.sampled_from(Outcome), min_size=1, max_size=12))
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=len(outcomes), max_size=len(outcomes)))
    operations = [
        add(number, outcome, *range(number * 10, number * 10 + size))
        for number, (outcome, size) in enumerate(zip(outcomes, sizes, strict=True))
    ]
    durable = [each for each in operations if each.outcome is OK or (each.outcome is UNKNOWN and data.draw(st.booleans()))]
    present = [(row, each.name) for each in durable if isinstance(each.content, Add) for row in each.content.rows]
    assert found(operations, rows(*present)) == []
    acknowledged = [(row, each) for each in durable if each.outcome is OK and isinstance(each.content, Add) for row in each.content.rows]
    if acknowledged:
        row, owner = data.draw(st.sampled_from(acknowledged))
        assert [names for _, names in found(operations, rows(*(each for each in present if each[0] != row)))] == [(owner.name,)]
