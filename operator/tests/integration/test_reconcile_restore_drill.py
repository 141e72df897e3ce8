"""Restore drills on a real API server: drawn, noted, restored by a Job, told; what was made for them goes, and what they read stays."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from kubernetes.dynamic import DynamicClient
from stage import ZOOKEEPER_ADDRESS, Json, Stage, nothing_written
from test_reconcile_checkpoint_removal import CLAIM

from herdkeeper.protocol.job_summary import JobOutcome, RestoreSummary
from herdkeeper.shared import names
from herdkeeper.shared.time import text_of

KIND, NAME = "ScheduledCheckpoint", "nightly"
NIGHT = datetime.datetime(2100, 1, 1, 3, tzinfo=datetime.UTC)
MORNING = NIGHT.replace(hour=5)
MINUTE, DAY = datetime.timedelta(minutes=1), datetime.timedelta(days=1)
RUN, JOB, OF_THE_MOMENT = names.scheduled_run(NAME, NIGHT), names.drill_job(NAME, MORNING), names.drill_checkpoint(NAME, MORNING)
DESTINATION = {"persistentVolumeClaim": {"claimName": "checkpoints"}}
TEMPLATE = {"tablespaceRef": {"name": "flights"}, "destination": DESTINATION, "deletionPolicy": "Delete"}
ARCHIVE = {"claimName": "archive"}


@pytest.fixture
def stage(dynamic: DynamicClient, namespace: str) -> Stage:
    """A schedule with drills, and a night's checkpoint, which is verified."""
    found = Stage(dynamic, namespace)
    found.of("PersistentVolumeClaim").create(body=CLAIM, namespace=namespace)
    return with_drills(found, TEMPLATE)


def with_drills(found: Stage, template: Json) -> Stage:
    """The same, for Checkpoints of a template."""
    found.declare("BookKeeperCluster", "bk", {"zooKeeperAddress": ZOOKEEPER_ADDRESS, "bookies": 3})
    found.set_status("BookKeeperCluster", "bk", {"instanceId": "i"})
    found.declare("HerdDBCluster", "db", {"bookKeeperRef": {"name": "bk"}, "image": "example.org/herddb:7"})
    found.declare("Tablespace", "flights", {"herdDBRef": {"name": "db"}, "log": {"archive": {"destination": DESTINATION}}})
    found.declare(KIND, NAME, {"schedule": "0 3 * * *", "template": template, "drill": {"schedule": "0 5 * * *"}})
    found.set_status("Tablespace", "flights", {"uuid": "u"})
    found.set_status(KIND, NAME, {"lastScheduleTime": text_of(NIGHT - DAY), "drillsSince": text_of(NIGHT)})
    found.reconcile_at(NIGHT, KIND, NAME)
    found.settle("Checkpoint", RUN)
    succeeded(found, RUN, 7)
    return found


def succeeded(stage: Stage, checkpoint: str, entry: int) -> None:
    """What its own reconcile found once its Job had ended."""
    manifest = f"i/u/manifests/{1:020d}-{entry:020d}.json"
    told = {"phase": "Succeeded", "job": f"{checkpoint}-checkpoint", "manifest": manifest, "verified": "re-read"}
    stage.set_status("Checkpoint", checkpoint, {**told, "completedAt": text_of(NIGHT + MINUTE), "lsnTimestamp": text_of(NIGHT)})


def reconcile(stage: Stage, times: int, now: datetime.datetime = MORNING) -> Json:
    """The schedule's drill after some reconciles."""
    for _ in range(times):
        stage.reconcile_at(now, KIND, NAME)
    return dict(stage.found(KIND, NAME)["status"]["lastDrill"])


def end(stage: Stage, said: RestoreSummary) -> None:
    """What Kubernetes tells of the drill's Job, whose driver ended with these words."""
    code = said.outcome.exit_code
    labels = {**stage.found("Job", JOB)["spec"]["template"]["metadata"]["labels"], "batch.kubernetes.io/job-name": JOB}
    pod = {"metadata": {"name": f"{JOB}-x", "labels": labels}, "spec": {"containers": [{"name": "driver", "image": "spark:1"}]}}
    stage.of("Pod").create(body={"apiVersion": "v1", "kind": "Pod", **pod}, namespace=stage.namespace)
    state = {"terminated": {"exitCode": code, "message": said.to_json()}}
    container: dict[str, Any] = {"name": "driver", "image": "spark:1", "imageID": "", "ready": False, "restartCount": 0, "state": state}
    stage.set_status("Pod", f"{JOB}-x", {"phase": "Failed" if code else "Succeeded", "containerStatuses": [container]})
    at = text_of(MORNING + MINUTE)
    kinds = ("FailureTarget", "Failed") if code else ("SuccessCriteriaMet", "Complete")
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": at, "reason": "Ended", "message": "it ended"} for kind in kinds]
    counts = {"failed": 1} if code else {"succeeded": 1, "completionTime": at}
    stage.set_status("Job", JOB, {"startTime": at, **counts, "conditions": conditions})


def reasons(stage: Stage) -> list[str]:
    return [str(event["reason"]) for event in stage.events(NAME)]


def test_a_drill_is_noted_then_restored_beside_a_server_of_its_own_and_what_it_reads_stays_meanwhile(stage: Stage) -> None:
    noted = reconcile(stage, 1)
    assert (noted["outcome"], noted["checkpoint"], noted["moment"]) == ("Running", RUN, text_of(NIGHT))
    assert stage.live("Job", JOB) is None
    assert stage.condition(KIND, NAME, "RestoreDrilled") == ("Unknown", "NotDrilled")
    reconcile(stage, 1)
    pod = stage.found("Job", JOB)["spec"]["template"]["spec"]
    assert [(each["image"], each["restartPolicy"]) for each in pod["initContainers"]] == [("example.org/herddb:7", "Always")]
    reconcile(stage, 1)
    with nothing_written(stage):
        reconcile(stage, 1)

    stage.delete("Checkpoint", RUN)
    stage.reconcile("Checkpoint", RUN)
    assert stage.condition("Checkpoint", RUN) == ("False", "WaitingForDependents")
    assert stage.live("Job", f"{RUN}-removal") is None

    end(stage, RestoreSummary("r", JobOutcome.SUCCEEDED, "done", rows=7, tables=2, verified="7 rows compared", duration_seconds=3.0))
    ended = reconcile(stage, 2)
    assert (ended["outcome"], ended["rows"], ended["tables"], ended["message"]) == ("Succeeded", 7, 2, "7 rows compared")
    assert stage.condition(KIND, NAME, "RestoreDrilled") == ("True", "Drilled")
    assert reasons(stage).count("Drilled") == 1
    with nothing_written(stage):
        reconcile(stage, 1)
    stage.reconcile("Checkpoint", RUN)
    stage.found("Job", f"{RUN}-removal")


def test_a_moment_of_the_window_is_made_restored_and_taken_away_and_a_difference_is_told(stage: Stage) -> None:
    window = {"from": "2099-12-25T00:00:00.000Z", "to": "2100-01-01T04:59:00.000Z"}
    stage.set_status("Tablespace", "flights", {"recoveryWindow": window, "archive": ARCHIVE})
    noted = reconcile(stage, 1)
    assert noted["checkpoint"] == OF_THE_MOMENT
    assert window["from"] <= noted["moment"] <= window["to"]
    stage.set_status("Tablespace", "flights", {"recoveryWindow": {**window, "to": text_of(MORNING)}, "archive": ARCHIVE})
    reconcile(stage, 2)
    made = stage.found("Checkpoint", OF_THE_MOMENT)
    assert made["spec"]["target"] == {"timestamp": noted["moment"]}
    assert stage.found(KIND, NAME)["status"].get("active") is None, "it is no run of the schedule"
    succeeded(stage, OF_THE_MOMENT, 3)
    reconcile(stage, 2)

    told = "table 'a': the checkpoint has 3 rows (digest 1), SQL returns 2 (digest 2)"
    end(stage, RestoreSummary("r", JobOutcome.INVARIANT_VIOLATED, told))
    failed = reconcile(stage, 1)
    assert (failed["outcome"], failed["message"]) == ("Failed", told)
    assert stage.condition(KIND, NAME, "RestoreDrilled") == stage.condition(KIND, NAME) == ("False", "DrillFailed")
    reconcile(stage, 2)
    assert stage.live("Checkpoint", OF_THE_MOMENT) is None
    stage.found("Checkpoint", RUN)
    assert "DrillFailed" in reasons(stage)


def test_a_paused_or_planned_schedule_draws_nothing_and_one_without_drills_any_more_stops_its_own(stage: Stage) -> None:
    paused = {"metadata": {"annotations": {names.PAUSED_ANNOTATION: "true"}}}
    stage.patch(KIND, NAME, paused)
    stage.reconcile_at(MORNING, KIND, NAME)
    assert "lastDrill" not in stage.found(KIND, NAME)["status"]
    stage.patch(KIND, NAME, {"metadata": {"annotations": {names.PAUSED_ANNOTATION: None, names.PLAN_ANNOTATION: "true"}}})
    stage.reconcile_at(MORNING, KIND, NAME)
    status = stage.found(KIND, NAME)["status"]
    assert "lastDrill" not in status
    drill = f"Starting the restore drill of {text_of(MORNING)}, of the Checkpoint {RUN} ({text_of(NIGHT)})"
    assert status["plan"]["steps"] == [drill]
    stage.patch(KIND, NAME, {"metadata": {"annotations": {names.PLAN_ANNOTATION: None}}})
    reconcile(stage, 2)
    stage.found("Job", JOB)
    stage.patch(KIND, NAME, {"spec": {"drill": None}})
    stage.reconcile_at(MORNING, KIND, NAME)
    assert stage.live("Job", JOB) is None
    assert "lastDrill" not in stage.found(KIND, NAME)["status"]


def test_a_drill_whose_object_store_can_not_be_opened_says_so_at_once_and_goes_on_when_it_can(
    dynamic: DynamicClient, namespace: str
) -> None:
    stage = Stage(dynamic, namespace)
    keys = {"AWS_ACCESS_KEY_ID": "an id", "AWS_SECRET_ACCESS_KEY": "a secret"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "store-keys"}, "stringData": keys}
    stage.of("Secret").create(body=secret, namespace=stage.namespace)
    store = {"objectStore": {"uri": "s3://backups", "credentialsSecretRef": {"name": "store-keys"}}}
    with_drills(stage, {"tablespaceRef": {"name": "flights"}, "destination": store})
    stage.delete("Secret", "store-keys")

    told = reconcile(stage, 3)
    missing = f"the Checkpoint {RUN}: spec.destination.objectStore.credentialsSecretRef.name is store-keys: the Secret does not exist"
    assert (told["outcome"], told["message"].startswith(f"waits: {missing}")) == ("Running", True)
    assert stage.condition(KIND, NAME, "RestoreDrilled") == ("False", "WaitingForSecret")
    assert stage.live("Job", JOB) is None
    with nothing_written(stage):
        reconcile(stage, 1)
    stage.of("Secret").create(body=secret, namespace=stage.namespace)
    told = reconcile(stage, 2)
    assert (told["job"], stage.condition(KIND, NAME, "RestoreDrilled")) == (JOB, ("Unknown", "NotDrilled"))
    stage.found("Job", JOB)
