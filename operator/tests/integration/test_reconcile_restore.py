"""A tablespace made from a checkpoint, on the real API server: noted first, then filled by a Job, Ready once that has verified it."""

from __future__ import annotations

import base64

import pytest
import yaml
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import DynamicApiError
from stage import ZOOKEEPER_ADDRESS, Json, Stage, nothing_written

from herdkeeper.codecs.herddb.tablespace import TablespaceRecord, encode_tablespace, tablespace_path
from herdkeeper.protocol.job_summary import AuditSummary, CheckpointSummary, JobOutcome, RestoreSummary
from herdkeeper.shared.names import HerdDBNames, ObjectKey
from herdkeeper_e2e.control_plane import REPOSITORY

NODES = ("db-herddb-0", "db-herddb-1")
NAME, JOB, SECRET = "from_files", "from-files-restore", "from-files-connection"


def stack(dynamic: DynamicClient, namespace: str) -> Stage:
    """A database that serves."""
    return with_stack(Stage(dynamic, namespace))


def with_stack(stage: Stage) -> Stage:
    """The same, on a stage that is there."""
    stage.declare("BookKeeperCluster", "bk", {"zooKeeperAddress": ZOOKEEPER_ADDRESS, "bookies": 3})
    ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": "serves", "observedGeneration": 1}
    status = {"zooKeeperAddress": ZOOKEEPER_ADDRESS, "ledgersRoot": f"/{stage.namespace}/bk/ledgers", "readyBookies": 3}
    stage.set_status("BookKeeperCluster", "bk", {**status, "conditions": [{**ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}]})
    stage.declare("HerdDBCluster", "db", {"bookKeeperRef": {"name": "bk"}, "replicas": 2})
    stage.settle("HerdDBCluster", "db")
    for number in range(2):
        stage.serve("db-herddb", number)
    return stage


def create(stage: Stage, name: str) -> None:
    """What CREATE TABLESPACE does."""
    named = HerdDBNames(ObjectKey(stage.namespace, "db"))
    record = TablespaceRecord("its-uuid", name, NODES[0], NODES, 1, 30_000)
    stage.ensemble.put(tablespace_path(named.herd_root, name), encode_tablespace(record))
    stage.nodes.herddb_holds(named, name, "its-uuid", ("leader", "follower"))


def example(name: str) -> Json:
    spec: Json = yaml.safe_load((REPOSITORY / "examples" / name).read_text())["spec"]
    return spec


def test_a_restore_is_noted_before_the_tablespace_is_there_and_ends_ready_with_a_secret_for_clients(
    dynamic: DynamicClient, namespace: str
) -> None:
    stage, spec = stack(dynamic, namespace), example("restore-from-files.yaml")

    stage.declare("Tablespace", "from-files", spec)
    stage.reconcile("Tablespace", "from-files")
    noted = stage.found("Tablespace", "from-files")["status"]
    assert (noted["restore"]["phase"], noted.get("uuid")) == ("Pending", None)
    assert noted["restore"]["manifest"] == spec["bootstrap"]["files"]["manifest"]

    create(stage, NAME)
    stage.settle("Tablespace", "from-files")
    assert stage.condition("Tablespace", "from-files") == ("False", "Restoring")
    assert stage.live("Secret", SECRET) is None
    job = stage.found("Job", JOB)

    said = RestoreSummary("r", JobOutcome.SUCCEEDED, "done", ledger_id=4, entry_id=66113, rows=7, verified="7 rows compared")
    end_job(stage, job, said)
    stage.settle("Tablespace", "from-files")
    stage.settle("HerdDBCluster", "db")
    stage.settle("Tablespace", "from-files")
    restored = stage.found("Tablespace", "from-files")["status"]
    assert stage.condition("Tablespace", "from-files") == ("True", "Ready")
    assert (restored["restore"]["phase"], restored["restore"]["rows"], restored["connectionSecret"]) == ("Succeeded", 7, SECRET)
    with nothing_written(stage):
        stage.reconcile("Tablespace", "from-files")


def test_a_moment_is_made_of_an_archive_alone_and_the_status_tells_which_one_it_was(dynamic: DynamicClient, namespace: str) -> None:
    stage, spec = stack(dynamic, namespace), example("restore-moment-from-files.yaml")
    archive = spec["bootstrap"]["archive"]
    stage.declare("Tablespace", "as-it-was", spec)
    stage.reconcile("Tablespace", "as-it-was")
    noted = stage.found("Tablespace", "as-it-was")["status"]["restore"]
    assert (noted["phase"], noted["claimName"], noted.get("manifest")) == ("Pending", "archives", None)
    create(stage, "as_it_was")
    stage.settle("Tablespace", "as-it-was")
    job = stage.found("Job", "as-it-was-restore")
    (driver,) = job["spec"]["template"]["spec"]["containers"]
    assert driver["args"][driver["args"].index("--folder") + 1] == f"/checkpoints/{archive['folder']}"
    assert driver["args"][driver["args"].index("--to") + 1] == spec["bootstrap"]["target"]["timestamp"]

    manifest = f"{archive['folder']}/manifests/{4:020d}-{7:020d}.json"
    said = RestoreSummary(
        "r",
        JobOutcome.SUCCEEDED,
        "done",
        manifest=f"/checkpoints/{manifest}",
        ledger_id=4,
        entry_id=7,
        lsn_timestamp="2026-11-21T13:29:59.000Z",
        rows=7,
        verified="7 rows compared",
    )
    end_job(stage, job, said)
    for kind, name in (("Tablespace", "as-it-was"), ("HerdDBCluster", "db"), ("Tablespace", "as-it-was")):
        stage.settle(kind, name)
    restored = stage.found("Tablespace", "as-it-was")["status"]["restore"]
    assert stage.condition("Tablespace", "as-it-was") == ("True", "Ready")
    assert (restored["manifest"], restored["lsn"], restored["lsnTimestamp"]) == (
        manifest,
        {"ledgerId": 4, "entryId": 7},
        "2026-11-21T13:29:59.000Z",
    )
    with nothing_written(stage):
        stage.reconcile("Tablespace", "as-it-was")


@pytest.mark.parametrize(
    ("shipped", "place"),
    [("restore-from-files.yaml", "files"), ("restore-moment-from-files.yaml", "archive")],
    ids=["a checkpoint's files", "an archive"],
)
def test_a_restore_that_was_given_no_keys_goes_on_once_the_tablespace_names_them(
    shipped: str, place: str, dynamic: DynamicClient, namespace: str
) -> None:
    stage, spec = stack(dynamic, namespace), example(shipped)
    stage.declare("Tablespace", "from-files", spec)
    stage.reconcile("Tablespace", "from-files")
    create(stage, NAME)
    stage.settle("Tablespace", "from-files")
    said = RestoreSummary("r", JobOutcome.CONFIGURATION_REFUSED, "it is encrypted, and this job was given no keys")
    end_job(stage, stage.found("Job", JOB), said)
    stage.settle("Tablespace", "from-files")
    assert stage.condition("Tablespace", "from-files") == ("False", "RestoreFailed")

    keyed = {place: {"encryption": {"keysSecretRef": {"name": "backup-keys"}}}}
    stage.patch("Tablespace", "from-files", {"spec": {"bootstrap": keyed}})
    path = "manifest" if place == "files" else "folder"
    elsewhere = {path: spec["bootstrap"][place][path].replace("8ac986e3", "9ac986e3")}
    for moved in (elsewhere, {"persistentVolumeClaim": {"claimName": "another"}}):
        with pytest.raises(DynamicApiError, match=r"the tablespace was made from (it|them); create a new Tablespace"):
            stage.patch("Tablespace", "from-files", {"spec": {"bootstrap": {place: moved}}})
    stage.delete("Job", JOB)
    stage.delete("Pod", f"{JOB}-x")
    stage.settle("Tablespace", "from-files")
    assert stage.live("Job", JOB) is None
    conditions = stage.found("Tablespace", "from-files")["status"]["conditions"]
    told = next(condition["message"] for condition in conditions if condition["type"] == "Ready")
    assert f"spec.bootstrap.{place}.encryption.keysSecretRef.name is backup-keys: the Secret does not exist" in told

    values = {"2026-11": base64.b64encode(b"k" * 32).decode()}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "backup-keys"}, "stringData": values}
    stage.of("Secret").create(body=secret, namespace=namespace)
    stage.settle("Tablespace", "from-files")
    volumes = stage.found("Job", JOB)["spec"]["template"]["spec"]["volumes"]
    assert [volume["secret"]["secretName"] for volume in volumes if "secret" in volume] == ["backup-keys"]


def end_job(stage: Stage, job: Json, said: RestoreSummary | CheckpointSummary | AuditSummary) -> None:
    """What Kubernetes tells of a Job whose pod ended with these words."""
    name = job["metadata"]["name"]
    labels = {**job["spec"]["template"]["metadata"]["labels"], "batch.kubernetes.io/job-name": name}
    container = {"name": "driver", "image": "spark:1"}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{name}-x", "labels": labels}, "spec": {"containers": [container]}}
    stage.of("Pod").create(body=body, namespace=stage.namespace)
    succeeded = said.outcome is JobOutcome.SUCCEEDED
    ended = {"terminated": {"exitCode": said.outcome.exit_code, "message": said.to_json()}}
    stage.set_status(
        "Pod",
        f"{name}-x",
        {
            "phase": "Succeeded" if succeeded else "Failed",
            "containerStatuses": [{"name": "driver", "image": "spark:1", "imageID": "", "ready": False, "restartCount": 0, "state": ended}],
        },
    )
    times = {"startTime": "2026-01-01T00:00:00Z", **({"completionTime": "2026-01-01T00:01:00Z"} if succeeded else {})}
    kinds, reason = (
        (("SuccessCriteriaMet", "Complete"), "CompletionsReached") if succeeded else (("FailureTarget", "Failed"), "PodFailurePolicy")
    )
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:01:00Z", "reason": reason, "message": "done"}
        for kind in kinds
    ]
    stage.set_status("Job", name, {**times, "succeeded" if succeeded else "failed": 1, "conditions": conditions})
