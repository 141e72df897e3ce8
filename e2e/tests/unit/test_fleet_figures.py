"""What the fleet benchmark makes of times and requests."""

from __future__ import annotations

import json
import math

import pytest

from herdkeeper_e2e.audit_log import Request, requests_of
from herdkeeper_e2e.control_plane import OPERATOR_USER
from herdkeeper_e2e.fleet.figures import WINDOW_SECONDS, Change, back_after, percentile, rates, spread, table, waits, windows


def _write(namespace: str, at: float, resource: str = "configmaps", verb: str = "patch", code: int = 200) -> Request:
    return Request(at, verb, resource, namespace, code)


def _reads(at: float, count: int) -> list[Request]:
    return [Request(at + number / count, "get", "pods", "a", 200) for number in range(count)]


@pytest.mark.parametrize(("percent", "expected"), [(50, 5.0), (99, 10.0), (90, 9.0), (1, 1.0), (100, 10.0)])
def test_a_percentile_is_one_of_the_values(percent: float, expected: float) -> None:
    assert percentile([float(number) for number in range(10, 0, -1)], percent) == expected


def test_no_values_have_no_percentile() -> None:
    with pytest.raises(ValueError, match="at least one"):
        percentile([], 50)


def test_a_change_waits_for_the_first_write_to_its_own_stack() -> None:
    requests = [_write("a", 9.0), _write("b", 10.5), _write("a", 11.0), _write("a", 12.0)]
    assert waits([Change("a", 10.0)], requests) == [1.0]


def test_neither_reads_nor_events_nor_refused_writes_nor_the_lease_answer_a_change() -> None:
    requests = [
        _write("a", 10.1, verb="get"),
        _write("a", 10.2, resource="events"),
        _write("a", 10.3, code=409),
        _write("a", 10.4, resource="leases"),
        _write("a", 13.0),
    ]
    assert waits([Change("a", 10.0)], requests) == [3.0]


def test_a_write_that_came_after_the_next_change_answers_only_that_one() -> None:
    assert waits([Change("a", 10.0), Change("a", 20.0)], [_write("a", 21.0)]) == [math.inf, 1.0]


def test_what_was_never_answered_is_told() -> None:
    assert spread([0.5, math.inf]) == "0.50 s / never (n = 2, 1 without a write)"
    assert spread([]) == "no change could be made"


def test_windows_count_ten_seconds_each_and_not_the_lease() -> None:
    requests = [*_reads(100.0, 5), *_reads(111.0, 3), _write("x", 104.0, resource="leases", verb="update"), *_reads(99.0, 9)]
    assert windows(requests, 100.0, 112.0) == [5, 0, 3]


def test_requests_are_back_at_the_end_of_the_last_window_with_more_than_before() -> None:
    assert back_after([0, 0, 500, 300, 126, 125, 90], most=100) == 4 + WINDOW_SECONDS
    assert back_after([100, 125], most=100) == 0.0
    assert back_after([100, 126], most=100) == math.inf


def test_rates_tell_the_most_frequent_first() -> None:
    assert rates([*_reads(0.0, 4), _write("a", 1.0)], 2.0) == [("get pods", 2.0), ("patch configmaps", 0.5)]


def test_a_table_has_a_row_a_figure_and_a_column_a_fleet() -> None:
    assert table({"10 stacks": {"one": "1", "two": "2"}, "100 stacks": {"one": "3"}}).splitlines() == [
        "| | 10 stacks | 100 stacks |",
        "|---|---|---|",
        "| one | 1 | 3 |",
        "| two | 2 | – |",
    ]


def _event(stage: str, verb: str, **reference: str) -> bytes:
    event = {
        "stage": stage,
        "verb": verb,
        "user": {"username": OPERATOR_USER},
        "stageTimestamp": "2026-01-01T00:00:01.250000Z",
        "responseStatus": {"code": 200},
    }
    return json.dumps(event | ({"objectRef": reference} if reference else {})).encode()


def test_a_watch_counts_when_it_begins_and_everything_else_once_it_is_answered() -> None:
    lines = [
        _event("ResponseStarted", "watch", resource="pods"),
        _event("ResponseComplete", "watch", resource="pods"),
        _event("ResponseStarted", "list", resource="pods"),
        _event("ResponseComplete", "list", resource="pods", namespace="a"),
        _event("ResponseComplete", "patch", resource="tablespaces", subresource="status", namespace="a"),
        _event("ResponseComplete", "get"),
    ]
    found = list(requests_of(lines))
    assert [(each.verb, each.resource, each.namespace) for each in found] == [
        ("watch", "pods", ""),
        ("list", "pods", "a"),
        ("patch", "tablespaces/status", "a"),
        ("get", "discovery", ""),
    ]
    assert {each.at for each in found} == {1767225601.25}
