"""Schedules on a real API server: their runs appear in time, once, and go when they have expired."""

from __future__ import annotations

import datetime
from typing import Any

from stage import Stage, nothing_written

from herdkeeper.api import Checkpoint, ReplicationAudit
from herdkeeper.api.resource import Resource
from herdkeeper.clients.kubernetes import KubernetesReader, LiveSource
from herdkeeper.engine.result import Outcome
from herdkeeper.shared import names
from herdkeeper.shared.time import text_of

CHECKPOINTS, AUDITS = "ScheduledCheckpoint", "ScheduledReplicationAudit"
CHECKPOINT = {"tablespaceRef": {"name": "flights"}, "destination": {"persistentVolumeClaim": {"claimName": "checkpoints"}}}
DAYS = [datetime.datetime(2100, 1, day, 3, tzinfo=datetime.UTC) for day in range(1, 6)]
HOUR = datetime.timedelta(hours=1)


def runs(stage: Stage, kind: type[Resource]) -> list[str]:
    return [str(document["metadata"]["name"]) for document in KubernetesReader(LiveSource(stage.dynamic)).documents(kind, stage.namespace)]


def end(stage: Stage, kind: str, name: str, when: datetime.datetime, **fields: Any) -> None:
    """The run's own reconcile found its Job ended."""
    stage.set_status(kind, name, {"phase": "Succeeded", "completedAt": text_of(when), **fields})


def test_checkpoints_are_made_in_time_once_and_the_newest_verified_one_outlives_its_successors(stage: Stage) -> None:
    stage.declare("Tablespace", "flights", {"herdDBRef": {"name": "db"}})
    stage.declare(CHECKPOINTS, "nightly", {"schedule": "0 3 * * *", "retention": {"keepLast": 1}, "template": CHECKPOINT})
    assert stage.reconcile(CHECKPOINTS, "nightly").requeue_after_seconds is not None
    assert runs(stage, Checkpoint) == []
    assert stage.condition(CHECKPOINTS, "nightly") == ("True", "Scheduled")
    first, second, third = (names.scheduled_run("nightly", day) for day in DAYS[:3])

    for _ in range(2):
        stage.reconcile_at(DAYS[0], CHECKPOINTS, "nightly")
    assert runs(stage, Checkpoint) == [first]
    made = stage.found("Checkpoint", first)
    assert made["spec"]["tablespaceRef"] == {"name": "flights"}
    assert made["metadata"]["ownerReferences"][0]["name"] == "nightly"
    with nothing_written(stage):
        stage.reconcile_at(DAYS[0], CHECKPOINTS, "nightly")
    assert stage.found(CHECKPOINTS, "nightly")["status"]["active"] == first

    stage.reconcile_at(DAYS[1], CHECKPOINTS, "nightly")  # the first is not over
    assert runs(stage, Checkpoint) == [first]
    end(stage, "Checkpoint", first, DAYS[1] + HOUR, verified="files re-read")
    stage.reconcile_at(DAYS[1] + 2 * HOUR, CHECKPOINTS, "nightly")
    assert stage.found(CHECKPOINTS, "nightly")["status"]["lastMissedTime"] == text_of(DAYS[1])
    assert runs(stage, Checkpoint) == [first]

    stage.reconcile_at(DAYS[2], CHECKPOINTS, "nightly")
    stage.set_status("Checkpoint", third, {"phase": "Failed", "completedAt": text_of(DAYS[2] + HOUR)})
    stage.reconcile_at(DAYS[2] + 2 * HOUR, CHECKPOINTS, "nightly")
    assert runs(stage, Checkpoint) == [first, third]
    assert stage.condition(CHECKPOINTS, "nightly") == ("False", "LastRunFailed")
    stage.reconcile_at(DAYS[4], CHECKPOINTS, "nightly")
    assert stage.condition(CHECKPOINTS, "nightly", "Current") == ("False", "CheckpointOverdue")

    newest = names.scheduled_run("nightly", DAYS[4])
    end(stage, "Checkpoint", newest, DAYS[4] + HOUR, verified="files re-read")
    stage.reconcile_at(DAYS[4] + 2 * HOUR, CHECKPOINTS, "nightly")
    assert runs(stage, Checkpoint) == [third, newest]
    status = stage.found(CHECKPOINTS, "nightly")["status"]
    assert stage.condition(CHECKPOINTS, "nightly", "Current") == ("True", "Scheduled")
    assert status["lastSuccessfulTime"] == text_of(DAYS[4] + HOUR)
    assert second not in runs(stage, Checkpoint)
    assert {"RunStarted", "RunExpired", "CheckpointOverdue"} <= {event["reason"] for event in stage.events("nightly")}


def test_an_audit_that_is_asked_for_is_made_at_once_and_one_time(stage: Stage) -> None:
    stage.declare(AUDITS, "weekly", {"schedule": "0 4 * * SUN", "suspend": True, "template": {"bookKeeperRef": {"name": "bk"}}})
    stage.reconcile_at(DAYS[0], AUDITS, "weekly")
    assert stage.condition(AUDITS, "weekly") == ("True", "Suspended")
    ask = {"metadata": {"annotations": {names.RUN_NOW_ANNOTATION: "yes"}}}
    stage.patch(AUDITS, "weekly", ask)
    for _ in range(2):
        stage.reconcile_at(DAYS[0], AUDITS, "weekly")
    made = names.requested_run("weekly", DAYS[0])
    assert runs(stage, ReplicationAudit) == [made]
    found = stage.found(AUDITS, "weekly")
    assert names.RUN_NOW_ANNOTATION not in found["metadata"]["annotations"]
    assert (found["status"]["lastRequest"], found["status"]["active"]) == (f"done: {made}", made)

    stage.patch(AUDITS, "weekly", ask)  # as after a process that ended before it could answer
    stage.reconcile_at(DAYS[0] + HOUR, AUDITS, "weekly")
    assert runs(stage, ReplicationAudit) == [made]
    end(stage, "ReplicationAudit", made, DAYS[0] + HOUR, findingsTotal=2)
    stage.reconcile_at(DAYS[0] + 2 * HOUR, AUDITS, "weekly")
    assert stage.found(AUDITS, "weekly")["status"]["lastFindings"] == 2


def test_a_run_has_another_name_where_somebody_elses_checkpoint_has_its_own(stage: Stage) -> None:
    usual, another = names.scheduled_run("nightly", DAYS[0]), names.requested_run("nightly", DAYS[0])
    stage.declare(CHECKPOINTS, "nightly", {"schedule": "0 3 * * *", "template": CHECKPOINT})
    stage.declare("Checkpoint", usual, CHECKPOINT)
    theirs = stage.found("Checkpoint", usual)
    for _ in range(2):
        assert stage.reconcile_at(DAYS[0], CHECKPOINTS, "nightly").outcome is Outcome.OK
    assert runs(stage, Checkpoint) == [usual, another]
    assert stage.found("Checkpoint", usual) == theirs
    assert stage.found(CHECKPOINTS, "nightly")["status"]["lastScheduleTime"] == text_of(DAYS[0])


def test_a_run_that_lost_its_labels_is_not_made_twice(stage: Stage) -> None:
    run = names.scheduled_run("nightly", DAYS[0])
    stage.declare(CHECKPOINTS, "nightly", {"schedule": "0 3 * * *", "template": CHECKPOINT})
    stage.reconcile_at(DAYS[0], CHECKPOINTS, "nightly")
    stage.patch("Checkpoint", run, {"metadata": {"labels": None}})
    stage.set_status(CHECKPOINTS, "nightly", {"lastScheduleTime": None})
    assert stage.reconcile_at(DAYS[0], CHECKPOINTS, "nightly").outcome is Outcome.FAILED
    assert runs(stage, Checkpoint) == [run]
    assert "already exists" in stage.events("nightly")[-1]["message"]
