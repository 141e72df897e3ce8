"""A tablespace made from a checkpoint: never over one that exists, filled by one Job, Ready once that has verified it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml
from situations import EXAMPLES, objects, quickstart, ready, with_metadata, with_spec, with_status

from herdkeeper.api.checkpoint import Checkpoint
from herdkeeper.api.job import Destination
from herdkeeper.api.tablespace import RestoreStatus
from herdkeeper.domain.job_summary import JobOutcome, RestoreSummary
from herdkeeper.domain.observed.herddb import NodeTablespace, UserCredentials
from herdkeeper.domain.observed.object_store import StoreUnusable
from herdkeeper.domain.observed.tablespace import RestoreProgress, TablespaceObserved
from herdkeeper.domain.observed.tablespace_record import RecordAbsent, VersionedRecord
from herdkeeper.domain.reason import Reason
from herdkeeper.domain.unknown import Unknown
from herdkeeper.formats.herddb_tablespace import TablespaceRecord
from herdkeeper.observe.restore import progress_of
from herdkeeper.plan.action import Apply, CreateTablespace, Plan
from herdkeeper.plan.tablespace import plan_tablespace
from herdkeeper.schema.defaulting import stored
from herdkeeper.status.tablespace import summarize_tablespace

NODES = ("db-herddb-0", "db-herddb-1")
MANIFEST = "i-1/ts-1/manifests/00000000000000000003-00000000000000000009.json"
DECLARED, FROM_FILES = (
    stored(yaml.safe_load((EXAMPLES / name).read_text()), "demo") for name in ("restore.yaml", "restore-from-files.yaml")
)
CHECKPOINT = next(
    stored(document, "demo")
    for document in yaml.safe_load_all((EXAMPLES / "checkpoint.yaml").read_text())
    if document["kind"] == Checkpoint.KIND
)
SUCCEEDED = with_status(CHECKPOINT, phase="Succeeded", manifest=MANIFEST)
BEGUN = with_status(DECLARED, uuid="a-uuid", restore=RestoreStatus(phase="Pending", claim_name="checkpoints", manifest=MANIFEST))
RECORD = TablespaceRecord("a-uuid", "restored", NODES[0], NODES, 1, 10_000)
JOB = "restored-restore"
ABSENT = TablespaceObserved(
    herddb=ready(quickstart("HerdDBCluster")),
    zookeeper_address="zk-0:2181",
    ledgers_root="/demo/bk/ledgers",
    record=RecordAbsent(),
    log_left=False,
    system_leader=NODES[1],
    leaderships={},
    nodes=dict.fromkeys(NODES, ()),
    credentials=UserCredentials("admin", "given"),
    checkpoint=SUCCEEDED,
)


def copy(role: str, *, settled: bool = True) -> NodeTablespace:
    return NodeTablespace("restored", "a-uuid", role, settled, (1, 7), None)


MADE = replace(
    ABSENT, record=VersionedRecord(RECORD, 4), nodes={NODES[0]: (copy("leader"),), NODES[1]: (copy("follower"),)}, leaderships={NODES[0]: 1}
)


def plan(tablespace, seen) -> Plan:
    return plan_tablespace(tablespace, seen, "spark:1")


def with_job(condition: str | None = None, said: RestoreSummary | None = None, progress=None) -> TablespaceObserved:
    """The Job is there; `condition` is what Kubernetes says of its end, `said` its driver's last words."""
    conditions = [{"type": condition, "status": "True", "reason": "BackoffLimitExceeded", "message": "gave up"}] if condition else []
    job = {"kind": "Job", "metadata": {"name": JOB}, "status": {"startTime": "2026-01-01T00:00:00Z", "conditions": conditions}}
    state = {"terminated": {"message": said.to_json()}} if said else {"running": {}}
    pod = {
        "metadata": {"name": "p", "labels": {"batch.kubernetes.io/job-name": JOB}, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "status": {"phase": "Running", "containerStatuses": [{"name": "driver", "state": state}]},
    }
    return replace(MADE, objects=objects({("Job", JOB): job, ("Pod", "p"): pod}), progress=progress)


def after(tablespace, seen):
    """The resource with the status that was written."""
    return with_status(
        tablespace, **{key: value for key, value in summarize_tablespace(tablespace, seen).fields.items() if value is not None}
    )


def test_the_status_says_that_a_restore_is_due_before_the_tablespace_is_made():
    assert plan(DECLARED, ABSENT).actions == ()
    noted = after(DECLARED, ABSENT)
    assert (noted.restore.phase, noted.restore.claim_name, noted.restore.manifest) == ("Pending", "checkpoints", MANIFEST)
    assert [type(action) for action in plan(noted, ABSENT).actions] == [CreateTablespace]


def test_a_restore_from_an_object_store_waits_for_its_secret_and_remembers_the_store_though_the_checkpoint_goes():
    store = {"uri": "s3://backups/flights", "credentialsSecretRef": {"name": "store-keys"}}
    there = with_spec(SUCCEEDED, destination=Destination.model_validate({"objectStore": store}))
    seen = replace(ABSENT, checkpoint=there)
    noted = after(DECLARED, seen)
    assert (noted.restore.claim_name, noted.restore.source) == (None, there.spec.destination)
    unusable = StoreUnusable(Reason.WAITING_FOR_SECRET, "there is no such Secret")
    waiting = plan(noted, replace(seen, store_unusable=unusable))
    assert waiting.wait is not None
    assert (waiting.actions, waiting.wait.reason) == ((), Reason.WAITING_FOR_SECRET)
    made = plan(with_status(noted, uuid="a-uuid", restore=noted.restore), replace(MADE, checkpoint=None)).actions
    (job,) = (action.manifest for action in made if isinstance(action, Apply) and action.manifest["kind"] == "Job")
    container = job["spec"]["template"]["spec"]["containers"][0]
    assert container["args"][container["args"].index("--manifest") + 1] == f"s3://backups/flights/{MANIFEST}"
    secrets = [entry["valueFrom"]["secretKeyRef"]["name"] for entry in container["env"] if entry["name"].startswith("AWS_")]
    assert secrets == ["store-keys", "store-keys"]


@pytest.mark.parametrize("annotation", ["herdkeeper.io/paused", "herdkeeper.io/plan"])
def test_nothing_is_noted_while_nothing_is_made_so_that_what_others_make_meanwhile_stays_theirs(annotation):
    assert after(with_metadata(DECLARED, annotations={annotation: "true"}), ABSENT).restore is None


def test_a_tablespace_that_exists_is_refused_not_adopted_and_not_touched():
    refused = plan(DECLARED, MADE)
    assert refused.actions == ()
    assert refused.wait is not None
    assert refused.wait.reason is Reason.INVALID_SPEC
    assert "HerdDB has a tablespace restored already (a-uuid)" in refused.wait.message
    summary = summarize_tablespace(DECLARED, MADE)
    assert (summary.health.status, summary.fields.get("uuid"), summary.fields.get("restore")) == ("False", None, None)


@pytest.mark.parametrize(
    ("checkpoint", "reason", "words"),
    [
        (None, Reason.WAITING_FOR_CHECKPOINT, "spec.bootstrap.checkpoint.name is flights-1: there is no such Checkpoint"),
        (CHECKPOINT, Reason.WAITING_FOR_CHECKPOINT, "has not succeeded yet"),
        (with_status(CHECKPOINT, phase="Failed"), Reason.INVALID_SPEC, "create one from another Checkpoint"),
    ],
    ids=["no checkpoint", "still running", "failed"],
)
def test_nothing_is_made_before_the_checkpoint_succeeded(checkpoint, reason, words):
    seen = replace(ABSENT, checkpoint=checkpoint)
    waiting = plan(DECLARED, seen)
    assert waiting.actions == ()
    assert waiting.wait is not None
    assert waiting.wait.reason is reason
    assert words in waiting.wait.message
    assert after(DECLARED, seen).restore is None


@pytest.mark.parametrize(
    ("declared", "seen", "manifest"),
    [
        (BEGUN, MADE, MANIFEST),
        (BEGUN, replace(MADE, checkpoint=None), MANIFEST),
        (
            with_status(FROM_FILES, restore=RestoreStatus(phase="Pending")),
            replace(MADE, checkpoint=None),
            FROM_FILES.spec.bootstrap.files.manifest,
        ),
    ],
    ids=["by its checkpoint", "though the Checkpoint is gone", "by files"],
)
def test_the_job_is_made_once_the_leader_leads_and_logs_in_by_the_database_s_secret(declared, seen, manifest):
    (job,) = (action.manifest for action in plan(declared, seen).actions if isinstance(action, Apply))
    container = job["spec"]["template"]["spec"]["containers"][0]
    given = container["args"]
    assert given[given.index("--manifest") + 1] == f"/checkpoints/{manifest}"
    assert container["volumeMounts"][0]["readOnly"] is True
    secrets = {entry["valueFrom"]["secretKeyRef"]["name"] for entry in container["env"] if "secretKeyRef" in entry["valueFrom"]}
    assert secrets == {"db-herddb-credentials"}


@pytest.mark.parametrize("copies", [(), (copy("leader", settled=False),)], ids=["nothing is known of it", "it boots"])
def test_the_job_waits_for_the_leader(copies):
    assert not any(isinstance(action, Apply) for action in plan(BEGUN, replace(MADE, nodes={**MADE.nodes, NODES[0]: copies})).actions)


def test_clients_get_their_secret_once_the_content_is_verified():
    assert plan(BEGUN, with_job()).actions == ()
    restored = with_status(DECLARED, uuid="a-uuid", restore=RestoreStatus(phase="Succeeded"))
    assert [action.manifest["metadata"]["name"] for action in plan(restored, MADE).actions if isinstance(action, Apply)] == [
        "restored-connection"
    ]


@pytest.mark.parametrize(
    ("situation", "seen", "phase", "reason", "words"),
    [
        ("no job yet", MADE, "Pending", Reason.RESTORING, "has not begun"),
        ("loading", with_job(progress=RestoreProgress(30, 100)), "Running", Reason.RESTORING, "30 of 100 rows are loaded"),
        ("comparing", with_job(progress=RestoreProgress(100, 100)), "Running", Reason.RESTORING, "are compared"),
        ("the leader is busy", with_job(progress=Unknown("silence")), "Running", Reason.RESTORING, "rows are loaded from"),
        (
            "the bookies were away for too long",
            with_job("Failed", RestoreSummary("r", JobOutcome.RETRYABLE, "no leader")),
            "Failed",
            Reason.RESTORE_FAILED,
            "no leader; once that is mended, delete the Job restored-restore",
        ),
        (
            "somebody's tables",
            with_job("Failed", RestoreSummary("r", JobOutcome.CONFIGURATION_REFUSED, "the tablespace has tables (mine): drop them")),
            "Failed",
            Reason.RESTORE_FAILED,
            "drop them; once that is mended, delete the Job restored-restore",
        ),
        (
            "another content",
            with_job("Failed", RestoreSummary("r", JobOutcome.INVARIANT_VIOLATED, "table 'a' differs")),
            "Failed",
            Reason.RESTORE_FAILED,
            "table 'a' differs; delete this Tablespace with deletionPolicy Delete",
        ),
        ("killed without a word", with_job("Failed"), "Failed", Reason.RESTORE_FAILED, "delete the Job restored-restore"),
    ],
)
def test_it_is_not_ready_while_it_is_restored_though_its_copies_are_settled(situation, seen, phase, reason, words):
    summary = summarize_tablespace(BEGUN, seen)
    assert (summary.health.status, summary.health.reason, summary.fields["restore"]["phase"]) == ("False", reason, phase), situation
    assert words in summary.health.message


def test_a_verified_one_is_ready_and_stays_so_though_its_job_and_its_checkpoint_are_gone():
    said = RestoreSummary("r", JobOutcome.SUCCEEDED, "done", ledger_id=3, entry_id=9, rows=100, verified="100 rows of 2 tables compared")
    summary = summarize_tablespace(BEGUN, with_job("Complete", said))
    assert summary.health.status == "True"
    restored = after(BEGUN, with_job("Complete", said))
    assert (restored.restore.rows, restored.restore.lsn.entry_id, restored.restore.verified) == (100, 9, "100 rows of 2 tables compared")
    later = summarize_tablespace(restored, replace(MADE, checkpoint=None))
    assert later.health.status == "True"
    assert later.fields["restore"]["phase"] == "Succeeded"
    assert not any(isinstance(action, Apply) and action.manifest["kind"] == "Job" for action in plan(restored, MADE).actions)


def test_after_a_failure_the_next_job_goes_on_once_the_failed_one_is_deleted():
    failed = after(BEGUN, with_job("Failed"))
    assert failed.restore.phase == "Failed"
    assert plan(failed, with_job("Failed")).actions == ()
    assert [action.manifest["kind"] for action in plan(failed, MADE).actions if isinstance(action, Apply)] == ["Job"]


def test_a_tablespace_without_bootstrap_has_no_restore():
    plain = with_spec(DECLARED, bootstrap=None)
    summary = summarize_tablespace(with_status(plain, uuid="a-uuid"), MADE)
    assert (summary.health.status, summary.fields["restore"]) == ("True", None)


def test_progress_is_what_the_bookkeeping_says():
    assert progress_of('{"rows": 7, "manifest": "m"}', None) == RestoreProgress(0, 7)
    assert progress_of('{"rows": 7}', 3) == RestoreProgress(3, 7)
