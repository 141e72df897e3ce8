"""The generated CRDs on a real API server: accepted without complaint, and defaults stored."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes import client
from kubernetes.dynamic import DynamicClient

from herdkeeper.api import KINDS
from herdkeeper.api.resource import API_VERSION, Resource
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


def create(dynamic: DynamicClient, namespace: str, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """The resource as the API server stored it."""
    resource = dynamic.resources.get(api_version=API_VERSION, kind=kind)
    body = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
    return dict(resource.create(body=body, namespace=namespace).to_dict())
