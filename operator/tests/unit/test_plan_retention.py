"""Which runs of a schedule expire. The newest verified checkpoint never does, and nothing that is not known to be of no use."""

from __future__ import annotations

import datetime
from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from situations import EXAMPLES, with_metadata, with_status
from test_plan_schedule import example

from herdkeeper.api.scheduled_checkpoint import Retention
from herdkeeper.herddb.log.identity import LogIdentity
from herdkeeper.jobs.schedule.retention import expired_by_number, expired_checkpoints, expired_runs
from herdkeeper.jobs.schedule.state import Run, run_of
from herdkeeper_e2e.defaulting import stored

NOON = datetime.datetime(2026, 5, 10, 12, tzinfo=datetime.UTC)


def day(number: int, phase: str = "Succeeded", verified: bool = True) -> Run:
    """The run that ended at noon, so many days ago."""
    ended = NOON - datetime.timedelta(days=number)
    due = ended - datetime.timedelta(hours=1)
    over = phase in ("Succeeded", "Failed")
    return Run(f"d{number}", f"uid-d{number}", due, False, phase, ended if over else None, verified and phase == "Succeeded")


def days(*numbers: int) -> tuple[Run, ...]:
    return tuple(day(number) for number in numbers)


@pytest.mark.parametrize(
    ("runs", "retention", "expired"),
    [
        ((), Retention(keep_last=1), []),
        (days(9), Retention(keep_last=1), []),
        (days(3, 2, 1), Retention(keep_last=3), []),
        (days(4, 3, 2, 1), Retention(keep_last=2), ["d4", "d3"]),
        # a window, back from the newest one: all in it, and the base at or before its beginning
        (days(9, 8, 7, 6, 2, 0), Retention(keep_last=1, keep_within="7d"), ["d9", "d8"]),
        (days(9, 8, 6, 2, 0), Retention(keep_last=1, keep_within="7d"), ["d9"]),
        (days(9, 8, 6, 2, 1), Retention(keep_last=1, keep_within="7d"), ["d9"]),
        (days(10, 9, 8), Retention(keep_last=1, keep_within="1d"), ["d10"]),
        (days(3, 2, 1, 0), Retention(keep_last=1, keep_within="30m"), ["d3", "d2"]),
        (days(3, 2, 1, 0), Retention(keep_last=1, keep_within="24h"), ["d3", "d2"]),
        # what either field asks for is kept
        (days(9, 8, 7, 6, 5), Retention(keep_last=4, keep_within="1d"), ["d9"]),
        (days(9, 8, 7, 6, 5), Retention(keep_last=1, keep_within="30d"), []),
        # others neither expire nor count
        ((*days(5, 4), day(3, "Failed"), day(2, "Running"), day(1, "Pending")), Retention(keep_last=1), ["d5"]),
        ((*days(5, 4), day(3, verified=False)), Retention(keep_last=1), ["d5"]),
        ((*days(5, 4), replace(day(3), completed=None)), Retention(keep_last=1), ["d5"]),
        ((replace(day(5), completed=None), *days(4, 3)), Retention(keep_last=1), ["d4"]),
        # one that ended later is newer, though it was due earlier
        ((replace(day(2), due=NOON), day(1)), Retention(keep_last=1), ["d2"]),
    ],
)
def test_a_checkpoint_expires_when_no_field_asks_for_it(runs, retention, expired):
    assert [run.name for run in expired_checkpoints(runs, retention, NOON)] == expired
    assert [run.name for run in expired_checkpoints(tuple(reversed(runs)), retention, NOON)] == expired


def test_neither_a_clock_that_is_ahead_nor_a_schedule_that_stands_empties_the_window():
    runs, retention = days(5, 4, 3, 2, 1), Retention(keep_last=1, keep_within="3d")
    for ahead in (0, 2, 30, 3000):
        assert [run.name for run in expired_checkpoints(runs, retention, NOON + datetime.timedelta(days=ahead))] == ["d5"]
    assert [run.name for run in expired_checkpoints((*runs, day(0)), retention, NOON)] == ["d5", "d4"]


def test_checkpoints_of_times_that_have_not_come_take_no_place_of_the_last_ones():
    """They were made while a clock was ahead."""
    assert expired_checkpoints((*days(3, 2, 1), *days(-8, -9, -10)), Retention(keep_last=3), NOON) == ()


def test_a_checkpoint_that_somebody_has_deleted_takes_no_place_of_those_that_are_kept():
    schedule = example("scheduled-checkpoint.yaml", retention=Retention(keep_last=1))
    newest = day(1)
    assert [run.name for run in expired_runs(schedule, (*days(3, 2), newest), NOON)] == ["d3", "d2"]
    assert [run.name for run in expired_runs(schedule, (*days(3, 2), replace(newest, going=True)), NOON)] == ["d3"]
    assert expired_runs(schedule, (day(2), replace(newest, going=True)), NOON) == ()
    assert expired_runs(schedule, (replace(day(2), going=True), newest), NOON) == (), "it is not deleted again"


def test_a_checkpoint_that_the_archive_needs_stays_beside_those_that_the_schedule_keeps():
    schedule = example("scheduled-checkpoint.yaml", retention=Retention(keep_last=2))
    runs = (*days(5, 4, 3, 2, 1), day(6, "Failed"))
    assert [run.name for run in expired_runs(schedule, runs, NOON)] == ["d5", "d4", "d3"]
    assert [run.name for run in expired_runs(schedule, runs, NOON, frozenset({"d4", "another"}))] == ["d5", "d3"]


def of_log(instance_id: str, *runs: Run) -> tuple[Run, ...]:
    return tuple(replace(run, log=LogIdentity(instance_id, "a-uuid")) for run in runs)


def test_the_newest_verified_checkpoint_of_each_log_stays_whatever_is_made_of_another_one_under_the_same_names():
    before, since = of_log("before", *days(9, 8, 7)), of_log("since", *days(3, 2, 1))
    for within, base in ((None, []), ("1h", ["d2"])):
        expired = expired_checkpoints((*since, *before), Retention(keep_last=1, keep_within=within), NOON)
        assert [run.name for run in expired] == [name for name in ("d9", "d8", "d3", "d2") if name not in base]
    both = (*of_log("before", day(3)), *of_log("since", day(2)), *of_log("before", day(1)))
    assert [run.name for run in expired_checkpoints(both, Retention(keep_last=1), NOON)] == ["d3"]


def test_the_checkpoint_that_reaches_furthest_in_its_log_stays_though_a_clock_that_was_set_back_makes_it_look_older():
    runs = [replace(run, lsn=lsn) for run, lsn in zip(of_log("it", *days(3, 2, 1)), [(7, 4), (7, 5), (6, 9)], strict=True)]
    assert [run.name for run in expired_checkpoints(runs, Retention(keep_last=1), NOON)] == ["d3"]
    other = [replace(run, lsn=(9, 9)) for run in of_log("another", day(0))]
    assert [run.name for run in expired_checkpoints([*runs, *other], Retention(keep_last=1), NOON)] == ["d3"], "of each log its own"


def test_the_newest_checkpoint_that_was_compared_with_a_follower_stays_though_later_ones_only_reread_their_files():
    """The pins on the log and the archive build on it alone, so the log before it may be released."""
    runs = [replace(run, lsn=(7, number), proven=number < 2) for number, run in enumerate(of_log("it", *days(5, 4, 3, 2, 1)))]
    assert [run.name for run in expired_checkpoints(runs, Retention(keep_last=1), NOON)] == ["d5", "d3", "d2"]
    succeeded = {"phase": "Succeeded", "manifest": "it/a-uuid/manifests/1.json", "verified": "files re-read: 5 rows"}
    documents = yaml.safe_load_all((EXAMPLES / "checkpoint.yaml").read_text())
    checkpoint = next(stored(document, "demo") for document in documents if document["kind"] == "Checkpoint")
    made = with_status(with_metadata(checkpoint, creation_timestamp="2026-05-10T12:00:00Z"), **succeeded)
    assert (run_of(made).verified, run_of(made).proven) == (True, False)
    assert run_of(with_status(made, **{**succeeded, "verified": "the same rows as db-herddb-1"})).proven


def test_the_newest_checkpoint_that_can_be_restored_stays_though_no_restore_can_load_the_later_ones():
    """Somebody added a NOT NULL column to a table with rows: each later Checkpoint is verified, and can't be restored as it is."""
    runs = tuple(replace(run, restorable=number < 2) for number, run in enumerate(of_log("it", *days(5, 4, 3, 2, 1))))
    assert [run.name for run in expired_checkpoints(runs, Retention(keep_last=1), NOON)] == ["d5", "d3", "d2"]
    succeeded = {"phase": "Succeeded", "manifest": "it/a-uuid/manifests/1.json", "verified": "compared with follower b"}
    documents = yaml.safe_load_all((EXAMPLES / "checkpoint.yaml").read_text())
    checkpoint = next(stored(document, "demo") for document in documents if document["kind"] == "Checkpoint")
    made = with_metadata(checkpoint, creation_timestamp="2026-05-10T12:00:00Z")
    told = [run_of(with_status(made, **succeeded, **more)).restorable for more in ({}, {"restorable": False})]
    assert told == [True, False]


@given(
    st.lists(
        st.tuples(st.integers(0, 60), st.sampled_from(["Succeeded", "Failed", "Running"]), st.booleans()),
        max_size=12,
        unique_by=lambda item: item[0],
    ),
    st.integers(1, 5),
    st.one_of(st.none(), st.integers(1, 60).map(lambda number: f"{number}d")),
    st.integers(-3, 100),
)
def test_the_newest_verified_checkpoint_never_expires_and_expiry_ends(drawn, keep_last, keep_within, later):
    runs = tuple(day(*item) for item in drawn)
    retention = Retention(keep_last=keep_last, keep_within=keep_within)
    now = NOON + datetime.timedelta(days=later)
    expired = expired_checkpoints(runs, retention, now)
    verified = [run for run in runs if run.verified]
    assert all(run.verified for run in expired)
    if verified:
        assert max(verified, key=lambda run: run.completed) not in expired
    left = tuple(run for run in runs if run not in expired)
    assert expired_checkpoints(left, retention, now) == ()


@pytest.mark.parametrize(
    ("phase", "limit", "expired"), [("Failed", 1, ["d5", "d3"]), ("Failed", 3, []), ("Succeeded", 1, ["d4"]), ("Succeeded", 9, [])]
)
def test_of_runs_that_ended_alike_the_newest_are_kept_by_number(phase, limit, expired):
    runs = (day(5, "Failed"), day(4), day(3, "Failed"), day(2), day(1, "Failed"), day(0, "Running"))
    assert [run.name for run in expired_by_number(runs, phase, limit)] == expired
