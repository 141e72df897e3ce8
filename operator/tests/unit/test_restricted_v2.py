"""OpenShift's restricted-v2 admits every pod that the operator makes, once the platform assigns users and groups."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import test_build_golden
import yaml
from kubernetes import client
from kubernetes.client import ApiException

from herdkeeper.api import ZooKeeperCluster
from herdkeeper.clients.kubernetes import KubernetesReader, LiveSource
from herdkeeper.planning.intent import needed_apply
from herdkeeper.process import main
from herdkeeper.settings import Settings
from herdkeeper.shared.objects import Objects
from herdkeeper.zookeeper.build import build_zookeeper
from herdkeeper.zookeeper.state import Ensemble

Json = dict[str, Any]

RESTRICTED_V2 = yaml.safe_load("""
allowHostDirVolumePlugin: false
allowHostIPC: false
allowHostNetwork: false
allowHostPID: false
allowHostPorts: false
allowPrivilegeEscalation: false
allowPrivilegedContainer: false
allowedCapabilities: [NET_BIND_SERVICE]
fsGroup: {type: MustRunAs}
requiredDropCapabilities: [ALL]
runAsUser: {type: MustRunAsRange}
seLinuxContext: {type: MustRunAs}
seccompProfiles: [runtime/default]
supplementalGroups: {type: RunAsAny}
volumes: [configMap, csi, downwardAPI, emptyDir, ephemeral, image, persistentVolumeClaim, projected, secret]
""")
"""Of OpenShift 4 (openshift/cluster-kube-apiserver-operator, scc-restricted-v2.yaml). Ranges are a namespace's: no fixed id is in all."""
SECURITY_FIELDS = {
    "runAsNonRoot",
    "fsGroupChangePolicy",
    "seccompProfile",
    "allowPrivilegeEscalation",
    "readOnlyRootFilesystem",
    "capabilities",
}
"""What a security context may have: the constraints say nothing against it, or `refused` reads it."""
IDS = {"runAsUser", "runAsGroup", "fsGroup"}


def refused(pod: Json) -> Iterator[str]:
    """What restricted-v2 refuses in the spec of a pod."""
    yield from (name for name in ("hostNetwork", "hostPID", "hostIPC", "hostUsers", "shareProcessNamespace") if pod.get(name))
    yield from (f"volume {kind}" for volume in pod.get("volumes", ()) for kind in volume.keys() - {"name"} - {*RESTRICTED_V2["volumes"]})
    security = pod["securityContext"]
    yield from security.keys() - SECURITY_FIELDS
    if security["seccompProfile"] != {"type": "RuntimeDefault"} or not security["runAsNonRoot"]:
        yield "another profile, or root"
    for container in (*pod.get("initContainers", ()), *pod["containers"]):
        own = container["securityContext"]
        yield from own.keys() - SECURITY_FIELDS
        if own["allowPrivilegeEscalation"] or own["capabilities"] != {"drop": RESTRICTED_V2["requiredDropCapabilities"]}:
            yield "more privileges"
        yield from ("hostPort" for port in container.get("ports", ()) if "hostPort" in port)


def pods_of(built: Json) -> Iterator[Json]:
    """The specs of pods in an object: its template's, and of the executors that its driver makes."""
    if "template" in built.get("spec", {}):
        spec = built["spec"]["template"]["spec"]
        yield spec
        for container in spec["containers"]:
            arguments = container.get("args", [])
            if "--executor-pod" in arguments:
                yield json.loads(arguments[arguments.index("--executor-pod") + 1])["spec"]


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[Json, ...]]:
    """The objects of test_build_golden, where the platform assigns users and groups."""
    read = test_build_golden.read
    monkeypatch.setattr(test_build_golden, "read", lambda kind, **spec: read(kind, **spec).model_copy(update={"assigned_ids": True}))
    return test_build_golden.built()


def test_restricted_v2_admits_every_pod_where_the_platform_assigns_the_ids(built: dict[str, tuple[Json, ...]]) -> None:
    pods = [(name, pod) for name, objects in built.items() for each in objects for pod in pods_of(each)]
    assert {container["name"] for _, pod in pods for container in (*pod["containers"], *pod.get("initContainers", ()))} == {
        *("zookeeper", "bookie", "autorecovery", "herddb", "driver", "executor", "archiver", "move", "read-back", "retire")
    }
    assert {name: list(refused(pod)) for name, pod in pods if list(refused(pod))} == {}


def test_the_ids_are_all_that_differs_where_the_platform_assigns_them(built: dict[str, tuple[Json, ...]]) -> None:
    plain = test_build_golden.GOLDEN
    for name, objects in built.items():
        before = list(yaml.safe_load_all((plain / f"{name}.yaml").read_text()))
        assert [without_ids(each) for each in before] == yaml.safe_load(yaml.safe_dump([without_ids(each) for each in objects])), name
        assert all({*refused(pod)} == IDS for each in before for pod in pods_of(each)), "restricted-v2 refuses fixed ids"


def without_ids(found: Any) -> Any:
    match found:
        case dict():
            return {key: without_ids(value) for key, value in found.items() if key not in IDS}
        case list() | tuple():
            return [without_ids(value) for value in found]
        case str() if found.startswith("{") and "securityContext" in found:
            return without_ids(json.loads(found))
        case _:
            return found


def test_a_platform_that_assigns_ids_changes_the_template_of_running_servers() -> None:
    document = {"metadata": {"name": "zk", "namespace": "demo", "uid": "1"}, "spec": {}}
    own, assigned = (
        build_zookeeper(Ensemble(KubernetesReader(LiveSource(None), assigned_ids=ids).model(ZooKeeperCluster, document), Objects({})))[-1]
        for ids in (False, True)
    )
    change = needed_apply(assigned, Objects({("StatefulSet", own["metadata"]["name"]): own}))
    assert change is not None
    assert not change.new


def test_a_look_over_another_source_keeps_who_assigns_ids() -> None:
    document = {"metadata": {"name": "zk", "namespace": "demo", "uid": "1"}, "spec": {}}
    look = KubernetesReader(LiveSource(None), assigned_ids=True).over(LiveSource(None))
    assert look.model(ZooKeeperCluster, document).assigned_ids


SCC = "security.openshift.io"
RANGE = {"openshift.io/sa.scc.uid-range": "1000680000/10000"}


@pytest.mark.parametrize(
    ("setting", "groups", "annotations", "assigned"),
    [
        ("Auto", ("apps", SCC), RANGE, True),
        ("Auto", ("apps", SCC), None, False),
        ("Auto", ("apps",), RANGE, False),
        ("Fixed", (SCC,), RANGE, False),
        ("Assigned", ("apps",), None, True),
    ],
)
def test_openshift_is_recognized_by_the_users_of_its_namespaces_and_a_setting_decides_otherwise(
    monkeypatch: pytest.MonkeyPatch, setting: str, groups: tuple[str, ...], annotations: dict[str, str] | None, assigned: bool
) -> None:
    served = SimpleNamespace(groups=[SimpleNamespace(name=name) for name in groups])
    namespace = SimpleNamespace(metadata=SimpleNamespace(annotations=annotations))
    asked: list[str] = []

    def read(_: Any, name: str) -> Any:
        asked.append(name)
        return namespace

    monkeypatch.setattr(client.ApisApi, "get_api_versions", lambda _: served)
    monkeypatch.setattr(client.CoreV1Api, "read_namespace", read)
    assert main.assigned_ids(client.ApiClient(), Settings(pod_ids=setting, namespace="tools")) is assigned
    assert set(asked) <= {"tools"}


def test_an_api_server_that_does_not_list_its_groups_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(main, "time", SimpleNamespace(sleep=pauses.append))  # other threads sleep, too
    answers: list[Any] = [ApiException(status=503), True]

    def ask() -> bool:
        if isinstance(answer := answers.pop(0), Exception):
            raise answer
        return bool(answer)

    assert main.once_answered(ask) is True
    assert pauses == [main.AGAIN_SECONDS]
