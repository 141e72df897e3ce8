"""A tablespace made from a checkpoint: never over one that exists, filled by one Job, Ready once that has verified it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
import yaml
from situations import EXAMPLES, LOG_STORE, objects, quickstart, ready, with_metadata, with_spec, with_status

from herdkeeper.api.checkpoint import Checkpoint
from herdkeeper.api.job import Destination, Encryption
from herdkeeper.api.tablespace import Bootstrap, RestoreStatus, RestoreTarget, TablespaceLog
from herdkeeper.clients.deleted_resources import DeletedResources
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.engine.execute import Clients
from herdkeeper.engine.key import Key
from herdkeeper.engine.kinds import steps_by_kind
from herdkeeper.engine.reconcile import reconcile
from herdkeeper.herddb.log.seen import LogPin
from herdkeeper.herddb.state.cluster import NodeTablespace, RecordAbsent, UserCredentials, VersionedRecord
from herdkeeper.herddb.tablespace.deletion import plan_tablespace_deletion
from herdkeeper.herddb.tablespace.observe_restore import progress_of
from herdkeeper.herddb.tablespace.plan import plan_tablespace
from herdkeeper.herddb.tablespace.state import RestoreProgress, TablespaceObserved
from herdkeeper.herddb.tablespace.status import summarize_tablespace
from herdkeeper.planning.actions import Apply, CreateTablespace, Plan, SetFinalizer
from herdkeeper.protocol.job_summary import JobOutcome, RestoreSummary
from herdkeeper.settings import Settings
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown
from herdkeeper.spark.work import CheckpointWork
from herdkeeper_e2e.defaulting import stored

NODES = ("db-herddb-0", "db-herddb-1")
MANIFEST = "i-1/ts-1/manifests/00000000000000000003-00000000000000000009.json"
DECLARED, FROM_FILES, MOMENT_OF_FILES = (
    stored(yaml.safe_load((EXAMPLES / name).read_text()), "demo")
    for name in ("restore.yaml", "restore-from-files.yaml", "restore-moment-from-files.yaml")
)
CHECKPOINT = next(
    stored(document, "demo")
    for document in yaml.safe_load_all((EXAMPLES / "checkpoint.yaml").read_text())
    if document["kind"] == Checkpoint.KIND
)
SUCCEEDED = with_status(CHECKPOINT, phase="Succeeded", manifest=MANIFEST)
BEGUN = with_status(DECLARED, uuid="a-uuid", restore=RestoreStatus(phase="Pending", claim_name="checkpoints", manifest=MANIFEST))
RECORD = TablespaceRecord("a-uuid", "restored", NODES[0], NODES, 1, 30_000)
JOB = "restored-restore"
KEYS = Encryption.model_validate({"keysSecretRef": {"name": "backup-keys"}})
ABSENT = TablespaceObserved(
    tablespace=DECLARED,
    herddb=ready(quickstart("HerdDBCluster")),
    log=LOG_STORE,
    record=RecordAbsent(),
    log_left=False,
    system_leader=NODES[1],
    leaderships={},
    disk_pin=LogPin((1_000, 0), 0),
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
    return plan_tablespace(replace(seen, tablespace=tablespace), "spark:1")


def with_job(condition: str | None = None, said: RestoreSummary | None = None, progress=None) -> TablespaceObserved:
    """The Job is there; `condition` is what Kubernetes says of its end, `said` its driver's last words."""
    conditions = [{"type": condition, "status": "True", "reason": "BackoffLimitExceeded", "message": "gave up"}] if condition else []
    metadata = {"name": JOB, "ownerReferences": [{"uid": DECLARED.metadata.uid}]}
    job = {"kind": "Job", "metadata": metadata, "status": {"startTime": "2026-01-01T00:00:00Z", "conditions": conditions}}
    state = {"terminated": {"message": said.to_json()}} if said else {"running": {}}
    pod = {
        "metadata": {"name": "p", "labels": {"batch.kubernetes.io/job-name": JOB}, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "status": {"phase": "Running", "containerStatuses": [{"name": "driver", "state": state}]},
    }
    return replace(MADE, objects=objects({("Job", JOB): job, ("Pod", "p"): pod}), progress=progress)


def after(tablespace, seen):
    """The resource with the status that was written."""
    fields = {**summarize_tablespace(replace(seen, tablespace=tablespace)).fields, **plan(tablespace, seen).decided_fields}
    return with_status(tablespace, **{key: value for key, value in fields.items() if value is not None})


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
    unusable = Problem(Reason.WAITING_FOR_SECRET, "there is no such Secret")
    waiting = plan(noted, replace(seen, store_unusable=unusable))
    assert waiting.wait is not None
    assert (waiting.actions, waiting.wait.reason) == ((), Reason.WAITING_FOR_SECRET)
    made = plan(with_status(noted, uuid="a-uuid", restore=noted.restore), replace(MADE, checkpoint=None)).actions
    (job,) = (action.manifest for action in made if isinstance(action, Apply) and action.manifest["kind"] == "Job")
    container = job["spec"]["template"]["spec"]["containers"][0]
    assert container["args"][container["args"].index("--manifest") + 1] == f"s3://backups/flights/{MANIFEST}"
    secrets = [entry["valueFrom"]["secretKeyRef"]["name"] for entry in container["env"] if "AWS_" in entry["name"]]
    assert secrets == ["store-keys", "store-keys"]


@pytest.mark.parametrize("annotation", ["herdkeeper.io/paused", "herdkeeper.io/plan"])
def test_nothing_is_noted_while_nothing_is_made_so_that_what_others_make_meanwhile_stays_theirs(annotation):
    resource, written = with_metadata(DECLARED, annotations={annotation: "true"}), []
    reader = SimpleNamespace(deleted=DeletedResources(), kubernetes=SimpleNamespace(resource=lambda *_: resource))
    writer = SimpleNamespace(write_status=lambda _, status: written.append(status), event=lambda *_: None)
    steps = replace(steps_by_kind(Settings.from_environment({}))["Tablespace"], observe=lambda *_: ABSENT)
    reconcile(Key.of(resource), steps, Clients(writer, reader, None, lambda: True, None))
    (status,) = written
    assert "restore" not in status


@pytest.mark.parametrize("policy", ["Retain", "Delete"])
def test_what_a_refused_restore_advises_can_be_done_and_drops_nothing(policy):
    """The API server's rules let nobody remove spec.bootstrap."""
    refused = plan(DECLARED, MADE)
    assert "delete this Tablespace, which drops nothing, and create it without spec.bootstrap" in refused.wait.message
    assert refused.wait.message.endswith("To drop the existing one, create it so with deletionPolicy Delete, and delete it again")
    (left,) = plan_tablespace_deletion(replace(MADE, tablespace=with_spec(DECLARED, deletion_policy=policy)), 0.0).actions
    assert isinstance(left, SetFinalizer)


def test_a_tablespace_that_exists_is_refused_not_adopted_and_not_touched():
    refused = plan(DECLARED, MADE)
    assert refused.actions == ()
    assert refused.wait is not None
    assert refused.wait.reason is Reason.INVALID_SPEC
    assert "HerdDB already has a tablespace restored (a-uuid)" in refused.wait.message
    summary = summarize_tablespace(MADE)
    assert (summary.health.status, summary.fields.get("uuid"), summary.fields.get("restore")) == ("False", None, None)
    assert after(DECLARED, MADE).restore is None, "with that note the next look would restore into it"


@pytest.mark.parametrize(
    ("checkpoint", "reason", "words"),
    [
        (None, Reason.WAITING_FOR_CHECKPOINT, "spec.bootstrap.checkpoint.name is flights-1: the Checkpoint does not exist yet"),
        (CHECKPOINT, Reason.WAITING_FOR_CHECKPOINT, "has not succeeded yet"),
        (
            with_status(CHECKPOINT, phase="Failed", message="take a later time"),
            Reason.INVALID_SPEC,
            "failed: take a later time; delete this Tablespace and create one from another Checkpoint",
        ),
        (
            with_status(CHECKPOINT, phase="Failed", failure="take a later time", message="it is being deleted: a Job removes its files"),
            Reason.INVALID_SPEC,
            "failed: take a later time; delete this Tablespace and create one from another Checkpoint",
        ),
    ],
    ids=["no checkpoint", "still running", "failed", "failed, and being deleted"],
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


def test_keys_that_are_named_after_a_restore_has_begun_are_those_that_its_next_job_reads_with():
    noted = after(FROM_FILES, ABSENT)
    keyed = FROM_FILES.spec.bootstrap.files.model_copy(update={"encryption": KEYS})
    later = with_spec(
        with_status(noted, uuid="a-uuid", restore=noted.restore),
        bootstrap=noted.spec.bootstrap.model_copy(update={"files": keyed}),
    )
    pod, _ = job_of(later, MADE)
    assert [volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume] == ["backup-keys"]
    assert (noted.restore.encryption, after(later, MADE).restore.encryption) == (None, KEYS)


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
        ("no job yet", MADE, "Pending", Reason.RESTORING, "has not started"),
        ("loading", with_job(progress=RestoreProgress(30, 100)), "Running", Reason.RESTORING, "30 of 100 rows are loaded"),
        ("comparing", with_job(progress=RestoreProgress(100, 100)), "Running", Reason.RESTORING, "are being compared"),
        ("the leader is busy", with_job(progress=Unknown("silence")), "Running", Reason.RESTORING, "rows are being loaded from"),
        (
            "the bookies were away for too long",
            with_job("Failed", RestoreSummary("r", JobOutcome.RETRYABLE, "no leader")),
            "Failed",
            Reason.RESTORE_FAILED,
            "no leader; once the cause is fixed, delete the Job restored-restore",
        ),
        (
            "somebody's tables",
            with_job("Failed", RestoreSummary("r", JobOutcome.CONFIGURATION_REFUSED, "the tablespace has tables (mine): drop them")),
            "Failed",
            Reason.RESTORE_FAILED,
            "drop them; once the cause is fixed, delete the Job restored-restore",
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
    summary = summarize_tablespace(replace(seen, tablespace=BEGUN))
    assert (summary.health.status, summary.health.reason, summary.fields["restore"]["phase"]) == ("False", reason, phase), situation
    assert words in summary.health.message


def test_a_verified_one_is_ready_and_stays_so_though_its_job_and_its_checkpoint_are_gone():
    said = RestoreSummary("r", JobOutcome.SUCCEEDED, "done", ledger_id=3, entry_id=9, rows=100, verified="100 rows of 2 tables compared")
    summary = summarize_tablespace(replace(with_job("Complete", said), tablespace=BEGUN))
    assert summary.health.status == "True"
    restored = after(BEGUN, with_job("Complete", said))
    assert (restored.restore.rows, restored.restore.lsn.entry_id, restored.restore.verified) == (100, 9, "100 rows of 2 tables compared")
    later = summarize_tablespace(replace(MADE, tablespace=restored, checkpoint=None))
    assert later.health.status == "True"
    assert later.fields["restore"]["phase"] == "Succeeded"
    assert not any(isinstance(action, Apply) and action.manifest["kind"] == "Job" for action in plan(restored, MADE).actions)


@pytest.mark.parametrize("seen", [MADE, with_job(None)], ids=["its Job is gone", "its Job runs"])
def test_a_restore_whose_status_was_lost_goes_on(seen):
    """The metadata tell that the tablespace is its own."""
    lost = BEGUN.model_copy(update={"status": None})
    assert lost.is_restoring
    assert summarize_tablespace(replace(seen, tablespace=lost)).health.reason is Reason.RESTORING
    assert after(lost, seen).restore.manifest == MANIFEST
    assert after(lost, seen).restore.phase == ("Pending" if seen is MADE else "Running")
    assert plan(lost, seen).wait is None or plan(lost, seen).wait.reason is not Reason.INVALID_SPEC
    jobs = [action for action in plan(lost, seen).actions if isinstance(action, Apply) and action.manifest["kind"] == "Job"]
    assert len(jobs) == (1 if seen is MADE else 0)


def test_what_the_job_of_an_earlier_tablespace_of_this_name_restored_is_not_in_this_one():
    said = RestoreSummary("r", JobOutcome.SUCCEEDED, "done", ledger_id=3, entry_id=9, rows=100, verified="100 rows compared")
    earlier = with_job("Complete", said)
    again = with_metadata(DECLARED, uid="another")
    noted = after(again, replace(ABSENT, objects=earlier.objects))
    assert (noted.restore.phase, noted.restore.verified) == ("Pending", None)
    begun = with_status(noted, uuid="a-uuid", restore=noted.restore)
    summary = summarize_tablespace(replace(earlier, tablespace=begun))
    assert (summary.health.status, summary.health.reason) == ("False", Reason.RESTORING)
    assert f"the Job {JOB} belongs to an earlier resource of this name" in summary.health.message
    assert [action for action in plan(begun, earlier).actions if isinstance(action, Apply)] == []


def test_what_is_filled_is_not_filled_again_though_its_status_was_lost():
    said = RestoreSummary("r", JobOutcome.SUCCEEDED, "done", ledger_id=3, entry_id=9, rows=100, verified="100 rows of 2 tables compared")
    lost = after(BEGUN, with_job("Complete", said)).model_copy(update={"status": None})
    assert not lost.is_restoring
    assert summarize_tablespace(replace(MADE, tablespace=lost, checkpoint=None)).health.status == "True"
    assert not any(isinstance(action, Apply) and action.manifest["kind"] == "Job" for action in plan(lost, MADE).actions)


def test_after_a_failure_the_next_job_goes_on_once_the_failed_one_is_deleted():
    failed = after(BEGUN, with_job("Failed"))
    assert failed.restore.phase == "Failed"
    assert plan(failed, with_job("Failed")).actions == ()
    assert [action.manifest["kind"] for action in plan(failed, MADE).actions if isinstance(action, Apply)] == ["Job"]


def test_a_tablespace_without_bootstrap_has_no_restore():
    plain = with_spec(DECLARED, bootstrap=None)
    summary = summarize_tablespace(replace(MADE, tablespace=with_status(plain, uuid="a-uuid")))
    assert (summary.health.status, summary.fields["restore"]) == ("True", None)


# -- a moment, of the archive


STORE = {"uri": "s3://backups/flights", "credentialsSecretRef": {"name": "store-keys"}}
ARCHIVED_THERE = {"persistentVolumeClaim": {"claimName": "archives"}}
THEN = {"timestamp": "2026-11-21T14:30:00Z"}


def of_a_moment(**bootstrap):
    """A Tablespace that is made so, as of THEN unless another target is given."""
    return with_spec(DECLARED, bootstrap=Bootstrap.model_validate({"target": THEN, "archive": ARCHIVED_THERE, **bootstrap}))


OF_CHECKPOINT = of_a_moment(checkpoint={"name": "flights-1"})
NOTED = with_status(OF_CHECKPOINT, uuid="a-uuid", restore=RestoreStatus(phase="Pending", claim_name="checkpoints", manifest=MANIFEST))
ARCHIVER = with_metadata(
    with_spec(quickstart("Tablespace"), log=TablespaceLog.model_validate({"archive": {"destination": ARCHIVED_THERE}})), name="old"
)


def job_of(tablespace, seen):
    """The pod of the Job that is made, and its driver's arguments."""
    (job,) = (action.manifest for action in plan(tablespace, seen).actions if isinstance(action, Apply))
    pod = job["spec"]["template"]["spec"]
    return pod, pod["containers"][0]["args"]


def test_a_moment_of_an_archive_alone_is_asked_for_by_its_folder_and_made_at_its_place():
    noted = after(MOMENT_OF_FILES, ABSENT)
    assert (noted.restore.phase, noted.restore.claim_name, noted.restore.manifest) == ("Pending", "archives", None)
    pod, given = job_of(with_status(noted, uuid="a-uuid", restore=noted.restore), MADE)
    folder = MOMENT_OF_FILES.spec.bootstrap.archive.folder
    assert given[given.index("--folder") : given.index("--folder") + 4] == [
        "--folder",
        f"/checkpoints/{folder}",
        "--to",
        "2026-11-21T14:30:00+01:00",
    ]
    assert not {"--manifest", "--archive"} & set(given)
    assert [mount for mount in pod["containers"][0]["volumeMounts"] if mount["name"] != "tmp"] == [
        {"name": "destination", "mountPath": "/checkpoints"}
    ]


@pytest.mark.parametrize(
    ("target", "text"),
    [({"latest": True}, "latest"), ({"lsn": {"ledgerId": 4, "entryId": 7}}, "4,7"), (THEN, "2026-11-21T14:30:00Z")],
)
def test_a_moment_is_made_beside_the_checkpoint_that_is_named_and_its_archive_is_only_read(target, text):
    noted = with_spec(NOTED, bootstrap=NOTED.spec.bootstrap.model_copy(update={"target": RestoreTarget.model_validate(target)}))
    pod, given = job_of(noted, replace(MADE, others=(ARCHIVER,)))
    asked = [given[given.index(name) + 1] for name in ("--manifest", "--to", "--archive")]
    assert asked == [f"/checkpoints/{MANIFEST}", text, "/archive"]
    mounts = {mount["mountPath"]: mount.get("readOnly") for mount in pod["containers"][0]["volumeMounts"]}
    assert (mounts["/checkpoints"], mounts["/archive"]) == (None, True)
    beside = pod["affinity"]["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"]
    assert beside["labelSelector"]["matchLabels"]["app.kubernetes.io/instance"] == "old"


def test_without_an_archiver_in_the_namespace_the_volume_may_be_anywhere():
    assert "affinity" not in job_of(NOTED, MADE)[0]


def test_a_moment_waits_while_files_are_removed_where_its_checkpoint_is_looked_for():
    removal = CheckpointWork("older", "removal", "checkpoints", ended=False)
    waiting = plan(NOTED, replace(MADE, work=(removal,)))
    assert waiting.wait is not None
    assert (waiting.actions, waiting.wait.reason) == ((), Reason.WAITING_FOR_OTHERS)
    assert "files of the Checkpoint older are being removed from the same place, the volume claim checkpoints" in waiting.wait.message
    for over in (replace(removal, ended=True), replace(removal, place="elsewhere"), replace(removal, component="checkpoint")):
        assert plan(NOTED, replace(MADE, work=(over,))).actions


@pytest.mark.parametrize("files", [{"objectStore": STORE}, {"persistentVolumeClaim": {"claimName": "checkpoints"}}])
def test_an_archive_in_an_object_store_is_opened_with_keys_of_its_own(files):
    there = {"uri": "s3://archives/flights", "credentialsSecretRef": {"name": "archive-keys"}}
    declared = of_a_moment(files={**files, "manifest": MANIFEST}, archive={"objectStore": there})
    pod, given = job_of(with_status(declared, uuid="a-uuid", restore=after(declared, ABSENT).restore), MADE)
    assert given[given.index("--archive") + 1] == "s3://archives/flights"
    keys = {
        entry["name"]: entry["valueFrom"]["secretKeyRef"]["name"] for entry in pod["containers"][0]["env"] if "ACCESS_KEY" in entry["name"]
    }
    own = {"ARCHIVE_AWS_ACCESS_KEY_ID": "archive-keys", "ARCHIVE_AWS_SECRET_ACCESS_KEY": "archive-keys"}
    of_files = (
        {"DESTINATION_AWS_ACCESS_KEY_ID": "store-keys", "DESTINATION_AWS_SECRET_ACCESS_KEY": "store-keys"} if "objectStore" in files else {}
    )
    assert keys == own | of_files


def test_while_no_row_is_loaded_the_checkpoint_of_the_moment_is_made():
    summary = summarize_tablespace(replace(with_job(progress=Unknown("there is no such table")), tablespace=NOTED))
    assert summary.health.message.startswith("the checkpoint of that moment is being made from the archive of the log")
    assert "3 of 10 rows" in summarize_tablespace(replace(with_job(progress=RestoreProgress(3, 10)), tablespace=NOTED)).health.message


def test_which_moment_was_restored_is_told_with_the_checkpoint_that_was_made_of_it():
    made = f"i-1/ts-1/manifests/{3:020d}-{8:020d}.json"
    stamped = "2026-11-21T14:29:59.500Z"
    said = RestoreSummary(
        "r",
        JobOutcome.SUCCEEDED,
        "done",
        manifest=f"/checkpoints/{made}",
        ledger_id=3,
        entry_id=8,
        lsn_timestamp=stamped,
        rows=1,
        verified="yes",
    )
    restored = after(NOTED, with_job("Complete", said)).restore
    assert (restored.phase, restored.manifest, restored.lsn.entry_id, restored.lsn_timestamp) == ("Succeeded", made, 8, stamped)


def test_a_moment_that_can_not_be_had_is_told_with_what_can_be_done():
    said = RestoreSummary("r", JobOutcome.CONFIGURATION_REFUSED, "spec.bootstrap.target.lsn (--to) is 9,9: the archive ends with 3,8")
    message = summarize_tablespace(replace(with_job("Failed", said), tablespace=NOTED)).health.message
    assert "the archive ends with 3,8; for another moment, delete this Tablespace with deletionPolicy Delete and create" in message


def test_progress_is_what_the_bookkeeping_says():
    assert progress_of('{"rows": 7, "manifest": "m"}', None) == RestoreProgress(0, 7)
    assert progress_of('{"rows": 7}', 3) == RestoreProgress(3, 7)
