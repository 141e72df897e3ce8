"""A ReplicationAudit whose Job ended well: what it found is known by its driver's last words, and by nothing else."""

from __future__ import annotations

import datetime
from dataclasses import replace

import pytest
import yaml
from situations import EXAMPLES, bookkeeper_serving, objects, with_metadata, with_spec, with_status

from herdkeeper.api import ReplicationAudit
from herdkeeper.api.job import ClaimDestination, VolumeDestination
from herdkeeper.api.resource import Condition
from herdkeeper.jobs.audit.state import AuditRun
from herdkeeper.jobs.plan import plan_audit
from herdkeeper.jobs.schedule.state import run_of
from herdkeeper.jobs.status import summarize_audit
from herdkeeper.planning.actions import Plan
from herdkeeper.protocol.job_summary import AuditSummary, JobOutcome
from herdkeeper.shared.reason import Reason
from herdkeeper_e2e.defaulting import stored

AUDIT = stored(yaml.safe_load((EXAMPLES / "audit.yaml").read_text()), "demo")
assert isinstance(AUDIT, ReplicationAudit)
NOW = datetime.datetime(2026, 6, 1, 20, 1, tzinfo=datetime.UTC)
JOB = f"{AUDIT.metadata.name}-audit"
WORDS = AuditSummary("r", JobOutcome.SUCCEEDED, "3 ledgers", ledgers=3).to_json()
FAILED_WORDS = AuditSummary("r", JobOutcome.RETRYABLE, "ZooKeeper did not answer").to_json()


def seen(*pods, ended: str = "Complete") -> AuditRun:
    """Its Job has ended, well if nothing else is said; of its pods these are there."""
    status = {
        "startTime": "2026-06-01T19:00:00Z",
        "completionTime": "2026-06-01T20:00:00Z",
        "conditions": [{"type": ended, "status": "True", "reason": "r", "message": "m"}],
    }
    metadata = {"name": JOB, "uid": "job-1", "ownerReferences": [{"uid": AUDIT.metadata.uid}]}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "status": status}
    return AuditRun(AUDIT, objects({("Job", JOB): job}, *pods), bookkeeper_serving(), NOW)


def pod(said: str | None, phase: str = "Succeeded"):
    ended = {"terminated": {"exitCode": 0 if phase == "Succeeded" else 3, **({"message": said} if said else {})}}
    state = {"running": {}} if phase == "Running" else ended
    metadata = {"name": "p", "creationTimestamp": "2026-06-01T19:00:00Z", "labels": {"batch.kubernetes.io/job-name": JOB}}
    status = {"phase": phase, "containerStatuses": [{"name": "driver", "state": state}]}
    return {("Pod", "p"): {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status}}


def ready(status: str, reason: str) -> Condition:
    """As it was written when the run ended."""
    written = {"type": "Ready", "status": status, "reason": reason, "message": "m", "lastTransitionTime": "2026-06-01T20:00:01Z"}
    return Condition.model_validate(written | {"observedGeneration": 1})


def test_what_an_earlier_audit_of_this_name_found_is_not_told_of_this_one():
    left = seen(pod(WORDS))
    assert summarize_audit(left).fields["phase"] == "Succeeded"
    again = replace(left, audit=with_metadata(AUDIT, uid="another"))
    assert summarize_audit(again).fields == {"phase": "Pending"}
    assert plan_audit(again, "spark:1").actions == ()
    assert (again.result_fault, again.message_may_come, again.resumes_at) == (None, False, None)


def test_an_audit_tells_which_cluster_it_was_of_though_another_one_has_its_name_by_now():
    words = AuditSummary("r", JobOutcome.SUCCEEDED, "3 ledgers", instance_id="an-instance", ledgers=3).to_json()
    fields = summarize_audit(seen(pod(words))).fields
    assert fields["instanceId"] == "an-instance"
    over = with_status(with_metadata(AUDIT, creation_timestamp="2026-06-01T19:00:00Z"), phase="Succeeded", instance_id="an-instance")
    assert run_of(over).instance_id == "an-instance"


LOST = "its driver's termination message is lost"
UNREADABLE = "its driver's termination message can't be read (not a job summary: "


@pytest.mark.parametrize(
    ("pods", "why"),
    [((), LOST), ((pod(None),), LOST), ((pod("rubbish"),), UNREADABLE), ((pod(FAILED_WORDS, "Failed"),), LOST)],
    ids=["its pod is gone", "it said nothing", "it said something else", "only a pod that failed before is left"],
)
def test_an_audit_that_did_not_tell_what_it_found_is_no_success(pods, why: str):
    summary = summarize_audit(seen(*pods))
    assert (summary.fields["phase"], summary.fields["completedAt"]) == ("Failed", "2026-06-01T20:00:00Z")
    assert (summary.health.status, summary.health.reason) == ("Unknown", Reason.RESULT_UNKNOWN)
    assert summary.health.message.startswith(f"its result is unknown: its Job succeeded, but {why}")
    fix = f"See the log of its pod, if it still exists (kubectl logs -n demo job/{JOB}), and create another audit"
    assert summary.health.message.endswith(fix)
    assert "findingsTotal" not in summary.fields


def test_one_with_a_destination_is_told_where_its_findings_may_be():
    destination = VolumeDestination(persistent_volume_claim=ClaimDestination(claim_name="audits"))
    message = summarize_audit(replace(seen(), audit=with_spec(AUDIT, destination=destination))).health.message
    assert f"(kubectl logs -n demo job/{JOB}) and in the table audit_runs at its destination, and create another audit" in message


def test_the_words_of_a_pod_that_was_not_seen_to_end_are_waited_for():
    waiting = summarize_audit(seen(pod(None, "Running")))
    assert (waiting.fields["phase"], waiting.health.reason) == ("Running", Reason.RUNNING)
    assert "completedAt" not in waiting.fields
    told = summarize_audit(replace(seen(pod(WORDS)), audit=with_status(AUDIT, phase="Running")))
    assert (told.fields["phase"], told.health.message, told.fields["ledgers"]) == ("Succeeded", "3 ledgers", 3)


def test_what_was_unknown_stays_so_when_its_job_has_gone_and_no_other_one_is_made():
    over = with_status(AUDIT, phase="Failed", message="it is not known", conditions=(ready("Unknown", "ResultUnknown"),))
    gone = replace(seen(), objects=objects())
    summary = summarize_audit(replace(gone, audit=over))
    assert (summary.health.status, summary.health.reason, summary.health.message) == ("Unknown", Reason.RESULT_UNKNOWN, "it is not known")
    assert plan_audit(replace(gone, audit=over), "spark:1") == Plan()


def test_one_that_failed_tells_why_and_not_that_it_found_nothing():
    summary = summarize_audit(seen(pod(FAILED_WORDS, "Failed"), ended="Failed"))
    assert (summary.fields["phase"], summary.health.message) == ("Failed", "ZooKeeper did not answer")
    assert not {"ledgers", "entries", "findingsTotal", "findingsBySeverity", "replicasUnknown"} & summary.fields.keys()


def test_a_failure_stays_one():
    over = with_status(AUDIT, phase="Failed", message="m", conditions=(ready("False", "Failed"),))
    assert summarize_audit(replace(seen(pod(WORDS)), audit=over)).health.reason is Reason.FAILED


def test_a_schedule_takes_one_that_did_not_tell_for_no_success():
    made = with_metadata(AUDIT, creation_timestamp="2026-06-01T19:00:00Z")
    fields = summarize_audit(seen()).fields
    run = run_of(with_status(made, phase=fields["phase"], completed_at=fields["completedAt"]))
    assert not run.active
    assert (run.phase, run.findings) == ("Failed", None)
