"""What tools that apply, wait for and prune manifests meet on the real API server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from sql_database import HERDDB, serving_database
from stage import CLAIM, ZOOKEEPER_ADDRESS, Json, Stage, written

from herdkeeper.api import KINDS
from herdkeeper.api.resource import Resource
from herdkeeper.planning.pruning import MARKS
from herdkeeper.shared import names
from herdkeeper_e2e.kstatus import judged

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def example_of(kind: type[Resource]) -> dict[str, Any]:
    """The spec of an example of the kind."""
    documents = (document for path in sorted(EXAMPLES.glob("*.yaml")) for document in yaml.safe_load_all(path.read_text()))
    return next(document["spec"] for document in documents if document and document["kind"] == kind.KIND)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.KIND)
def test_kstatus_takes_a_resource_for_in_progress_before_and_after_the_first_look(stage: Stage, kind: type[Resource]) -> None:
    """Without a status it would take it for Current: a tool that waits would go on at once."""
    stage.declare(kind.KIND, "new", example_of(kind))
    before = stage.found(kind.KIND, "new")
    assert before["status"] == {"observedGeneration": -1}
    for _ in range(2):  # the first one may do no more than to set a finalizer
        stage.reconcile(kind.KIND, "new")
    after = stage.found(kind.KIND, "new")
    assert after["status"]["observedGeneration"] == after["metadata"]["generation"]
    # a schedule is as declared before its first run is due
    assert judged((before, after)) == ["InProgress", "Current" if kind.KIND.startswith("Scheduled") else "InProgress"]


def test_a_status_that_is_taken_away_is_as_before_the_first_look(stage: Stage) -> None:
    stage.declare("ZooKeeperCluster", "zk", {})
    stage.settle("ZooKeeperCluster", "zk")
    stage.of("ZooKeeperCluster").status.patch(
        name="zk", namespace=stage.namespace, body=[{"op": "remove", "path": "/status"}], content_type="application/json-patch+json"
    )
    assert stage.found("ZooKeeperCluster", "zk")["status"] == {"observedGeneration": -1}
    stage.settle("ZooKeeperCluster", "zk")
    assert stage.found("ZooKeeperCluster", "zk")["status"]["observedGeneration"] == 1


def holding_data(stage: Stage) -> list[Json]:
    """All claims and Secrets that outlive what they were made for."""
    found = [dict(item) for kind in (CLAIM, "Secret") for item in stage.of(kind).get(namespace=stage.namespace).to_dict()["items"]]
    return [item for item in found if not item["metadata"].get("ownerReferences")]


def unmarked(stage: Stage) -> list[str]:
    return [
        item["metadata"]["name"] for item in holding_data(stage) if not MARKS.items() <= (item["metadata"].get("annotations") or {}).items()
    ]


@pytest.mark.parametrize(
    ("kind", "spec", "claims", "secrets"),
    [("ZooKeeperCluster", {}, 3, 1), ("BookKeeperCluster", {"zooKeeperAddress": ZOOKEEPER_ADDRESS, "bookies": 3}, 6, 0)],
)
def test_claims_and_secrets_are_made_safe_from_pruning(stage: Stage, kind: str, spec: Json, claims: int, secrets: int) -> None:
    stage.declare(kind, "it", spec)
    stage.settle(kind, "it")
    kinds = [item["kind"] for item in holding_data(stage)]
    assert (kinds.count(CLAIM), kinds.count("Secret"), unmarked(stage)) == (claims, secrets, [])


def test_claims_that_a_stateful_set_made_and_those_of_an_earlier_version_are_marked_once(stage: Stage) -> None:
    serving_database(stage)
    labels = names.labels(names.HERDDB_COMPONENT, HERDDB, "db")
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    body = {"apiVersion": "v1", "kind": CLAIM, "metadata": {"name": "data-db-herddb-0", "labels": labels}, "spec": spec}
    stage.of(CLAIM).create(body=body, namespace=stage.namespace)
    stage.patch("Secret", "db-herddb-credentials", {"metadata": {"annotations": dict.fromkeys(MARKS)}})
    assert sorted(unmarked(stage)) == ["data-db-herddb-0", "db-herddb-credentials"]
    stage.settle(HERDDB, "db")
    assert unmarked(stage) == []
    before = written()
    stage.reconcile(HERDDB, "db")
    assert written() == before
