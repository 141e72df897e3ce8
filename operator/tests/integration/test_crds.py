"""The generated CRDs on a real API server: accepted without complaint, and defaults stored."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes import client
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import UnprocessibleEntityError

from herdkeeper.api import KINDS, ZooKeeperCluster
from herdkeeper.api.resource import API_VERSION, Resource
from herdkeeper.clients.kubernetes import KubernetesReader, LiveSource
from herdkeeper.clients.kubernetes_writer import KubernetesWriter
from herdkeeper.shared.names import ObjectKey
from herdkeeper_e2e.control_plane import ControlPlane


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.KIND)
def test_the_api_server_finds_the_schema_structural(control_plane: ControlPlane, kind: type[Resource]) -> None:
    with control_plane.api_client() as api:
        found = client.ApiextensionsV1Api(api).read_custom_resource_definition(f"{kind.PLURAL}.herdkeeper.io")
    conditions = {condition.type: (condition.status, condition.message) for condition in found.status.conditions}
    assert conditions["Established"][0] == "True"
    assert "NonStructuralSchema" not in conditions


def test_a_cluster_of_one_line_is_stored_with_every_default_that_decides_durability(dynamic: DynamicClient, namespace: str) -> None:
    stored = create(dynamic, namespace, "HerdDBCluster", "db", {"bookKeeperRef": {"name": "bk"}})
    assert stored["spec"] == {
        "bookKeeperRef": {"name": "bk"},
        "replicas": 2,
        "ledgers": {"ensembleSize": 3, "writeQuorum": 3, "ackQuorum": 2, "maxSize": "256Mi", "retentionHours": 48},
        "storage": {"size": "10Gi"},
        "resources": {"cpu": "200m", "memory": "1Gi"},
        "pods": {"antiAffinity": "Preferred"},
        "networkPolicy": "Enabled",
        "deletionPolicy": "Retain",
    }


def _compactions(minor: tuple[int, int], major: tuple[int, int]) -> dict[str, Any]:
    names = ("thresholdPercent", "intervalSeconds")
    return {"minorCompaction": dict(zip(names, minor, strict=True)), "majorCompaction": dict(zip(names, major, strict=True))}


def _spread(key: str, wish: str) -> dict[str, Any]:
    return {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": wish}


ROWS: list[tuple[str, dict[str, Any], str | None]] = [
    *(("ZooKeeperCluster", {"replicas": replicas}, None) for replicas in (1, 3, 5, 7)),
    *(("ZooKeeperCluster", {"replicas": replicas}, "spec.replicas") for replicas in (2, 4, 6)),
    *(
        ("ZooKeeperCluster", {"security": {"mode": mode}, "resources": {"memory": memory}}, refused)
        for mode, memory, refused in (
            ("TLS", "255Mi", "spec.resources.memory"),
            ("Permissive", "255Mi", "spec.resources.memory"),
            ("TLS", "256Mi", None),
            ("Permissive", "256Mi", None),
            ("Insecure", "192Mi", None),
        )
    ),
    ("BookKeeperCluster", {"resources": {"memory": "511Mi"}}, "spec.resources.memory"),
    *(
        ("BookKeeperCluster", {"resources": {"cpu": "500m", "memory": "1Gi", **more}}, refused)
        for more, refused in (
            ({"limits": {"cpu": "500m", "ephemeral-storage": "2Gi", "hugepages-2Mi": "64Mi", "example.com/nic": "1"}}, None),
            ({"requests": {"memory": "1024Mi", "ephemeral-storage": "1Gi"}}, None),
            ({"limits": {"cpu": "499m"}}, "cpu is 500m, more than the limit of 499m: raise limits.cpu, or lower cpu"),
            ({"limits": {"memory": "2Gi"}}, "limits has memory: give cpu, ephemeral-storage,"),
            ({"limits": {"cpus": "2"}}, "limits has cpus: give cpu, ephemeral-storage,"),
            (
                {"limits": {"cpu": "500m", "example.com/nic": "500m"}},
                "limits has 500m of example.com/nic: only cpu has thousandths; give a whole number",
            ),
            ({"limits": {"cpu": "two"}}, "two is no amount: give a whole number"),
            *(
                ({"limits": {name: "1"}}, f"limits has {name}: give cpu, ephemeral-storage,")
                for name in (
                    "a/b/c",
                    "/nic",
                    "example.com/",
                    "Example.com/nic",
                    "kubernetes.io/nic",
                    "requests.example.com/nic",
                    "hugepages-",
                )
            ),
            ({"requests": {"cpu": "1"}}, "requests has cpu: give memory or ephemeral-storage; cpu is the request of CPU"),
            ({"requests": {"memory": "1025Mi"}}, "requests.memory is 1025Mi, more than the limit of 1Gi: raise memory"),
            (
                {"requests": {"ephemeral-storage": "2Gi"}, "limits": {"ephemeral-storage": "1Gi"}},
                "ephemeral-storage of requests is 2Gi, more than the limit of 1Gi: raise the limit",
            ),
        )
    ),
    *(
        ("ReplicationAudit", {"job": {"executors": {"limits": {"cpu": limit}}}}, refused)
        for limit, refused in (("500m", None), ("499m", "cpu is 500m, more than the limit of 499m: raise limits.cpu, or lower cpu"))
    ),
    *(
        (
            "ZooKeeperCluster",
            {"pods": {"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": wish}]}},
            refused,
        )
        for wish, refused in (("DoNotSchedule", None), ("Never", "spec.pods.topologySpreadConstraints[0].whenUnsatisfiable"))
    ),
    *(
        ("ZooKeeperCluster", {"pods": {"topologySpreadConstraints": [_spread(*each) for each in spreads]}}, refused)
        for spreads, refused in (
            ([("zone", "DoNotSchedule"), ("zone", "ScheduleAnyway"), ("rack", "DoNotSchedule")], None),
            (
                [("zone", "DoNotSchedule"), ("rack", "DoNotSchedule"), ("zone", "DoNotSchedule")],
                "topologySpreadConstraints has two with the topologyKey zone and DoNotSchedule: keep one of them",
            ),
            ([("a/b/c", "DoNotSchedule")], "a/b/c is no name of a label: use at most 63 letters,"),
        )
    ),
    *(
        ("ZooKeeperCluster", {"pods": pods}, refused)
        for pods, refused in (
            *(
                ({field: {"Example.com_1/b": "x"}}, f"spec.pods.{field} has the key Example.com_1/b")
                for field in ("labels", "nodeSelector")
            ),
            ({"annotations": {"Example.com/b": "any text"}}, None),
            ({"annotations": {"a/b/c": "x"}}, "spec.pods.annotations has the key a/b/c, which is no name: use at most 63 letters,"),
            ({"labels": {"team": "a b"}}, "a b is no value of a label: use letters,"),
            ({"tolerations": [{"operator": "Exists"}, {"key": "team", "value": "a", "effect": "NoSchedule"}]}, None),
            ({"tolerations": [{"effect": "NoSchedule"}]}, "it names no key: give one, or the operator Exists"),
            ({"tolerations": [{"key": "team", "operator": "Exists", "value": "a"}]}, "it has a value with the operator Exists: remove"),
            ({"tolerations": [{"key": "team", "tolerationSeconds": 9}]}, "tolerationSeconds needs the effect NoExecute: set it"),
        )
    ),
    *(("BookKeeperCluster", {"resources": {"memory": memory}}, None) for memory in ("512Mi", "524288Ki", "1Gi")),
    *(
        ("BookKeeperCluster", {"garbageCollection": collection}, refused and f"spec.garbageCollection.{refused}")
        for collection, refused in (
            ({}, None),
            (_compactions((80, 60), (80, 86400)), "minorCompaction"),
            (_compactions((20, 86400), (80, 86400)), "minorCompaction"),
            (_compactions((0, 86400), (80, 86400)), None),
            ({"intervalSeconds": 3601}, "intervalSeconds"),
        )
    ),
    *(
        ("HerdDBCluster", {"ledgers": dict(zip(("ensembleSize", "writeQuorum", "ackQuorum"), quorums, strict=True))}, refused)
        for quorums, refused in (
            ((3, 3, 2), None),
            ((3, 3, 3), None),
            ((1, 1, 1), None),
            ((3, 4, 2), "spec.ledgers.writeQuorum"),
            ((3, 2, 3), "spec.ledgers.ackQuorum"),
        )
    ),
    *(("HerdDBCluster", {"ledgers": {"maxSize": size}}, "spec.ledgers.maxSize") for size in ("1Ki", "15Ki")),
    *(("HerdDBCluster", {"ledgers": {"maxSize": size}}, None) for size in ("16Ki", "64Mi")),
    *(
        ("Tablespace", {"failover": {"hungLeaderSeconds": hung, "maxLeaderInactivitySeconds": inactive}}, refused)
        for hung, inactive, refused in (
            (15, 5, "spec.failover.maxLeaderInactivitySeconds"),
            (15, 15, "spec.failover.maxLeaderInactivitySeconds"),
            (15, 16, None),
            (5, 30, None),
        )
    ),
]
"""Kind, spec, and the field that the API server refuses; None when it stores the resource."""
REFERENCES = {
    "ZooKeeperCluster": {},
    "BookKeeperCluster": {"zooKeeperRef": {"name": "zk"}},
    "HerdDBCluster": {"bookKeeperRef": {"name": "bk"}},
    "Tablespace": {"herdDBRef": {"name": "db"}},
    "ReplicationAudit": {"bookKeeperRef": {"name": "bk"}},
}


@pytest.mark.parametrize(("kind", "spec", "refused"), ROWS)
def test_the_api_server_refuses_what_no_server_runs_with(
    dynamic: DynamicClient, namespace: str, kind: str, spec: dict[str, Any], refused: str | None
) -> None:
    if refused is None:
        create(dynamic, namespace, kind, "it", {**REFERENCES[kind], **spec})
        return
    with pytest.raises(UnprocessibleEntityError) as caught:
        create(dynamic, namespace, kind, "it", {**REFERENCES[kind], **spec})
    assert refused in str(caught.value.summary())


@pytest.mark.parametrize("name", ["3zk", "z.k", "a" * 41])
def test_the_api_server_refuses_a_name_that_no_service_can_be_named_after(dynamic: DynamicClient, namespace: str, name: str) -> None:
    with pytest.raises(UnprocessibleEntityError) as caught:
        create(dynamic, namespace, "ZooKeeperCluster", name, {})
    assert "metadata.name" in str(caught.value.summary())


ELSEWHERE = "../../SOMEWHERE/secrets/login"


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("ZooKeeperCluster", "security.authority.secretName", {"security": {"authority": {"secretName": ELSEWHERE}}}),
        ("ZooKeeperCluster", "pods.imagePullSecrets[0].name", {"pods": {"imagePullSecrets": [{"name": ELSEWHERE}]}}),
        ("HerdDBCluster", "credentialsSecretRef.name", {"credentialsSecretRef": {"name": ELSEWHERE}}),
        ("HerdDBCluster", "users[0].secretName", {"users": [{"secretName": ELSEWHERE}]}),
        ("HerdDBCluster", "tls.secretName", {"tls": {"secretName": ELSEWHERE}}),
        (
            "ReplicationAudit",
            "destination.persistentVolumeClaim.claimName",
            {"destination": {"persistentVolumeClaim": {"claimName": ".."}}},
        ),
    ],
)
def test_no_resource_names_an_object_of_another_namespace(
    dynamic: DynamicClient, namespace: str, kind: str, field: str, value: dict[str, Any]
) -> None:
    """The path of such a name at the API server leads elsewhere, and the operator may read Secrets of all namespaces."""
    with pytest.raises(UnprocessibleEntityError) as caught:
        create(dynamic, namespace, kind, "it", {**REFERENCES[kind], **value})
    assert f"spec.{field}" in str(caught.value.summary())
    assert "is no name of an object" in str(caught.value.summary())


@pytest.mark.parametrize("name", [ELSEWHERE, "%2e%2e/%2e%2e/SOMEWHERE/secrets/login", f"{ELSEWHERE}#", f"{ELSEWHERE}?a=b", "..", "."])
def test_a_name_gives_the_operator_nothing_of_another_namespace(dynamic: DynamicClient, namespace: str, name: str) -> None:
    """Also one in a stored resource that no schema has seen, or in a status."""
    secrets = dynamic.resources.get(api_version="v1", kind="Secret")
    login = {"metadata": {"name": "login"}, "stringData": {"username": "root", "password": "of somebody else"}}
    other = f"other-{namespace}"
    dynamic.resources.get(api_version="v1", kind="Namespace").create(body={"metadata": {"name": other}})
    secrets.create(body=login, namespace=other)
    reader = KubernetesReader(LiveSource(dynamic))
    assert reader.secret(ObjectKey(other, "login")) == login["stringData"]
    assert reader.secret(ObjectKey(namespace, name.replace("SOMEWHERE", other))) is None


def test_definitions_that_lack_a_field_of_the_status_store_the_rest_of_it(dynamic: DynamicClient, namespace: str) -> None:
    """As those of an earlier version do, where they are not upgraded with the operator."""
    create(dynamic, namespace, "ZooKeeperCluster", "zk", {})
    cluster = KubernetesReader(LiveSource(dynamic)).readable(ZooKeeperCluster, ObjectKey(namespace, "zk"))
    assert cluster is not None
    for voters in (3, 5):
        KubernetesWriter(dynamic).write_status(cluster, {"message": "m", "voters": voters, "ofTomorrow": {"a": 1}})
        found = dynamic.resources.get(api_version=API_VERSION, kind="ZooKeeperCluster").get(name="zk", namespace=namespace)
        assert (found.status.voters, found.status.message, found.status.ofTomorrow) == (voters, "m", None)
    (event,) = dynamic.resources.get(api_version="v1", kind="Event").get(namespace=namespace).items
    assert (event.reason, event.count) == ("FieldsIgnored", 2)
    assert "ofTomorrow: field not declared in schema" in event.message


def create(dynamic: DynamicClient, namespace: str, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """The resource as the API server stored it."""
    resource = dynamic.resources.get(api_version=API_VERSION, kind=kind)
    body = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
    return dict(resource.create(body=body, namespace=namespace).to_dict())
