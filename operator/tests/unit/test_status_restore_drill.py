"""What a schedule tells of its restore drills: what was drawn, what became of it, and whether that is recent enough."""

from __future__ import annotations

from dataclasses import replace

import pytest
from prometheus_client import REGISTRY
from situations import live, with_metadata, with_spec, with_status
from test_plan_restore_drill import (
    ARCHIVED,
    JOB,
    MOMENT_CHECKPOINT,
    NIGHTS,
    SCHEDULE,
    SPARK,
    TABLESPACE,
    UNUSABLE,
    UUID,
    noted,
    of_the_moment,
    seen,
    without_secret,
)
from test_plan_schedule import at

from herdkeeper.api.resource import Condition
from herdkeeper.engine.gauges.drills import forget_drill, show_drill
from herdkeeper.jobs.drill import state
from herdkeeper.jobs.drill.plan import plan_drill, plan_scheduled_checkpoint
from herdkeeper.jobs.drill.state import DrillObserved, drawn_name
from herdkeeper.jobs.drill.status import drill_ended, drill_fields, drill_sentence, own_drill
from herdkeeper.jobs.schedule.status import summarize_scheduled_checkpoint
from herdkeeper.protocol.job_summary import JobOutcome, RestoreSummary
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.unknown import Unknown

ENDED_AT = "2026-05-10T05:09:00Z"
REFUSED = Condition(type="Ready", status="False", reason="InvalidSpec", message="no", last_transition_time=ENDED_AT, observed_generation=1)
DRAWN = NIGHTS[1].metadata.name
RESTORED = RestoreSummary(
    "r", JobOutcome.SUCCEEDED, "300 rows restored", rows=300, tables=2, verified="300 rows compared", duration_seconds=61.23
)
DIFFERS = RestoreSummary("r", JobOutcome.INVARIANT_VIOLATED, "table 'a': the checkpoint has 3 rows (digest 1), SQL returns 2 (digest 2)")


def with_job(ended: str | None = None, said: RestoreSummary | None = None, schedule=None, server: dict | None = None, checkpoints=NIGHTS):
    """What is seen of the drill's Job, which has ended if it is said how."""
    (created,) = plan_drill(seen(checkpoints=checkpoints, schedule=schedule or noted()), SPARK).actions
    condition = {"type": ended, "status": "True", "reason": "R", "message": "it ended", "lastTransitionTime": ENDED_AT}
    job = {**created.manifest, "status": {"conditions": [condition], "completionTime": ENDED_AT} if ended else {}}
    terminated = {"exitCode": 0, "message": said.to_json()} if said is not None else {"exitCode": 3}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "creationTimestamp": ENDED_AT, "labels": {"batch.kubernetes.io/job-name": JOB}},
        "status": {
            "phase": "Succeeded" if ended else "Running",
            "containerStatuses": [{"name": "driver", "state": {"terminated": terminated} if ended else {"running": {}}}],
            "initContainerStatuses": [{"name": "herddb", "state": {"running": {}}, "lastState": {"terminated": server} if server else {}}],
        },
    }
    found = seen(at("10T05:10"), checkpoints)
    items = {**live([job]), ("Pod", "p"): pod}
    return replace(found, drill=DrillObserved(Objects(items), found.drill.checkpoints, found.drill.herddb))


def summarized(observed):
    """What the status tells, given what the plan notes."""
    return summarize_scheduled_checkpoint(observed, plan_scheduled_checkpoint(observed, SPARK).decided_fields)


def fields_of(observed):
    """The same of the drill's fields alone."""
    return drill_fields(observed, plan_drill(observed, SPARK).decided_fields)


def noted_by_plan(observed):
    """The drill that the plan notes, which the status stores as it is."""
    told = fields_of(observed)["lastDrill"]
    assert plan_drill(observed, SPARK).decided_fields == {"lastDrill": told}
    return told


def test_drills_are_told_of_from_when_they_are_declared_on_and_not_without():
    fresh = with_status(SCHEDULE, drills_since=None)
    assert fields_of(seen(schedule=fresh)) == {"drillsSince": "2026-05-10T05:00:00Z", "lastDrill": None}
    assert fields_of(seen(schedule=with_spec(noted(), drill=None))) == {}
    assert "RestoreDrilled" not in summarized(seen(schedule=with_spec(noted(), drill=None))).conditions


def test_what_is_drawn_is_noted_with_its_moment_and_the_newest_success():
    before = noted(outcome="Succeeded", due="2026-05-03T05:00:00Z", last_successful_time="2026-05-03T05:09:00Z")
    drill = noted_by_plan(seen(schedule=before))
    drawn = next(night for night in NIGHTS if night.metadata.name == drill["checkpoint"])
    assert drill == {
        "scheduledTime": "2026-05-10T05:00:00Z",
        "outcome": "Running",
        "message": "chosen, and about to be restored",
        "checkpoint": drawn.metadata.name,
        "moment": drawn.status.lsn_timestamp,
        "lastSuccessfulTime": "2026-05-03T05:09:00Z",
    }
    of_a_moment = noted_by_plan(seen(tablespace=ARCHIVED, schedule=before))
    assert of_a_moment["checkpoint"] == MOMENT_CHECKPOINT
    assert "2026-05-01" <= of_a_moment["moment"] <= "2026-05-10T04:59:59.500Z"
    assert fields_of(seen(checkpoints=(), schedule=before))["lastDrill"]["outcome"] == "Succeeded", (
        "it waits, and the last one is still told"
    )


def test_what_a_drill_restores_is_drawn_once_for_plan_and_status(monkeypatch):
    drawn = []
    monkeypatch.setattr(state, "drawn_name", lambda names, seed: drawn.append(seed) or drawn_name(names, seed))
    summarized(seen())
    assert len(drawn) == 1


@pytest.mark.parametrize("failed", [False, True], ids=["none before", "one failed"])
def test_a_drill_whose_secret_is_missing_says_so_at_once_whatever_became_of_the_one_before(failed):
    schedule = failed_before(noted()) if failed else noted()
    summary = summarized(replace(without_secret(seen()), schedule=schedule))
    told = summary.conditions["RestoreDrilled"]
    assert (told.status, told.reason) == ("False", "DrillFailed" if failed else "WaitingForSecret")
    assert told.message.endswith(f" waits: {UNUSABLE.why}")
    drill = summary.fields["lastDrill"]
    assert (drill["outcome"], drill["message"]) == ("Running", f"waits: {UNUSABLE.why}")
    mended = summarized(seen(schedule=schedule))
    assert mended.conditions["RestoreDrilled"].reason != "WaitingForSecret"
    assert mended.fields["lastDrill"]["outcome"] == "Running"


def test_that_a_drill_failed_is_not_forgotten_while_the_next_one_waits_for_its_secret():
    schedule = failed_before(noted())
    for _ in range(2):
        told = summarized(replace(without_secret(seen()), schedule=schedule)).conditions["RestoreDrilled"]
        assert told.message == f"two rows differ; the next one waits: {UNUSABLE.why}"
        before = schedule.status.conditions[0].model_copy(update={"message": told.message})
        schedule = schedule.model_copy(update={"status": schedule.status.model_copy(update={"conditions": (before,)})})
    mended = summarized(seen(schedule=schedule)).conditions["RestoreDrilled"]
    assert (mended.reason, mended.message) == ("DrillFailed", "two rows differ")


def test_a_drill_whose_job_runs_already_tells_what_the_job_tells():
    found = without_secret(with_job())
    assert fields_of(replace(found, schedule=noted()))["lastDrill"]["message"] == "the job is running"
    assert summarized(replace(found, schedule=noted())).conditions["RestoreDrilled"].reason != "WaitingForSecret"


def test_a_drill_that_compared_all_rows_succeeded():
    drill = fields_of(replace(with_job("Complete", RESTORED), schedule=noted()))["lastDrill"]
    assert {name: drill[name] for name in ("outcome", "message", "rows", "tables", "seconds", "job")} == {
        "outcome": "Succeeded",
        "message": "300 rows compared",
        "rows": 300,
        "tables": 2,
        "seconds": 61.2,
        "job": JOB,
    }
    assert drill["lsn"] == {"ledgerId": 1, "entryId": 8}, "the Checkpoint's, where the job does not tell"
    told = fields_of(replace(with_job("Complete", replace(RESTORED, ledger_id=1, entry_id=9)), schedule=noted()))["lastDrill"]
    assert told["lsn"] == {"ledgerId": 1, "entryId": 9}
    assert (drill["completedAt"], drill["lastSuccessfulTime"]) == (ENDED_AT, ENDED_AT)


@pytest.mark.parametrize(
    ("situation", "told"),
    [
        (with_job("Failed", DIFFERS), "table 'a': the checkpoint has 3 rows (digest 1), SQL returns 2 (digest 2)"),
        (with_job("Failed"), "R: it ended"),
        (
            with_job("Failed", server={"exitCode": 64, "message": "arguments throwaway are not understood"}),
            "R: it ended; its HerdDB server had ended (exit code 64): arguments throwaway are not understood",
        ),
        (with_job("Complete"), "its Job succeeded without a result"),
    ],
)
def test_a_drill_that_failed_tells_the_first_difference_or_what_stood_in_the_way(situation, told):
    before = noted(last_successful_time="2026-05-03T05:09:00Z")
    drill = fields_of(replace(situation, schedule=before))["lastDrill"]
    assert (drill["outcome"], drill["message"]) == ("Failed", told)
    assert drill["lastSuccessfulTime"] == "2026-05-03T05:09:00Z"


def test_a_drill_that_goes_on_says_what_it_waits_for():
    assert fields_of(replace(with_job(), schedule=noted()))["lastDrill"]["message"] == "the job is running"
    schedule = noted(MOMENT_CHECKPOINT, moment="2026-05-03T12:00:00.000Z")
    assert fields_of(seen(schedule=schedule))["lastDrill"]["outcome"] == "Running"
    making = seen(checkpoints=(*NIGHTS, of_the_moment({"phase": "Running", "message": "the job is running"})))
    assert fields_of(replace(making, schedule=schedule))["lastDrill"]["message"] == "its Checkpoint is being made: the job is running"


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (of_the_moment({"phase": "Failed", "message": "no ledger 7"}), "no Checkpoint of that moment could be made: no ledger 7"),
        (
            of_the_moment({"phase": "Pending", "message": "spec.verify is Follower: no follower", "conditions": (REFUSED,)}),
            "no Checkpoint of that moment could be made: spec.verify is Follower: no follower",
        ),
        (of_the_moment({"phase": "Succeeded", "message": "the job ended"}), "its Checkpoint did not report that it was verified"),
        (
            of_the_moment({"phase": "Running"}, deletion_timestamp="2026-05-10T05:01:00Z"),
            "its Checkpoint was deleted before it was restored",
        ),
    ],
)
def test_a_moment_that_can_not_be_made_is_a_drill_that_the_plan_gives_up(made, told):
    observed = seen(checkpoints=(*NIGHTS, made), schedule=noted(MOMENT_CHECKPOINT, moment="2026-05-03T12:00:00.000Z"))
    drill = noted_by_plan(observed)
    assert (drill["outcome"], drill["message"]) == ("Failed", told)
    undecided = drill_fields(observed, {})["lastDrill"]
    assert (undecided["outcome"], undecided["message"]) == ("Running", told), "paused: the status shows the cause, and decides nothing"


def test_a_drill_whose_job_runs_or_ended_is_not_decided_by_the_plan():
    for observed in (with_job(), with_job("Complete", RESTORED), with_job("Failed", DIFFERS)):
        assert plan_drill(replace(observed, schedule=noted()), SPARK).decided_fields == {}


def test_in_the_place_of_a_checkpoint_that_somebody_deletes_another_one_is_drawn_while_there_is_one():
    going = with_metadata(NIGHTS[1], deletion_timestamp="2026-05-10T05:00:01Z")
    drill = noted_by_plan(seen(checkpoints=(going, NIGHTS[2]), schedule=noted()))
    assert (drill["outcome"], drill["checkpoint"], drill["scheduledTime"]) == ("Running", NIGHTS[2].metadata.name, "2026-05-10T05:00:00Z")
    none_left = noted_by_plan(seen(checkpoints=(going,), schedule=noted()))
    assert none_left["outcome"] == "Failed"
    assert none_left["message"].startswith(f"the Checkpoint {DRAWN} was deleted before it was restored")
    reading = with_job()
    kept = replace(reading, drill=replace(reading.drill, checkpoints=(going, NIGHTS[2])))
    assert fields_of(replace(kept, schedule=noted()))["lastDrill"]["checkpoint"] == DRAWN, "its removal waits for what reads it"


@pytest.mark.parametrize("tablespace", [Unknown("the Tablespace flights can't be read"), None, TABLESPACE])
def test_a_drill_whose_checkpoint_was_deleted_does_not_fail_while_nobody_can_tell_what_else_there_is(tablespace):
    going = with_metadata(NIGHTS[1], deletion_timestamp="2026-05-10T05:00:01Z")
    drill = fields_of(seen(checkpoints=(going, NIGHTS[2]), tablespace=tablespace, herddb=None, schedule=noted()))["lastDrill"]
    assert (drill["outcome"], drill["checkpoint"]) == ("Running", DRAWN)
    assert drill["message"].startswith("waits: the Tablespace flights")


def test_while_the_schedule_is_paused_no_other_checkpoint_is_drawn_and_the_drill_is_told_of_as_it_was():
    going = with_metadata(NIGHTS[1], deletion_timestamp="2026-05-10T05:00:01Z")
    before = drill_fields(seen(schedule=noted()), {})["lastDrill"]
    for left in ((going, NIGHTS[2]), (going,)):
        assert drill_fields(seen(checkpoints=left, schedule=noted()), {})["lastDrill"] == before


def failed_before(schedule):
    entry = Condition(
        type="RestoreDrilled",
        status="False",
        reason="DrillFailed",
        message="two rows differ",
        last_transition_time=ENDED_AT,
        observed_generation=1,
    )
    return schedule.model_copy(update={"status": schedule.status.model_copy(update={"conditions": (entry,)})})


SUCCESS = {"last_successful_time": "2026-05-10T05:09:00Z"}


@pytest.mark.parametrize(
    ("schedule", "now", "told"),
    [
        (SCHEDULE, "10T04:00", ("Unknown", "NotDrilled")),
        (noted(), "10T05:01", ("Unknown", "NotDrilled")),
        (noted(outcome="Succeeded", **SUCCESS), "11T00:00", ("True", "Drilled")),
        (noted(outcome="Failed", due="2026-05-17T05:00:00Z", **SUCCESS), "17T05:10", ("False", "DrillFailed")),
        (noted(due="2026-05-17T05:00:00Z", **SUCCESS), "17T05:10", ("True", "Drilled")),
        (failed_before(noted(due="2026-05-17T05:00:00Z", **SUCCESS)), "17T05:10", ("False", "DrillFailed")),
        # two periods after the newest success, or after drills were declared
        (noted(due="2026-05-17T05:00:00Z", **SUCCESS), "24T05:09", ("True", "Drilled")),
        (noted(due="2026-05-17T05:00:00Z", **SUCCESS), "24T05:10", ("False", "DrillOverdue")),
        (with_spec(SCHEDULE, suspend=True), "18T00:01", ("False", "DrillOverdue")),
        (with_status(SCHEDULE, drills_since="2026-05-17T00:00:00Z"), "18T00:00", ("Unknown", "NotDrilled")),
    ],
)
def test_whether_a_restore_was_tried_of_late(schedule, now, told):
    summary = summarized(seen(at(now), schedule=schedule))
    drilled = summary.conditions["RestoreDrilled"]
    assert (drilled.status, drilled.reason.value) == told
    if drilled.status == "False" and summary.conditions["Current"].status == "True":
        assert summary.health == drilled, "who looks at Ready alone is told, too"


AGAIN = with_status(TABLESPACE, uuid=UUID)
"""The tablespace, made again under its name."""


@pytest.mark.parametrize(
    ("uuid", "outcome", "now", "told"),
    [
        (UUID, "Succeeded", "10T06:00", ("True", "Drilled")),
        (None, "Succeeded", "10T06:00", ("True", "Drilled")),
        ("earlier", "Succeeded", "10T06:00", ("Unknown", "NotDrilled")),
        ("earlier", "Failed", "10T06:00", ("Unknown", "NotDrilled")),
        ("earlier", "Succeeded", "24T04:59", ("Unknown", "NotDrilled")),
        ("earlier", "Succeeded", "24T05:01", ("False", "DrillOverdue")),
    ],
)
def test_a_drill_of_an_earlier_tablespace_says_nothing_of_the_present_one(uuid, outcome, now, told):
    schedule = noted(outcome=outcome, tablespace_uuid=uuid, **SUCCESS)
    observed = seen(at(now), tablespace=AGAIN, schedule=schedule)
    summary = summarize_scheduled_checkpoint(observed, {})
    drilled = summary.conditions["RestoreDrilled"]
    assert (drilled.status, drilled.reason.value) == told
    assert summary.fields["lastDrill"]["outcome"] == outcome, "a fact stays"
    assert (own_drill(observed, summary.fields) is None) == (uuid == "earlier")


def test_the_first_drill_of_a_tablespace_made_again_takes_over_nothing_of_the_earlier_one():
    last = noted(outcome="Failed", due="2026-05-03T05:00:00Z", tablespace_uuid="earlier", **SUCCESS).status.last_drill
    schedule = failed_before(noted())
    long_ago = {"drills_since": "2026-01-01T00:00:00Z", "last_drill": last}
    schedule = schedule.model_copy(update={"status": schedule.status.model_copy(update=long_ago)})
    summary = summarized(seen(tablespace=AGAIN, schedule=schedule))
    drill = summary.fields["lastDrill"]
    assert (drill["outcome"], drill["tablespaceUuid"], "lastSuccessfulTime" in drill) == ("Running", UUID, False)
    assert summary.fields["drillsSince"] == "2026-05-03T05:00:00Z"
    assert summary.conditions["RestoreDrilled"].reason.value == "NotDrilled"


def test_a_drill_that_waits_for_something_to_restore_says_so():
    drilled = summarized(seen(checkpoints=())).conditions["RestoreDrilled"]
    assert drilled.message == (
        "no restore drill of this tablespace has succeeded yet; one is due, and this schedule has no verified Checkpoint of this tablespace"
        " yet"
    )


def test_what_is_known_of_drills_stays_while_runs_can_not_be_read():
    fields = summarized(replace(seen(), runs=Unknown("one can't be read"), schedule=noted(outcome="Failed"))).fields
    assert fields["lastDrill"]["outcome"] == "Failed"
    assert fields["drillsSince"] == "2026-05-04T00:00:00Z"


def test_the_end_of_a_drill_is_told_once():
    before = {"outcome": "Running"}
    after = fields_of(replace(with_job("Complete", RESTORED), schedule=noted(moment="2026-05-08T03:00:00Z")))["lastDrill"]
    assert drill_ended(before, before) is None
    assert drill_ended(None, before) is None
    assert drill_ended(after, after) is None
    assert drill_ended(before, None) is None
    assert drill_ended(before, after) == after
    assert drill_sentence(after) == (
        f"the restore drill of 2026-05-10T05:00:00Z, of the Checkpoint {DRAWN} (2026-05-08T03:00:00Z), succeeded: 300 rows compared"
    )


def gauge(name: str) -> float | None:
    return REGISTRY.get_sample_value(f"herdkeeper_restore_drill_{name}", {"namespace": "demo", "schedule": "flights-nightly"})


def test_the_newest_drill_that_ended_is_a_metric_until_there_are_no_drills():
    show_drill(SCHEDULE, fields_of(replace(with_job("Complete", RESTORED), schedule=noted()))["lastDrill"])
    assert (gauge("failed"), gauge("seconds"), gauge("last_success_timestamp_seconds")) == (0, 61.2, 1778389740)
    show_drill(SCHEDULE, {"outcome": "Failed"})
    assert (gauge("failed"), gauge("seconds")) == (1, 61.2)
    show_drill(SCHEDULE, {"outcome": "Running"})
    assert gauge("failed") == 1
    show_drill(SCHEDULE, None)
    assert gauge("failed") is None
    forget_drill(ObjectKey("demo", "flights-nightly"))
