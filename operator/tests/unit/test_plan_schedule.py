"""A schedule makes the run that is due, once, and nothing while it can't know what runs."""

from __future__ import annotations

import datetime
from dataclasses import replace

import pytest
import yaml
from prometheus_client import REGISTRY
from situations import EXAMPLES, bookkeeper_serving, quickstart, with_metadata, with_spec, with_status

from herdkeeper.api import Checkpoint, ReplicationAudit
from herdkeeper.api.job import ClaimDestination, Destination
from herdkeeper.api.resource import Condition
from herdkeeper.api.scheduled_checkpoint import Retention
from herdkeeper.api.tablespace import LogArchive, TablespaceLog
from herdkeeper.engine.gauges.figures import show_figures
from herdkeeper.herddb.log.identity import LogIdentity, instance_of
from herdkeeper.jobs.drill.state import CheckpointSeries
from herdkeeper.jobs.schedule.plan import plan_schedule
from herdkeeper.jobs.schedule.retention import expired_runs
from herdkeeper.jobs.schedule.state import Run, RunSeries, run_of
from herdkeeper.jobs.schedule.status import summarize_scheduled_audit, summarize_scheduled_checkpoint
from herdkeeper.planning.actions import AnswerRequest, Create, Delete, Request
from herdkeeper.planning.due import Missed, NotDue, Start, timetable_of
from herdkeeper.shared import names
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.time import text_of
from herdkeeper.shared.timetable import overdue_at
from herdkeeper.shared.unknown import Unknown
from herdkeeper_e2e.defaulting import stored


def example(file: str, **spec):
    """A schedule of an example, at three o'clock UTC each night, declared at noon on 1 May."""
    documents = yaml.safe_load_all((EXAMPLES / file).read_text())
    found = next(stored(document, "demo") for document in documents if document["kind"].startswith("Scheduled"))
    found = with_metadata(found, uid="uid-1", resource_version="77", generation=1, creation_timestamp="2026-05-01T12:00:00Z")
    return with_spec(found, **{"schedule": "0 3 * * *", "time_zone": "UTC", "starting_deadline_seconds": None, **spec})


def at(text: str) -> datetime.datetime:
    """A moment in May, e.g. `10T03:00`."""
    return datetime.datetime.fromisoformat(f"2026-05-{text}").replace(tzinfo=datetime.UTC)


def run(due: str, completed: str | None = None, phase: str | None = None, **more) -> Run:
    """A run of `due` that is still running, or succeeded at `completed`."""
    phase = phase or ("Succeeded" if completed else "Running")
    name = f"run-{due}"
    return Run(name, f"uid-{name}", at(due), False, phase, at(completed) if completed else None, phase == "Succeeded", **more)


CHECKPOINTS = example("scheduled-checkpoint.yaml")
AUDITS = example("scheduled-audit.yaml")
LAST = run("09T03:00", "09T03:40")
"""The run of yesterday."""


@pytest.mark.parametrize(
    ("spec", "runs", "now", "decided"),
    [
        ({}, (), "01T13:00", NotDue()),
        ({}, (), "02T02:59", NotDue()),
        ({}, (), "02T03:00", Start(at("02T03:00"))),
        ({}, (LAST,), "10T02:59", NotDue()),
        ({}, (LAST,), "10T03:00", Start(at("10T03:00"))),
        ({}, (LAST, run("10T03:00")), "10T03:01", NotDue()),
        ({}, (LAST, run("10T03:00", "10T03:30")), "10T03:31", NotDue()),
        ({}, (LAST, run("10T03:00", "10T03:30", "Failed")), "10T03:31", NotDue()),
        # of many that were missed only the newest is made
        ({}, (run("03T03:00", "03T03:40"),), "10T17:00", Start(at("10T03:00"))),
        ({"starting_deadline_seconds": 3600}, (LAST,), "10T04:00", Start(at("10T03:00"))),
        ({"starting_deadline_seconds": 3600}, (LAST,), "10T04:01", Missed(at("10T03:00"), "startingDeadlineSeconds (3600) had passed")),
        # Forbid: not beside another one, nor after it
        ({}, (run("09T03:00"),), "10T03:00", Missed(at("10T03:00"), "run-09T03:00 was not over")),
        ({}, (run("09T03:00", phase="Pending"),), "10T03:00", Missed(at("10T03:00"), "run-09T03:00 was not over")),
        ({}, (run("09T03:00", "10T05:00"),), "10T05:01", Missed(at("10T03:00"), "run-09T03:00 was not over")),
        ({}, (run("09T03:00", "10T05:00"),), "11T03:00", Start(at("11T03:00"))),
        ({}, (LAST, replace(run("10T02:50"), requested=True)), "10T03:00", Missed(at("10T03:00"), "run-10T02:50 was not over")),
        ({}, (LAST, replace(run("10T02:50", "10T02:59"), requested=True)), "10T03:00", Start(at("10T03:00"))),
        ({"suspend": True}, (LAST,), "10T03:00", NotDue()),
        # not suspended any more: what was asked for meanwhile will do
        ({}, (LAST, replace(run("10T12:00", "10T12:30"), requested=True)), "10T13:00", NotDue()),
        ({}, (LAST,), "10T13:00", Start(at("10T03:00"))),
    ],
)
def test_what_becomes_of_the_newest_time(spec, runs, now, decided):
    assert RunSeries(with_spec(CHECKPOINTS, **spec), runs, at(now)).decision == decided
    assert RunSeries(with_spec(AUDITS, **spec), runs, at(now)).decision == decided


def test_a_time_whose_run_was_deleted_does_not_come_again():
    remembered = with_status(CHECKPOINTS, last_schedule_time="2026-05-10T03:00:00Z")
    assert RunSeries(remembered, (), at("10T04:00")).decision == NotDue()
    assert RunSeries(remembered, (), at("11T03:00")).decision == Start(at("11T03:00"))


def test_the_run_of_a_time_whose_name_somebody_has_taken_gets_another_one_and_has_its_time():
    taken = CheckpointSeries(CHECKPOINTS, (LAST,), at("10T03:17"), taken=frozenset({"flights-nightly-202605100300"}))
    (made,) = plan_schedule(taken).actions
    assert isinstance(made, Create)
    assert made.manifest["metadata"]["name"] == "flights-nightly-20260510031700"
    assert made.manifest["metadata"]["annotations"] == {names.DUE_AT_ANNOTATION: "2026-05-10T03:00:00Z"}


def test_the_run_of_a_time_has_the_same_name_and_spec_each_time():
    (first,) = plan_schedule(CheckpointSeries(CHECKPOINTS, (LAST,), at("10T03:00"))).actions
    (again,) = plan_schedule(CheckpointSeries(CHECKPOINTS, (LAST,), at("10T03:17"))).actions
    assert isinstance(first, Create)
    assert first == again
    assert first.manifest["metadata"]["name"] == "flights-nightly-202605100300"
    assert first.manifest["metadata"]["ownerReferences"][0]["uid"] == "uid-1"
    assert first.manifest["metadata"]["labels"][names.OWNER_NAME_LABEL] == "flights-nightly"
    made = stored(first.manifest)
    assert isinstance(made, Checkpoint)
    assert made.spec == CHECKPOINTS.spec.template
    assert (run_of(made).due, run_of(made).requested, run_of(made).active) == (at("10T03:00"), False, True)
    assert (run_of(made).going, run_of(with_metadata(made, deletion_timestamp="2026-05-10T04:00:00Z")).going) == (False, True)


def test_the_longest_name_of_a_schedule_leaves_room_for_that_of_its_runs():
    longest = with_metadata(AUDITS, name="a" * 25, annotations={names.RUN_NOW_ANNOTATION: "yes"})
    created, _ = plan_schedule(RunSeries(longest, (LAST,), at("10T02:00"))).actions
    assert len(created.manifest["metadata"]["name"]) == 40
    assert isinstance(stored(created.manifest), ReplicationAudit)


def test_while_a_run_can_not_be_read_nothing_is_started_deleted_or_answered():
    asked = with_metadata(with_spec(CHECKPOINTS), annotations={names.RUN_NOW_ANNOTATION: "yes"})
    seen = CheckpointSeries(asked, Unknown("the Checkpoint x can't be read: spec.verify: odd"), at("10T03:00"))
    plan = plan_schedule(seen)
    assert plan.actions == ()
    assert plan.wait is not None
    assert plan.wait.reason is Reason.UNREADABLE
    assert summarize_scheduled_checkpoint(replace(seen, schedule=with_status(asked, verified=4)), {}).fields == {"verified": 4}
    assert summarize_scheduled_audit(RunSeries(AUDITS, seen.runs, seen.now)).health.status == "Unknown"


@pytest.mark.parametrize(
    ("runs", "now", "started", "answer"),
    [
        ((LAST,), "10T02:00", "flights-nightly-20260510020000", "done: flights-nightly-20260510020000"),
        # what is due is what was asked for
        ((LAST,), "10T03:00", "flights-nightly-202605100300", "done: flights-nightly-202605100300"),
        ((run("09T03:00"),), "10T02:00", None, "refused: run-09T03:00 is not over"),
        # made before, but not answered
        ((replace(run("10T01:59"), requested=True),), "10T02:00", None, "done: run-10T01:59"),
    ],
)
def test_a_run_that_is_asked_for_is_made_once_and_answered(runs, now, started, answer):
    asked = with_metadata(CHECKPOINTS, annotations={names.RUN_NOW_ANNOTATION: "yes"})
    plan = plan_schedule(CheckpointSeries(asked, runs, at(now)))
    assert [action.manifest["metadata"]["name"] for action in plan.actions[:-1]] == ([started] if started else [])
    assert plan.actions[-1] == AnswerRequest("ScheduledCheckpoint", "flights-nightly", "77", Request.RUN_NOW, answer)


@pytest.mark.parametrize("remembered_by", ["annotation", "status"])
def test_a_run_that_answered_a_request_does_not_answer_the_next_one(remembered_by):
    """It may lack what was written since it began. The plugin takes the earlier answer off."""
    earlier = replace(run("10T01:00"), requested=True)
    given = f"done: {earlier.name}"
    asked = {names.RUN_NOW_ANNOTATION: "yes"}
    if remembered_by == "annotation":
        schedule = with_metadata(CHECKPOINTS, annotations={**asked, names.RUN_NOW_ANSWER_ANNOTATION: given})
    else:
        schedule = with_metadata(with_status(CHECKPOINTS, last_request=given), annotations=asked)
    (answer,) = plan_schedule(CheckpointSeries(schedule, (earlier,), at("10T02:00"))).actions
    assert isinstance(answer, AnswerRequest)
    assert answer.answer == f"refused: {earlier.name} is not over"


def test_a_suspended_schedule_makes_a_run_that_is_asked_for():
    asked = with_metadata(with_spec(CHECKPOINTS, suspend=True), annotations={names.RUN_NOW_ANNOTATION: "yes"})
    created, _ = plan_schedule(CheckpointSeries(asked, (LAST,), at("10T03:00"))).actions
    assert created.manifest["metadata"]["annotations"] == {names.REQUESTED_AT_ANNOTATION: "2026-05-10T03:00:00Z"}


def test_a_suspended_schedule_says_so_and_still_lets_runs_expire():
    suspended = with_spec(AUDITS, suspend=True, successful_history_limit=1)
    runs = (run("08T03:00", "08T04:00"), LAST)
    plan = plan_schedule(RunSeries(suspended, runs, at("10T03:00")))
    assert plan.actions == (Delete("herdkeeper.io/v1alpha1", "ReplicationAudit", "run-08T03:00", "uid-run-08T03:00", Reason.RUN_EXPIRED),)
    assert plan.wait is not None
    assert plan.wait.reason is Reason.SUSPENDED


@pytest.mark.parametrize(("now", "seconds"), [("10T02:00", 3600), ("10T02:59:59.5", 0.5), ("10T02:59:59.99", 0.2)])
def test_a_schedule_is_looked_at_again_at_its_next_time(now, seconds):
    assert plan_schedule(CheckpointSeries(CHECKPOINTS, (LAST,), at(now))).requeue_after_seconds == pytest.approx(seconds)


def test_a_run_whose_deletion_waits_for_others_holds_up_no_schedule():
    going = run("09T03:00", going=True)
    series = RunSeries(CHECKPOINTS, (going,), at("10T03:00"))
    assert (series.decision, series.active) == (Start(at("10T03:00")), None)
    failed = run("08T03:00", "08T03:10", "Failed")
    assert summarize_scheduled_audit(replace(series, runs=(failed, going))).health.reason is Reason.LAST_RUN_FAILED


@pytest.mark.parametrize("annotation", [names.PAUSED_ANNOTATION, names.PLAN_ANNOTATION])
def test_a_deleted_run_whose_job_nobody_stops_since_it_is_paused_holds_up_its_schedule(annotation):
    """Two would write and read at once."""
    (created,) = plan_schedule(CheckpointSeries(CHECKPOINTS, (), at("09T03:00"))).actions
    deleted = with_metadata(stored(created.manifest), deletion_timestamp="2026-05-09T05:00:00Z")
    paused = with_metadata(deleted, annotations={**deleted.metadata.annotations, annotation: "true"})
    running = {"phase": "Running", "job": "a-job"}

    def decided(**status):
        return [RunSeries(CHECKPOINTS, (run_of(with_status(each, **status)),), at("10T03:00")).decision for each in (deleted, paused)]

    starts = Start(at("10T03:00"))
    assert decided(**running) == [starts, Missed(at("10T03:00"), f"{paused.metadata.name} was not over")]
    assert decided(phase="Pending") == [starts, starts], "it has no Job"


@pytest.mark.parametrize(
    ("newest", "now", "current"),
    [
        ("2026-05-09T03:40:00Z", "11T03:40", ("Unknown", "Unreadable")),
        ("2026-05-09T03:40:00Z", "11T03:41", ("False", "CheckpointOverdue")),
        (None, "09T04:00", ("False", "CheckpointOverdue")),
    ],
)
def test_checkpoints_become_overdue_also_while_the_runs_can_not_be_read(newest, now, current):
    before = with_status(CHECKPOINTS, newest_verified_time=newest)
    summary = summarize_scheduled_checkpoint(CheckpointSeries(before, Unknown("x can't be read"), at(now)), {})
    found = summary.conditions["Current"]
    assert (found.status, found.reason.value) == current
    assert found.message.endswith("x can't be read")
    assert (summary.health.status, summary.health.reason) == ("Unknown", Reason.UNREADABLE)


def test_a_schedule_tells_what_its_run_waits_for():
    waits = run("08T03:00", phase="Pending", message="the Tablespace flights is not Ready")
    told = "run-08T03:00 waits (the Tablespace flights is not Ready)"
    assert summarize_scheduled_audit(RunSeries(AUDITS, (waits,), at("08T04:00"))).health.message.startswith(f"{told}; the next run is due")
    overdue = summarize_scheduled_checkpoint(CheckpointSeries(CHECKPOINTS, (waits,), at("20T04:00")), {}).health
    assert (overdue.reason, overdue.message.endswith(f"; {told}")) == (Reason.CHECKPOINT_OVERDUE, True)


def test_a_later_run_counts_though_an_earlier_one_was_made_while_the_clock_was_ahead():
    ahead, later = run("20T03:00", "09T03:40", "Failed"), replace(run("10T02:00", "10T02:30", findings=0), requested=True)
    told = summarize_scheduled_audit(RunSeries(AUDITS, (later, ahead), at("10T04:00")))
    assert told.health.status == "True"
    kept = with_spec(AUDITS, successful_history_limit=1)
    found = replace(ahead, phase="Succeeded", findings=5)
    assert [one.name for one in expired_runs(kept, (later, found), at("10T04:00"))] == [found.name]
    assert summarize_scheduled_audit(RunSeries(AUDITS, (later, found), at("10T04:00"))).fields["lastFindings"] == 0


def test_after_a_run_of_a_clock_that_was_ahead_the_next_one_is_told_for_when_it_is_made():
    series = RunSeries(AUDITS, (run("20T03:00", "20T03:40"),), at("10T04:00"))
    told = summarize_scheduled_audit(series)
    assert told.fields["nextScheduleTime"] == "2026-05-21T03:00:00Z"
    assert replace(series, now=at("21T02:59")).decision == NotDue()
    assert replace(series, now=at("21T03:00")).decision == Start(at("21T03:00"))


REFUSED = {
    "conditions": (
        Condition(
            type="Ready",
            status="False",
            reason="InvalidSpec",
            message="no",
            last_transition_time="2026-05-09T03:00:01Z",
            observed_generation=1,
        ),
    ),
    "message": "spec.verify is Follower: no follower",
}


@pytest.mark.parametrize("phase", [None, "Pending"])
def test_a_run_whose_spec_is_refused_does_not_hold_up_its_schedule(phase):
    (created,) = plan_schedule(CheckpointSeries(CHECKPOINTS, (), at("09T03:00"))).actions
    made = run_of(with_status(stored(created.manifest), phase=phase, **REFUSED))
    assert (made.phase, made.verified, made.completed) == ("Failed", False, at("09T03:00:01"))
    assert RunSeries(CHECKPOINTS, (made,), at("10T03:00")).decision == Start(at("10T03:00"))


@pytest.mark.parametrize("begun", [{"phase": "Pending", "job": "a-job"}, {"phase": "Paused", "job": "a-job"}])
def test_a_refused_run_that_has_a_job_gets_no_second_one_beside_it(begun):
    (created,) = plan_schedule(RunSeries(AUDITS, (), at("09T03:00"))).actions
    active = run_of(with_status(stored(created.manifest), **begun, **REFUSED))
    assert active.active
    told = summarize_scheduled_audit(RunSeries(AUDITS, (active,), at("10T02:00"))).health
    assert (told.status, told.reason) == ("False", Reason.INVALID_SPEC)
    assert told.message.startswith(
        f"until it is corrected or deleted, no other run is made: {active.name} waits (spec.verify is Follower: no follower); the next run"
    )


def test_the_reason_of_a_failed_run_is_told_while_the_run_is_deleted():
    (created,) = plan_schedule(CheckpointSeries(CHECKPOINTS, (), at("09T03:00"))).actions
    failed = with_status(stored(created.manifest), phase="Failed", failure="the bookies are full", message="it is being deleted: a Job")
    assert run_of(failed).message == "the bookies are full"


def test_a_checkpoint_that_succeeded_is_verified_only_where_it_says_how():
    (created,) = plan_schedule(CheckpointSeries(CHECKPOINTS, (), at("09T03:00"))).actions
    ended = {"phase": "Succeeded", "completed_at": "2026-05-09T03:30:00Z"}
    assert not run_of(with_status(stored(created.manifest), **ended)).verified
    assert run_of(with_status(stored(created.manifest), **ended, verified="files re-read")).verified


@pytest.mark.parametrize(
    ("spec", "runs", "now", "ready", "current"),
    [
        ({}, (), "01T13:00", ("True", "Scheduled"), "True"),
        ({}, (LAST,), "10T02:00", ("True", "Scheduled"), "True"),
        ({}, (LAST, run("10T03:00")), "10T03:10", ("True", "Scheduled"), "True"),
        ({}, (LAST, run("10T03:00", "10T03:10", "Failed", message="no bookie")), "10T03:11", ("False", "LastRunFailed"), "True"),
        ({}, (run("09T03:00"),), "10T03:00", ("False", "CheckpointOverdue"), "False"),
        ({}, (run("08T03:00", "08T03:40"), run("09T03:00")), "10T03:00", ("True", "TimeMissed"), "True"),
        # two periods after 3:40 on the 9th
        ({}, (LAST, run("10T03:00", "10T03:10", "Failed")), "11T03:40", ("False", "LastRunFailed"), "True"),
        ({}, (LAST, run("10T03:00", "10T03:10", "Failed")), "11T03:41", ("False", "CheckpointOverdue"), "False"),
        ({"suspend": True}, (LAST,), "10T04:00", ("True", "Suspended"), "True"),
        ({"suspend": True}, (LAST,), "20T04:00", ("False", "CheckpointOverdue"), "False"),
    ],
)
def test_what_a_scheduled_checkpoints_conditions_say(spec, runs, now, ready, current):
    summary = summarize_scheduled_checkpoint(CheckpointSeries(with_spec(CHECKPOINTS, **spec), runs, at(now)), {})
    assert (summary.health.status, summary.health.reason.value) == ready
    assert summary.conditions["Current"].status == current


def test_a_verified_checkpoint_that_somebody_deleted_is_none_any_more():
    before = with_status(CHECKPOINTS, last_successful_time="2026-05-09T03:40:00Z", newest_verified=LAST.name, verified=1)
    for runs in ((), (replace(LAST, going=True),)):
        summary = summarize_scheduled_checkpoint(CheckpointSeries(before, runs, at("09T05:00")), {})
        assert (summary.health.reason, summary.conditions["Current"].status) == (Reason.CHECKPOINT_OVERDUE, "False")
        assert (summary.fields["newestVerified"], summary.fields["verified"]) == (None, 0)
        assert summary.fields["lastSuccessfulTime"] == "2026-05-09T03:40:00Z", "that there was one stays true"


def test_a_checkpoint_of_another_tablespace_or_an_earlier_one_of_the_name_makes_no_schedule_current():
    """The schedule was pointed at another Tablespace, or its tablespace was dropped and made again."""
    named = CHECKPOINTS.spec.template.tablespace_ref.name
    mine, other = replace(LAST, tablespace=named, log=LogIdentity("i", "a-uuid")), replace(LAST, tablespace="another")
    earlier = replace(mine, log=LogIdentity("i", "an-earlier-one"))
    seen = CheckpointSeries(CHECKPOINTS, (), at("09T05:00"), tablespace=with_status(quickstart("Tablespace"), uuid="a-uuid"))
    for runs, newest, current in (((mine,), LAST.name, "True"), ((other,), None, "False"), ((earlier,), None, "False")):
        summary = summarize_scheduled_checkpoint(replace(seen, runs=runs), {})
        assert (summary.fields["newestVerified"], summary.conditions["Current"].status) == (newest, current)
    unknown = replace(seen, runs=(earlier,), tablespace=Unknown("it can't be read"))
    assert summarize_scheduled_checkpoint(unknown, {}).conditions["Current"].status == "True", "nobody knows its log"


def test_checkpoints_that_no_restore_can_load_make_no_schedule_current():
    def current(now: str, *runs: Run) -> tuple[str, str]:
        found = summarize_scheduled_checkpoint(CheckpointSeries(CHECKPOINTS, runs, at(now)), {}).conditions["Current"]
        return found.status, found.message

    older, newest = run("08T03:00", "08T03:40"), replace(LAST, restorable=False)
    status, message = current("09T05:00", older, newest)
    assert (status, f"{LAST.name} can't be restored as it is" in message, text_of(at("08T03:40")) in message) == ("True", True, True)
    assert current("10T03:41", older, newest)[0] == "False", "two periods after the one that can be restored"
    assert current("09T05:00", newest)[0] == "False"
    assert current("10T03:41", older, LAST)[0] == "True"


def test_the_gauge_shows_the_time_of_a_verified_checkpoint_that_is_still_there():
    def shown(*runs: Run) -> float | None:
        before = with_status(CHECKPOINTS, last_successful_time="2026-05-09T03:40:00Z")
        show_figures(before.KIND, "demo", "x", summarize_scheduled_checkpoint(CheckpointSeries(before, runs, at("09T05:00")), {}).fields)
        labels = {"namespace": "demo", "schedule": "x"}
        return REGISTRY.get_sample_value("herdkeeper_checkpoint_last_verified_timestamp_seconds", labels)

    older = run("08T03:00", "08T03:40")
    assert shown(older, LAST) == at("09T03:40").timestamp()
    assert shown(older, replace(LAST, going=True)) == at("08T03:40").timestamp()
    assert shown() is None


def test_the_alarm_of_a_schedule_for_working_days_is_not_given_at_a_weekend():
    working_days = timetable_of(with_spec(CHECKPOINTS, schedule="0 3 * * 1-5").spec)
    assert overdue_at(working_days, at("08T03:40")) == at("12T03:40")  # a Friday and the Tuesday


def test_the_status_remembers_what_became_of_runs_that_are_deleted():
    before = with_status(
        AUDITS,
        last_schedule_time="2026-05-09T03:00:00Z",
        last_successful_time="2026-05-09T03:40:00Z",
        last_missed_time="2026-05-08T03:00:00Z",
        last_findings=5,
    )
    fields = summarize_scheduled_audit(RunSeries(before, (), at("09T05:00"))).fields
    assert fields == {
        "lastScheduleTime": "2026-05-09T03:00:00Z",
        "lastSuccessfulTime": "2026-05-09T03:40:00Z",
        "nextScheduleTime": "2026-05-10T03:00:00Z",
        "lastMissedTime": "2026-05-08T03:00:00Z",
        "lastFindings": 5,
        "instanceId": None,
        "active": None,
        "lastRequest": None,
    }


def test_the_status_tells_of_the_newest_runs():
    runs = (run("08T03:00", "08T03:40", findings=9), run("09T03:00", "09T03:40", findings=0), run("10T03:00"))
    fields = summarize_scheduled_audit(RunSeries(AUDITS, runs, at("10T03:10"))).fields
    assert (fields["active"], fields["lastFindings"]) == ("run-10T03:00", 0)
    assert (fields["lastScheduleTime"], fields["lastSuccessfulTime"]) == (text_of(at("10T03:00")), text_of(at("09T03:40")))
    fields = summarize_scheduled_checkpoint(CheckpointSeries(CHECKPOINTS, runs, at("10T03:10")), {}).fields
    assert (fields["newestVerified"], fields["verified"]) == ("run-09T03:00", 2)


def test_what_an_audit_found_in_an_earlier_cluster_of_the_same_name_is_not_told_of_this_one():
    anew = with_status(bookkeeper_serving(), instance_id="new")

    def told(schedule, *runs: Run) -> tuple[int | None, str | None]:
        fields = summarize_scheduled_audit(RunSeries(schedule, runs, at("10T03:10"), audited=anew)).fields
        return fields["lastFindings"], fields["instanceId"]

    old, new = (run(f"{day}T03:00", f"{day}T03:40", findings=n, instance_id=of) for day, n, of in (("08", 9, "old"), ("09", 2, "new")))
    assert told(AUDITS, old) == (None, None)
    assert told(AUDITS, old, new) == (2, "new")
    assert told(AUDITS, new, replace(old, due=at("10T03:00"))) == (2, "new")
    assert told(with_status(AUDITS, last_findings=9, instance_id="old")) == (None, None)
    assert told(with_status(AUDITS, last_findings=2, instance_id="new"), old) == (2, "new")


def test_nothing_is_deleted_while_it_is_not_known_what_the_archive_needs():
    runs = tuple(run(f"0{number}T03:00", f"0{number}T03:40") for number in range(2, 10))
    few = with_spec(CHECKPOINTS, retention=Retention(keep_last=1))
    archive = LogArchive(destination=Destination(persistent_volume_claim=ClaimDestination(claim_name="archive")))
    tablespace = with_spec(quickstart("Tablespace"), log=TablespaceLog(archive=archive))
    seen = CheckpointSeries(few, runs, at("10T02:59"))
    for unknown in (
        replace(seen, tablespace=Unknown("the Tablespace flights can't be read")),
        replace(seen, tablespace=tablespace, checkpoints=Unknown("the Checkpoint x can't be read")),
        replace(seen, tablespace=tablespace),
        replace(seen, tablespace=with_status(tablespace, uuid="a-uuid"), instance_id=instance_of(None, "bk")),
    ):
        plan = plan_schedule(unknown)
        assert plan.actions == ()
        assert plan.wait is not None
        assert (plan.wait.reason, plan.wait.message.endswith("; nothing is deleted until then")) == (Reason.UNREADABLE, True)
        assert len(plan_schedule(replace(unknown, now=at("10T03:00"))).actions) == 1, "what is due is made all the same"
    assert len(plan_schedule(replace(seen, tablespace=quickstart("Tablespace"))).actions) == 7


def test_a_tablespace_that_is_gone_takes_no_checkpoint_with_it_that_its_archive_may_need():
    runs = tuple(run(f"0{number}T03:00", f"0{number}T03:40") for number in range(2, 10))
    few = with_spec(CHECKPOINTS, retention=Retention(keep_last=1))
    seen = CheckpointSeries(few, runs, at("10T02:59"), tablespace=quickstart("Tablespace"))
    assert len(plan_schedule(seen).actions) == 7
    assert plan_schedule(replace(seen, tablespace=None)).actions == ()
    failed = tuple(run(f"0{number}T03:00", f"0{number}T03:40", "Failed") for number in range(2, 10))
    history = with_spec(CHECKPOINTS, failed_history_limit=1)
    assert len(plan_schedule(CheckpointSeries(history, failed, at("10T02:59"))).actions) == 7, "no archive stands on these"
    audits = with_spec(AUDITS, successful_history_limit=1)
    assert len(plan_schedule(RunSeries(audits, runs, at("10T02:59"))).actions) == 7, "nor on audits"
