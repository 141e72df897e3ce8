"""Waiting asks until there is an answer; stages say what they do and where they failed."""

from __future__ import annotations

import io

import pytest

from herdkeeper_e2e.compare import compare
from herdkeeper_e2e.nycflights import TABLES
from herdkeeper_e2e.stages import Progress, StageError, clock_text
from herdkeeper_e2e.waiting import Limit, Pending, WaitError, wait_for


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        return self.seconds

    def pause(self, seconds: float) -> None:
        self.seconds += seconds


def limit(seconds: float) -> Limit:
    clock = Clock()
    return Limit(seconds, 1.0, clock.now, clock.pause)


def test_each_new_reason_is_told_once_and_the_answer_returned():
    answers = iter([Pending("a"), Pending("a"), Pending("b"), 7])
    said: list[str] = []
    assert wait_for("seven", lambda: next(answers), limit(10), said.append) == 7
    assert said == ["a", "b"]


def test_a_limit_that_is_reached_names_what_was_still_missing():
    with pytest.raises(WaitError, match="seven did not happen within 3 s: the sieve"):
        wait_for("seven", lambda: Pending("the sieve"), limit(3))


def test_a_question_that_would_end_the_wait_at_once_is_an_error():
    with pytest.raises(TypeError, match="seven: False is an answer"):
        wait_for("seven", lambda: False, limit(3))


def test_a_failed_stage_is_named_with_its_cause():
    output = io.StringIO()
    progress = Progress(("one", "two"), output, Clock().now)
    with progress.stage("one", "begins"):
        progress.say("works")
    with pytest.raises(StageError, match="stage 'two' failed: no image"), progress.stage("two", "begins"):
        raise RuntimeError("no image")
    assert "1/2 one  works" in output.getvalue()
    assert list(progress.durations) == ["one"]


@pytest.mark.parametrize(("seconds", "text"), [(7, "0:07"), (187.9, "3:07"), (3600, "1:00:00")])
def test_elapsed_time_reads_like_a_clock(seconds, text):
    assert clock_text(seconds) == text


@pytest.mark.parametrize(
    ("in_checkpoint", "differing"),
    [
        ([{"carrier": "9E", "name": "Endeavor"}, {"carrier": "AA", "name": None}], ()),
        ([{"carrier": "9E", "name": "Endeavor"}], ("('AA',)",)),
        ([{"carrier": "9E", "name": "Endeavor"}, {"carrier": "AA", "name": ""}], ("('AA',)",)),
        ([{"carrier": "9E", "name": "Endeavor"}, *[{"carrier": "AA", "name": None}] * 2], ("('AA',)",)),
    ],
    ids=["the same rows", "a row is missing", "NULL is not empty", "a row comes twice"],
)
def test_rows_are_compared_one_by_one(in_checkpoint, differing):
    in_sql = [{"carrier": "AA", "name": None}, {"carrier": "9E", "name": "Endeavor"}]
    assert compare(TABLES[0], in_sql, in_checkpoint).differing == differing
