"""What a writer's history proves about a table."""

from __future__ import annotations

import json

import pytest

from herdkeeper_e2e.history import (
    Event,
    EventKind,
    HistoryError,
    altered_in,
    comparison,
    gaps,
    judge,
    parse_history,
    payload_of,
    recorded,
    wrong_between,
)

ACKNOWLEDGED, UNKNOWN, MARK = EventKind.ACKNOWLEDGED, EventKind.UNKNOWN, EventKind.MARK


def acknowledged(at: float, row: int) -> Event:
    return Event(at, ACKNOWLEDGED, row)


def test_a_row_that_was_acknowledged_and_is_not_in_the_table_is_lost():
    verdict = judge([acknowledged(1, 0), acknowledged(2, 1)], [0])
    assert verdict.lost == (1,)
    assert "1 of 2 acknowledged rows are lost" in str(verdict.violation)


def test_a_row_whose_answer_was_lost_may_be_there_or_not():
    events = [acknowledged(1, 0), Event(2, UNKNOWN, 1), Event(3, UNKNOWN, 2)]
    verdict = judge(events, [0, 2])
    assert (verdict.violation, verdict.unknown, verdict.unknown_durable) == (None, 2, 1)


def test_a_row_that_nobody_wrote_is_a_violation():
    assert "rows are in the table that nobody wrote" in str(judge([acknowledged(1, 0)], [0, 7]).violation)


def test_a_row_with_another_payload_than_was_written_is_a_violation():
    events, rows = [acknowledged(1, 0), acknowledged(2, 1)], [(0, payload_of(0)), (1, payload_of(0))]
    verdict = judge(events, [0, 1], altered_in(rows))
    assert verdict.violation == "1 rows have another payload than was written: 1"
    assert json.loads(comparison(events, [0, 1], altered_in(rows)))["violation"] == verdict.violation


def test_while_the_writer_goes_on_its_later_rows_are_left_out_and_a_lost_one_is_still_found():
    events = [acknowledged(1, 0), acknowledged(2, 1), Event(3, UNKNOWN, 2), Event(4, MARK, name="kill")]
    assert recorded(events, [0, 1, 2, 3, 4]) == [0, 1, 2]
    assert judge(events, recorded(events, [0, 1, 3])).violation is None
    assert judge(events, recorded(events, [0, 3])).lost == (1,)
    assert recorded([], [0]) == []


MARKS = ("before", "after")
AROUND_A_MOMENT = [
    acknowledged(1, 0),
    acknowledged(2, 1),
    Event(3, MARK, name="before"),
    Event(4, UNKNOWN, 2),
    acknowledged(5, 3),
    acknowledged(6, 4),
    Event(7, MARK, name="after"),
    acknowledged(8, 5),
]


@pytest.mark.parametrize("rows", [[0, 1], [0, 1, 2], [0, 1, 3], [0, 1, 2, 3, 4]])
def test_a_moment_between_two_marks_has_what_was_acknowledged_before_it_and_perhaps_what_came_in_between(rows: list[int]):
    assert wrong_between(AROUND_A_MOMENT, MARKS, rows) is None


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([0], "1 rows were acknowledged before the mark 'before' and are not there: 1"),
        ([0, 1, 3, 4, 5], "1 rows are there and were not tried before the mark 'after': 5"),
        ([0, 1, 4], "1 rows were acknowledged before row 4, which is there, and are not: 3"),
        ([0, 1, 9], "were not tried before the mark 'after': 9"),
    ],
)
def test_rows_that_no_moment_between_two_marks_can_have_had_are_named(rows: list[int], why: str):
    assert why in str(wrong_between(AROUND_A_MOMENT, MARKS, rows))


def test_a_mark_that_is_not_there_or_there_twice_is_no_moment():
    with pytest.raises(HistoryError, match="'never' is in the history 0 times"):
        wrong_between(AROUND_A_MOMENT, ("before", "never"), [])
    with pytest.raises(HistoryError, match="'before' is in the history 2 times"):
        wrong_between([*AROUND_A_MOMENT, Event(9, MARK, name="before")], MARKS, [])


def test_a_gap_begins_with_the_last_success_before_the_fault():
    events = [acknowledged(1, 0), acknowledged(2, 1), Event(2.5, MARK, name="kill"), acknowledged(9, 2), acknowledged(9.5, 3)]
    assert [(gap.fault, gap.seconds) for gap in gaps(events)] == [("kill", 7)]


def test_each_fault_has_its_own_gap():
    events = [acknowledged(1, 0), Event(2, MARK, name="one"), acknowledged(4, 1), Event(5, MARK, name="two"), acknowledged(10, 2)]
    assert [(gap.fault, gap.seconds) for gap in gaps(events)] == [("one", 3), ("two", 6)]


def test_writes_that_never_resumed_are_no_gap_but_an_error():
    with pytest.raises(HistoryError, match="after the mark 'kill'"):
        gaps([acknowledged(1, 0), Event(2, MARK, name="kill")])


def test_a_comparison_tells_what_is_lost_and_each_gap_in_one_line():
    events = [acknowledged(1, 0), Event(2, MARK, name="kill"), acknowledged(4, 1)]
    line = comparison(events, [0])
    assert "\n" not in line
    found = json.loads(line)
    assert found["violation"] == judge(events, [0]).violation
    assert found["verdict"]["lost"] == [1]
    assert found["gaps"] == [{"fault": "kill", "seconds": 3, "unknown_rows": 0, "pauses": 3}]


def test_pauses_are_added_up_and_what_a_row_takes_is_none():
    times = [1.0, 1.2, 1.6, 1.8, 2.8]
    events = [Event(1.1, MARK, name="roll"), *(acknowledged(at, row) for row, at in enumerate(times))]
    (found,) = gaps(sorted(events, key=lambda event: event.at))
    assert (round(found.seconds, 2), round(found.pauses, 2)) == (1.0, 1.4)


def test_a_history_survives_its_file():
    events = [acknowledged(1.25, 0), Event(2.5, MARK, name="kill"), Event(3.0, UNKNOWN, 1)]
    assert parse_history(event.to_line() for event in events) == events


def test_a_line_that_is_no_event_is_named():
    with pytest.raises(HistoryError, match="line 2"):
        parse_history([acknowledged(1, 0).to_line(), '{"at": 1'])
