"""A fault is in the middle of a job, or it is told by how much it is not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from herdkeeper_e2e.spans import NeverSaidError, Span, line_with, said_at, why_not_within

NOON = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


def span(what: str, begin: float, end: float) -> Span:
    return Span(what, NOON + timedelta(seconds=begin), NOON + timedelta(seconds=end))


@pytest.mark.parametrize(("begin", "end"), [(0, 10), (3, 3), (3, 4)])
def test_what_begins_and_ends_meanwhile_is_within(begin: float, end: float) -> None:
    assert why_not_within(span("the kill", begin, end), span("the job", 0, 10)) is None


@pytest.mark.parametrize(
    ("begin", "end", "why"),
    [
        (-2.5, 1, "the kill began 2.5 s before the job"),
        (9, 10.5, "the kill ended 0.5 s after the job"),
        (12, 13, "the kill ended 3.0 s after the job"),
    ],
)
def test_what_is_not_within_is_told_by_how_much(begin: float, end: float, why: str) -> None:
    assert why_not_within(span("the kill", begin, end), span("the job", 0, 10)) == why


def test_a_line_of_a_log_tells_its_time_to_the_microsecond() -> None:
    log = ["2026-11-22T12:00:00.123456789Z [info] planned copies=3", "2026-11-22T12:00:01Z [info] second pass"]
    assert said_at(line_with(log, "planned")) == NOON + timedelta(microseconds=123456)
    assert said_at(line_with(log, "second pass")) == NOON + timedelta(seconds=1)


def test_what_a_log_never_says_has_no_time() -> None:
    with pytest.raises(NeverSaidError, match="second pass"):
        line_with(["2026-11-22T12:00:00Z planned"], "second pass")
