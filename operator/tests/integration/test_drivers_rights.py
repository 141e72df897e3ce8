"""A Spark driver has its rights by a RoleBinding to the chart's ClusterRole, which the operator may bind and does not hold."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import DynamicApiError
from stage import ZOOKEEPER_ADDRESS, Stage

from herdkeeper.api import Checkpoint
from herdkeeper.api.resource import GROUP
from herdkeeper.schema.access import DRIVER_RULES
from herdkeeper.shared.names import DRIVER_ROLE
from herdkeeper.spark.build_executors import executor_access
from herdkeeper.spark.job_run import JobFiles, JobRun
from herdkeeper_e2e.audit_log import requests_of
from herdkeeper_e2e.control_plane import LOGGED_DRIVER, ControlPlane, apply_rules, make_namespace, rendered
from herdkeeper_e2e.rights_used import Right, taken_by
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

Json = dict[str, Any]
RBAC = "rbac.authorization.k8s.io"
NAME = "flights-1-checkpoint"
RENAMED = "herdkeeper-system-renamed-driver"
"""The role of a release of another name."""
LOGGED = LOGGED_DRIVER.split(":")[2]
"""The namespace of the driver whose requests are logged."""
OF_EXECUTORS = "spark-role=executor"
STARTED = Limit(120, 0.2)


def access(namespace: str, account: str | None = None, role: str = DRIVER_ROLE, store: Json | None = None) -> tuple[Json, ...]:
    """What the operator makes for the driver of a Checkpoint on a volume, or in a store. Its pods run as `account`."""
    opened = store if account is None else {"serviceAccountName": account}
    place = {"objectStore": {"uri": "s3://out/flights", **opened}} if opened else {"persistentVolumeClaim": {"claimName": "out"}}
    declared = {"tablespaceRef": {"name": "flights"}, "destination": place}
    metadata = {"name": "flights-1", "namespace": namespace, "uid": "a-uid"}
    checkpoint = Checkpoint.model_validate({"metadata": metadata, "spec": {**declared, "job": {"executors": {"instances": 2}}}})
    run = JobRun(checkpoint, "checkpoint", "spark:1", ("checkpoint",), checkpoint.spec.job, JobFiles.at(checkpoint.spec.destination))
    return executor_access(run, role)


def apply(dynamic: DynamicClient, objects: Iterable[Json]) -> None:
    """As the operator does."""
    for document in objects:
        meta = {key: value for key, value in document["metadata"].items() if key != "ownerReferences"}
        resource = dynamic.resources.get(api_version=document["apiVersion"], kind=document["kind"])
        body = {**document, "metadata": meta}
        resource.server_side_apply(
            body=body, name=meta["name"], namespace=meta["namespace"], field_manager="herdkeeper", force_conflicts=True
        )


def may(plane: ControlPlane, where: str, user: str, verb: str, resource: tuple[str, str, str]) -> bool:
    """Whether a user may do it to a resource (group, plural, name); the API server's own answer."""
    group, plural, name = resource
    attributes = {"verb": verb, "group": group, "resource": plural, "name": name, "namespace": where}
    with plane.api_client() as api:
        body = {"spec": {"user": user, "resourceAttributes": attributes}}
        return bool(client.AuthorizationV1Api(api).create_subject_access_review(body).status.allowed)


def driver_of(namespace: str) -> str:
    return f"system:serviceaccount:{namespace}:{NAME}"


def wait_until_driver(plane: ControlPlane, namespace: str) -> None:
    """The API server's authorizer learns of bindings from a watch."""
    allowed = partial(may, plane, namespace, driver_of(namespace), "create", ("", "pods", ""))
    wait_for("the driver's rights", lambda: allowed() or Pending("not yet"), Limit(60, 0.05))


@pytest.mark.parametrize("everywhere", [True, False], ids=["everywhere", "in watched namespaces"])
def test_a_driver_gets_what_it_needs_by_a_binding_and_the_operator_has_none_of_it(
    clean_access: ControlPlane, namespace: str, everywhere: bool
) -> None:
    apply_rules(clean_access, rendered(*(() if everywhere else (f"watchNamespaces={{{namespace}}}",))))
    apply(clean_access.dynamic_client(token="operator-token"), access(namespace))
    wait_until_driver(clean_access, namespace)
    elsewhere = make_namespace(clean_access, f"{namespace}-elsewhere")
    for rule in DRIVER_RULES:
        for verb in rule.verbs:
            asked = (rule.group, rule.resources[0], "")
            assert may(clean_access, namespace, driver_of(namespace), verb, asked), (verb, asked)
            assert not may(clean_access, elsewhere, driver_of(namespace), verb, asked), (verb, asked)
    for verb, plural in (("get", "secrets"), ("patch", "pods"), ("create", "pods/exec"), ("create", "services")):
        assert not may(clean_access, namespace, driver_of(namespace), verb, ("", plural, ""))
    operator = partial(may, clean_access, namespace, "system:serviceaccount:herdkeeper-system:herdkeeper")
    assert operator("delete", ("", "pods", ""))
    for verb, plural in (("create", "pods"), ("deletecollection", "pods"), ("deletecollection", "configmaps")):
        assert not operator(verb, ("", plural, ""))
    assert not operator("drive", (GROUP, "executors", ""))


@contextmanager
def spark_driver(plane: ControlPlane, core: client.CoreV1Api, log: Path) -> Iterator[None]:
    """A real one, in the namespace LOGGED. No kubelet runs what it makes. It ends by itself at the end."""
    body = {"metadata": {"name": "driver"}, "spec": {"containers": [{"name": "driver", "image": "no-image"}]}}
    core.create_namespaced_pod(LOGGED, body)
    core.patch_namespaced_pod_status("driver", LOGGED, {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    token = core.create_namespaced_service_account_token(NAME, LOGGED, {"spec": {"audiences": []}}).status.token
    program = [sys.executable, str(Path(__file__).parent / "driver_with_executors.py")]
    command = [*program, plane.address, str(plane.folder / "certs" / "apiserver.crt"), token]
    environment = {**os.environ, "POD_IP": "127.0.0.1", "POD_NAME": "driver", "POD_NAMESPACE": LOGGED}
    with log.open("wb") as errors:
        driver = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
    assert driver.stdin is not None
    assert driver.stdout is not None
    try:
        assert driver.stdout.readline(), log.read_text()[-3000:]
        yield
        driver.stdin.close()
        assert driver.wait(120) == 0, log.read_text()[-3000:]
    finally:
        driver.kill()
        driver.wait()


def test_a_real_driver_uses_each_of_its_rights_and_needs_no_other(clean_access: ControlPlane, tmp_path: Path) -> None:
    make_namespace(clean_access, LOGGED)
    apply_rules(clean_access, rendered())
    apply(clean_access.dynamic_client(token="operator-token"), access(LOGGED))
    wait_until_driver(clean_access, LOGGED)
    with clean_access.api_client() as api:
        core = client.CoreV1Api(api)

        def executors() -> set[str]:
            return {pod.metadata.name for pod in core.list_namespaced_pod(LOGGED, label_selector=OF_EXECUTORS).items}

        with spark_driver(clean_access, core, tmp_path / "driver.log"):
            wait_for("two executors", lambda: len(executors()) == 2 or Pending(f"{executors()}"), STARTED)
            lost = min(executors())
            core.patch_namespaced_pod_status(lost, LOGGED, {"status": {"phase": "Failed"}})
            wait_for("another one", lambda: (lost not in executors() and len(executors()) == 2) or Pending(f"{executors()}"), STARTED)
        assert executors() == set()
        assert core.list_namespaced_config_map(LOGGED, label_selector=OF_EXECUTORS).items == []
    requests = list(requests_of(clean_access.audit_log.read_bytes().splitlines(), LOGGED_DRIVER))
    assert [each for each in requests if each.code >= 400] == [], "rights that are missing"
    given = {Right(rule.group, plural, verb) for rule in DRIVER_RULES for plural in rule.resources for verb in rule.verbs}
    assert {right for each in requests for right in taken_by(each)} == given - {Right(GROUP, "executors", "drive")}


def test_the_operator_binds_no_other_role_and_makes_none_with_such_rights(clean_access: ControlPlane, namespace: str) -> None:
    apply_rules(clean_access, rendered())
    operator = clean_access.dynamic_client(token="operator-token")
    for role in ("cluster-admin", "system:kube-scheduler", "herdkeeper-system-herdkeeper-edit"):
        with pytest.raises(DynamicApiError, match="not currently held"):
            apply(operator, access(namespace, role=role))
    for rule in DRIVER_RULES:
        rules = [{"apiGroups": [rule.group], "resources": list(rule.resources), "verbs": list(rule.verbs)}]
        meta = {"name": "driver", "namespace": namespace}
        with pytest.raises(DynamicApiError, match="not currently held"):
            apply(operator, [{"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": meta, "rules": rules}])


def test_executors_may_run_as_the_account_of_their_job_by_a_mark_in_a_role(clean_access: ControlPlane, namespace: str) -> None:
    apply_rules(clean_access, rendered())
    apply(clean_access.dynamic_client(token="operator-token"), access(namespace, "backups"))
    wait_until_driver(clean_access, namespace)
    runs_as = partial(may, clean_access, namespace, driver_of(namespace), "run")
    wait_for("the mark", lambda: runs_as((GROUP, "executors", "backups")) or Pending("not yet"), Limit(60, 0.05))
    assert not runs_as((GROUP, "executors", "somebody-s"))


def test_executors_may_have_the_secrets_of_their_job_by_a_mark_in_a_role(clean_access: ControlPlane, namespace: str) -> None:
    apply_rules(clean_access, rendered())
    apply(clean_access.dynamic_client(token="operator-token"), access(namespace, store={"credentialsSecretRef": {"name": "store-keys"}}))
    mounts = partial(may, clean_access, namespace, driver_of(namespace), "mount")
    wait_for("the mark", lambda: mounts((GROUP, "executors", "store-keys")) or Pending("not yet"), Limit(60, 0.05))
    assert not mounts((GROUP, "executors", "zk-zookeeper-authority"))
    assert not may(clean_access, namespace, driver_of(namespace), "get", ("", "secrets", "store-keys"))


def test_a_run_that_an_earlier_version_began_and_one_whose_release_was_renamed_get_a_binding_more(
    clean_access: ControlPlane, namespace: str
) -> None:
    """The role of a binding never changes."""
    admin, operator = clean_access.dynamic_client(), clean_access.dynamic_client(token="operator-token")
    *_, role, binding, _ = access(namespace, "backups")
    earlier = {**role, "rules": [*role["rules"], {"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}]}
    apply(admin, (earlier, binding))
    apply_rules(clean_access, rendered())
    apply(operator, access(namespace, "backups"))
    apply(admin, access(namespace, "backups", RENAMED))
    found = admin.resources.get(api_version=f"{RBAC}/v1", kind="RoleBinding").get(namespace=namespace).items
    assert {each.metadata.name: each.roleRef.name for each in found} == {
        NAME: NAME,
        f"{NAME}-{DRIVER_ROLE}": DRIVER_ROLE,
        f"{NAME}-{RENAMED}": RENAMED,
    }
    kept = admin.resources.get(api_version=f"{RBAC}/v1", kind="Role").get(namespace=namespace, name=NAME)
    assert [list(rule.resources) for rule in kept.rules] == [["executors"]]


def test_an_operator_whose_chart_lets_it_bind_no_such_role_says_so(
    clean_access: ControlPlane, dynamic: DynamicClient, namespace: str
) -> None:
    """Of an earlier version, or with rights of one's own."""
    objects = rendered()
    for document in objects:
        if "rules" in document:
            document["rules"] = [rule for rule in document["rules"] if rule["verbs"] != ["bind"]]
    apply_rules(clean_access, [each for each in objects if each["metadata"]["name"] != DRIVER_ROLE])
    stage = Stage(dynamic, namespace, operator=clean_access.dynamic_client(token="operator-token"))
    stage.declare("BookKeeperCluster", "bk", {"zooKeeperAddress": ZOOKEEPER_ADDRESS, "bookies": 1})
    stage.settle("BookKeeperCluster", "bk")
    stage.declare("ReplicationAudit", "found", {"bookKeeperRef": {"name": "bk"}, "job": {"executors": {"instances": 1}}})
    stage.reconcile("ReplicationAudit", "found")
    told = {each["type"]: each for each in stage.found("ReplicationAudit", "found")["status"]["conditions"]}["Progressing"]
    assert (told["reason"], stage.live("Job", "found-audit")) == ("ActionFailed", None)
    assert f"found-audit-{DRIVER_ROLE}" in told["message"]
    assert "not currently held" in told["message"] or f'"{DRIVER_ROLE}" not found' in told["message"]
