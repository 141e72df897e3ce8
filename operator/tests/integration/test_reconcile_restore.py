"""A tablespace made from a checkpoint, on the real API server: noted first, then filled by a Job, Ready once that has verified it."""

from __future__ import annotations

import yaml
from control_plane import REPOSITORY
from kubernetes.dynamic import DynamicClient
from stage import ZOOKEEPER_ADDRESS, Json, Stage, nothing_written

from herdkeeper.domain.job_summary import JobOutcome, RestoreSummary
from herdkeeper.domain.names import HerdDBNames, ObjectKey
from herdkeeper.formats.herddb_tablespace import TablespaceRecord, encode_tablespace, tablespace_path

NODES = ("db-herddb-0", "db-herddb-1")
NAME, JOB, SECRET = "from_files", "from-files-restore", "from-files-connection"


def test_a_restore_is_noted_before_the_tablespace_is_there_and_ends_ready_with_a_secret_for_clients(
    dynamic: DynamicClient, namespace: str
) -> None:
    stage = Stage(dynamic, namespace)
    stage.declare("BookKeeperCluster", "bk", {"zooKeeperAddress": ZOOKEEPER_ADDRESS, "bookies": 3})
    ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": "serves", "observedGeneration": 1}
    status = {"zooKeeperAddress": ZOOKEEPER_ADDRESS, "ledgersRoot": f"/{namespace}/bk/ledgers", "readyBookies": 3}
    stage.set_status("BookKeeperCluster", "bk", {**status, "conditions": [{**ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}]})
    stage.declare("HerdDBCluster", "db", {"bookKeeperRef": {"name": "bk"}, "replicas": 2})
    stage.settle("HerdDBCluster", "db")
    for number in range(2):
        stage.serve("db-herddb", number)
    named = HerdDBNames(ObjectKey(namespace, "db"))
    spec = yaml.safe_load((REPOSITORY / "examples/restore-from-files.yaml").read_text())["spec"]

    stage.declare("Tablespace", "from-files", spec)
    stage.reconcile("Tablespace", "from-files")
    noted = stage.found("Tablespace", "from-files")["status"]
    assert (noted["restore"]["phase"], noted.get("uuid")) == ("Pending", None)
    assert noted["restore"]["manifest"] == spec["bootstrap"]["files"]["manifest"]

    # what CREATE TABLESPACE does
    stage.ensemble.put(
        tablespace_path(named.herd_root, NAME), encode_tablespace(TablespaceRecord("its-uuid", NAME, NODES[0], NODES, 1, 10_000))
    )
    stage.nodes.herddb_holds(named, NAME, "its-uuid", ("leader", "follower"))
    stage.settle("Tablespace", "from-files")
    assert stage.condition("Tablespace", "from-files") == ("False", "Restoring")
    assert stage.live("Secret", SECRET) is None
    job = stage.found("Job", JOB)

    said = RestoreSummary("r", JobOutcome.SUCCEEDED, "done", ledger_id=4, entry_id=66113, rows=7, verified="7 rows compared")
    end(stage, job, said)
    stage.settle("Tablespace", "from-files")
    stage.settle("HerdDBCluster", "db")
    stage.settle("Tablespace", "from-files")
    restored = stage.found("Tablespace", "from-files")["status"]
    assert stage.condition("Tablespace", "from-files") == ("True", "Ready")
    assert (restored["restore"]["phase"], restored["restore"]["rows"], restored["connectionSecret"]) == ("Succeeded", 7, SECRET)
    with nothing_written(stage):
        stage.reconcile("Tablespace", "from-files")


def end(stage: Stage, job: Json, said: RestoreSummary) -> None:
    """What Kubernetes tells of a Job whose pod ended well."""
    labels = {**job["spec"]["template"]["metadata"]["labels"], "batch.kubernetes.io/job-name": JOB}
    container = {"name": "driver", "image": "spark:1"}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{JOB}-x", "labels": labels}, "spec": {"containers": [container]}}
    stage.of("Pod").create(body=body, namespace=stage.namespace)
    ended = {"terminated": {"exitCode": 0, "message": said.to_json()}}
    stage.set_status(
        "Pod",
        f"{JOB}-x",
        {
            "phase": "Succeeded",
            "containerStatuses": [{"name": "driver", "image": "spark:1", "imageID": "", "ready": False, "restartCount": 0, "state": ended}],
        },
    )
    times = {"startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:01:00Z"}
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:01:00Z", "reason": "CompletionsReached", "message": "done"}
        for kind in ("SuccessCriteriaMet", "Complete")
    ]
    stage.set_status("Job", JOB, {**times, "succeeded": 1, "conditions": conditions})
