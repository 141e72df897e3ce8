"""What `pods` of a job does to the pods of its driver, its executors and the archiver."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from situations import LOG_STORE

from herdkeeper.api import Checkpoint, ReplicationAudit, Tablespace
from herdkeeper.api.job import Destination
from herdkeeper.herddb.log.build_archive import build_archiver
from herdkeeper.planning import pods as pod
from herdkeeper.spark.build_job import build_audit, build_removal, build_restore
from herdkeeper.spark.sources import AuditSource, Login, RestoreSource

META = {"name": "quick", "namespace": "demo", "uid": "11111111-2222-3333-4444-555555555555"}
ZOOKEEPER = "quick-zookeeper-0.quick-zookeeper-members.demo.svc:2181"
IMAGE = "herdkeeper/spark:0.2.0"
CLAIM = {"persistentVolumeClaim": {"claimName": "checkpoints"}}
PODS = {
    "labels": {"team": "storage"},
    "annotations": {"example.com/note": "kept"},
    "nodeSelector": {"pool": "batch"},
    "tolerations": [{"key": "batch", "operator": "Exists", "effect": "NoSchedule"}],
    "priorityClassName": "batch",
    "imagePullSecrets": [{"name": "registry"}],
}
Template = Mapping[str, Any]


def of_audit(pods: Any, executors: int = 0) -> Template:
    spec = {"bookKeeperRef": {"name": "bk"}, "job": {"pods": pods, "executors": {"instances": executors}}}
    audit = ReplicationAudit.model_validate({"metadata": META, "spec": spec})
    return dict(build_audit(audit, AuditSource(ZOOKEEPER, "/demo/bk/ledgers"), IMAGE)[-1]["spec"]["template"])


def of_removal(pods: Any) -> Template:
    spec = {"tablespaceRef": {"name": "flights"}, "destination": CLAIM, "job": {"pods": pods}}
    return dict(build_removal(Checkpoint.model_validate({"metadata": META, "spec": spec}), None, IMAGE)["spec"]["template"])


def of_restore(pods: Any) -> Template:
    spec = {"herdDBRef": {"name": "db"}, "bootstrap": {"checkpoint": {"name": "full"}, "job": {"pods": pods}}}
    source = RestoreSource(ZOOKEEPER, "/demo/db/herd", Destination.model_validate(CLAIM), "a/b/manifests/1-2.json", Login("db-credentials"))
    return dict(build_restore(Tablespace.model_validate({"metadata": META, "spec": spec}), source, IMAGE)[-1]["spec"]["template"])


def of_archiver(pods: Any) -> Template:
    spec = {"herdDBRef": {"name": "db"}, "log": {"archive": {"destination": CLAIM, "pods": pods}}}
    return dict(
        build_archiver(Tablespace.model_validate({"metadata": META, "spec": spec}), LOG_STORE, "/demo/db/herd", IMAGE)["spec"]["template"]
    )


def of_executors(pods: Any) -> Template:
    arguments = of_audit(pods, executors=2)["spec"]["containers"][0]["args"]
    return dict(json.loads(arguments[arguments.index("--executor-pod") + 1]))


@pytest.mark.parametrize("of_job", [of_audit, of_removal, of_restore, of_archiver, of_executors])
def test_a_job_s_pods_are_placed_and_marked_as_the_resource_says(of_job: Callable[[Any], Template]) -> None:
    found, plain = of_job(PODS), of_job({})
    spec = found["spec"]
    assert spec["nodeSelector"] == {"pool": "batch"}
    assert spec["tolerations"] == [{"key": "batch", "operator": "Exists", "effect": "NoSchedule"}]
    assert spec["priorityClassName"] == "batch"
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    assert found["metadata"]["labels"] == {**plain["metadata"]["labels"], "team": "storage"}
    assert found["metadata"]["annotations"] == {"example.com/note": "kept"}
    assert "annotations" not in plain["metadata"]


def test_executors_have_no_more_rights_than_their_driver() -> None:
    spec = of_executors({})["spec"]
    assert spec["securityContext"] == of_audit({}, executors=2)["spec"]["securityContext"]
    assert spec["containers"][0]["securityContext"] == pod.CONTAINER_SECURITY
    assert spec["automountServiceAccountToken"] is False


def test_executors_are_not_taken_for_their_job_s_own_pod() -> None:
    driver, executor = of_audit({}, executors=2)["metadata"]["labels"], of_executors({})["metadata"]["labels"]
    assert driver["app.kubernetes.io/name"] == "audit"
    assert executor["app.kubernetes.io/name"] == "executor"


def test_executors_have_the_limits_that_the_resource_adds_and_spark_the_others() -> None:
    executors = {"instances": 2, "limits": {"cpu": "2", "ephemeral-storage": "10Gi"}}
    audit = ReplicationAudit.model_validate({"metadata": META, "spec": {"bookKeeperRef": {"name": "bk"}, "job": {"executors": executors}}})
    arguments = build_audit(audit, AuditSource(ZOOKEEPER, "/demo/bk/ledgers"), IMAGE)[-1]["spec"]["template"]["spec"]["containers"][0][
        "args"
    ]
    (container,) = json.loads(arguments[arguments.index("--executor-pod") + 1])["spec"]["containers"]
    assert container["resources"] == {"limits": {"cpu": "2", "ephemeral-storage": "10Gi"}}
    assert "resources" not in of_executors({})["spec"]["containers"][0]


def test_without_executors_no_pod_is_described() -> None:
    assert "--executor-pod" not in of_audit(PODS)["spec"]["containers"][0]["args"]
