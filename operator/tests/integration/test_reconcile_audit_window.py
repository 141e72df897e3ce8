"""An audit with a window, on the real API server: its Job ends as paused, and another one of the same run goes on when the window opens."""

from __future__ import annotations

import datetime

import pytest
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import DynamicApiError
from stage import ZOOKEEPER_ADDRESS, Json, Stage, nothing_written

from herdkeeper.protocol.job_summary import AuditSummary, JobOutcome
from herdkeeper.shared.time import text_of

KIND, JOB = "ReplicationAudit", "by-night-audit"
HOUR = datetime.timedelta(hours=1)
OPENS = [datetime.datetime(2026, 6, day, 20, tzinfo=datetime.UTC) for day in (1, 2, 3)]
CLOSES = [opens + 7 * HOUR for opens in OPENS]
SPEC: Json = {
    "bookKeeperRef": {"name": "bk"},
    "window": {"from": "22:00", "to": "05:00", "timeZone": "Europe/Rome"},
    "destination": {"persistentVolumeClaim": {"claimName": "audits"}},
    "filter": {
        "states": ["Closed"],
        "tablespaces": [{"herdDBRef": {"name": "db"}, "name": "default"}],
        "bookies": ["bk-bookie-1-x"],
        "ledgerRanges": [{"first": 1, "last": 9}],
    },
}


@pytest.fixture
def stage(dynamic: DynamicClient, namespace: str) -> Stage:
    """With a cluster that has its metadata."""
    stage = Stage(dynamic, namespace)
    stage.declare("BookKeeperCluster", "bk", {"zooKeeperAddress": ZOOKEEPER_ADDRESS, "bookies": 3})
    status = {"zooKeeperAddress": ZOOKEEPER_ADDRESS, "ledgersRoot": f"/{namespace}/bk/ledgers", "instanceId": "an-instance"}
    stage.set_status("BookKeeperCluster", "bk", status)
    return stage


def driver_of(job: Json) -> list[str]:
    return list(job["spec"]["template"]["spec"]["containers"][0]["args"])


def end(stage: Stage, pod: str, when: datetime.datetime, said: AuditSummary | None) -> None:
    """What Kubernetes tells of a Job whose driver ended well, with these words; None for one that left none."""
    job = stage.found("Job", JOB)
    labels = {**job["spec"]["template"]["metadata"]["labels"], "batch.kubernetes.io/job-name": JOB}
    spec = {"containers": [{"name": "driver", "image": "spark:1"}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod, "labels": labels}, "spec": spec}
    stage.of("Pod").create(body=body, namespace=stage.namespace)
    state = {"terminated": {"exitCode": 0} if said is None else {"exitCode": said.outcome.exit_code, "message": said.to_json()}}
    container = {"name": "driver", "image": "spark:1", "imageID": "", "ready": False, "restartCount": 0, "state": state}
    stage.set_status("Pod", pod, {"phase": "Succeeded", "containerStatuses": [container]})
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": text_of(when), "reason": "CompletionsReached", "message": "done"}
        for kind in ("SuccessCriteriaMet", "Complete")
    ]
    times = {"startTime": text_of(when - HOUR), "completionTime": text_of(when)}
    stage.set_status("Job", JOB, {**times, "succeeded": 1, "conditions": conditions})


def test_a_run_pauses_at_the_windows_end_and_goes_on_as_itself_when_it_opens(stage: Stage) -> None:
    stage.declare(KIND, "by-night", SPEC)
    result = stage.reconcile_at(OPENS[0] - HOUR, KIND, "by-night")
    assert result.requeue_after_seconds == 3600
    assert stage.condition(KIND, "by-night") == ("False", "WaitingForWindow")
    assert stage.live("Job", JOB) is None

    stage.reconcile_at(OPENS[0], KIND, "by-night")
    first = stage.found("Job", JOB)
    assert first["spec"]["activeDeadlineSeconds"] == 7 * 3600 + 3600
    stage.reconcile_at(OPENS[0] + HOUR, KIND, "by-night")  # its status tells of the Job
    with nothing_written(stage):
        stage.reconcile_at(CLOSES[0] + HOUR, KIND, "by-night")  # the last portion takes its time

    end(stage, "night-1", CLOSES[0] + HOUR, AuditSummary("r", JobOutcome.PAUSED, "paused; so far 2 ledgers", ledgers=2, ledger_filter="x"))
    result = stage.reconcile_at(CLOSES[0] + 2 * HOUR, KIND, "by-night")
    assert result.requeue_after_seconds == (OPENS[1] - CLOSES[0] - 2 * HOUR).total_seconds()
    status = stage.found(KIND, "by-night")["status"]
    assert {name: status[name] for name in ("phase", "resumesAt", "ledgers", "ledgerFilter", "message")} == {
        "phase": "Paused",
        "resumesAt": text_of(OPENS[1]),
        "ledgers": 2,
        "ledgerFilter": "x",
        "message": f"paused; so far 2 ledgers; it resumes at {text_of(OPENS[1])}",
    }
    with nothing_written(stage):
        stage.reconcile_at(CLOSES[0] + 3 * HOUR, KIND, "by-night")

    stage.reconcile_at(OPENS[1] + HOUR, KIND, "by-night")
    assert stage.live("Job", JOB) is None
    stage.reconcile_at(OPENS[1] + HOUR, KIND, "by-night")
    second = stage.found("Job", JOB)
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    assert second["spec"]["activeDeadlineSeconds"] == 6 * 3600 + 3600
    arguments = [driver_of(job) for job in (first, second)]
    assert [given[given.index("--read-until") + 1] for given in arguments] == [text_of(closes) for closes in CLOSES[:2]]
    run_ids = {given[given.index("--run-id") + 1] for given in arguments}
    assert run_ids == {stage.found(KIND, "by-night")["metadata"]["uid"]}

    end(stage, "night-2", OPENS[1] + 2 * HOUR, AuditSummary("r", JobOutcome.SUCCEEDED, "4 ledgers", ledgers=4))
    stage.reconcile_at(OPENS[1] + 3 * HOUR, KIND, "by-night")
    status = stage.found(KIND, "by-night")["status"]
    assert (status["phase"], status["ledgers"], status.get("resumesAt")) == ("Succeeded", 4, None)
    with nothing_written(stage):
        stage.reconcile_at(OPENS[2] + HOUR, KIND, "by-night")
    assert "RunGoesOn" in {event["reason"] for event in stage.events("by-night")}


def test_the_hours_of_a_paused_run_can_be_changed_and_it_goes_on_at_once_and_nothing_else_of_it_can(stage: Stage) -> None:
    stage.declare(KIND, "by-night", SPEC)
    stage.reconcile_at(OPENS[0], KIND, "by-night")
    end(stage, "night-1", CLOSES[0], AuditSummary("r", JobOutcome.PAUSED, "paused; so far 2 ledgers", ledgers=2))
    stage.reconcile_at(CLOSES[0] + HOUR, KIND, "by-night")
    assert stage.found(KIND, "by-night")["status"]["phase"] == "Paused"

    for change in ({"depth": "Light"}, {"window": None}, {"bytesPerSecondPerBookie": "1Mi"}, {"filter": {"states": ["Open"]}}):
        with pytest.raises(DynamicApiError) as refused:
            stage.patch(KIND, "by-night", {"spec": change})
        (field,) = change
        words = (
            "be added or removed: a run is started with or without pauses"
            if field == "window"
            else "the job may have read it already; create a new ReplicationAudit"
        )
        assert f"spec.{field} " in str(refused.value.body)
        assert words in str(refused.value.body)

    stage.patch(KIND, "by-night", {"spec": {"window": {"from": "00:00", "to": "23:59", "timeZone": "UTC"}}})
    stage.reconcile_at(CLOSES[0] + HOUR, KIND, "by-night")
    assert stage.live("Job", JOB) is None
    stage.reconcile_at(CLOSES[0] + HOUR, KIND, "by-night")
    arguments = driver_of(stage.found("Job", JOB))
    assert arguments[arguments.index("--read-until") + 1] == "2026-06-02T23:59:00Z"


def test_an_audit_without_a_window_that_did_not_tell_what_it_found_is_no_success_and_is_not_made_again(stage: Stage) -> None:
    stage.declare(KIND, "by-night", {name: value for name, value in SPEC.items() if name != "window"})
    stage.reconcile_at(OPENS[0], KIND, "by-night")
    end(stage, "night-1", CLOSES[0], None)
    stage.reconcile_at(CLOSES[0] + HOUR, KIND, "by-night")
    assert stage.found(KIND, "by-night")["status"]["phase"] == "Failed"
    assert stage.condition(KIND, "by-night") == ("Unknown", "ResultUnknown")
    assert stage.condition(KIND, "by-night", "Progressing") == ("False", "ResultUnknown")

    stage.delete("Job", JOB)
    with nothing_written(stage):
        stage.reconcile_at(CLOSES[0] + 2 * HOUR, KIND, "by-night")
    assert "ResultUnknown" in {event["reason"] for event in stage.events("by-night")}


def test_the_filter_reaches_the_program(stage: Stage) -> None:
    stage.declare(KIND, "by-night", SPEC | {"ledgers": [12]})
    stage.reconcile_at(OPENS[0], KIND, "by-night")
    given = driver_of(stage.found("Job", JOB))
    told = {option: given[given.index(option) + 1] for option in ("--ledgers", "--states", "--bookies")}
    assert told == {"--ledgers": "12,1-9", "--states": "Closed", "--bookies": "bk-bookie-1-x"}
    at = given.index("--tablespace")
    assert given[at : at + 3] == ["--tablespace", f"/{stage.namespace}/db/herd", "default"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"destination": None}, "spec.window needs spec.destination"),
        ({"window": {"from": "22:00", "to": "22:00"}}, "spec.window opens when it closes"),
        ({"window": {"from": "22:00", "to": "24:00"}}, "spec.window.to"),
        ({"filter": {"ledgerRanges": [{"first": 9, "last": 8}]}}, "spec.filter.ledgerRanges has a range whose first is above its last"),
        ({"filter": {"states": ["closed"]}}, "Unsupported value"),
    ],
    ids=["nowhere to keep it", "no hours", "no time of day", "upside down", "no state"],
)
def test_what_makes_no_sense_is_refused_at_once_of_an_audit_and_of_a_schedule(stage: Stage, change: Json, words: str) -> None:
    spec = {name: value for name, value in (SPEC | change).items() if value is not None}
    with pytest.raises(DynamicApiError) as refused:
        stage.declare(KIND, "by-night", spec)
    assert words in str(refused.value.body)
    with pytest.raises(DynamicApiError) as refused:
        stage.declare("ScheduledReplicationAudit", "weekly", {"schedule": "0 4 * * SUN", "template": spec})
    assert words.replace("spec.", "spec.template.", 1).split(" needs")[0] in str(refused.value.body)
