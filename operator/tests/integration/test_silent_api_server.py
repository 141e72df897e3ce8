"""An API server whose connections nobody answers any more: a call ends with an error instead of holding its worker for ever."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest
from control_plane import ControlPlane
from kubernetes import client
from kubernetes.dynamic import DynamicClient
from urllib3.exceptions import HTTPError

from herdkeeper.api import ZooKeeperCluster
from herdkeeper.domain.names import ObjectKey
from herdkeeper.execute import kubernetes as writing
from herdkeeper.execute.kubernetes import KubernetesWriter
from herdkeeper.handlers import lease, main
from herdkeeper.handlers.lease import Lease
from herdkeeper.observe import kubernetes as reading
from herdkeeper.observe.kubernetes import WORKLOADS, KubernetesReader
from herdkeeper.plan.action import Create

SECONDS = 0.3


@pytest.fixture
def silent(control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> Iterator[DynamicClient]:
    """The client of the operator's process, which knows all kinds, and whose server then only accepts connections."""
    monkeypatch.setenv("KUBECONFIG", str(control_plane.kubeconfig))
    monkeypatch.setattr(main.config, "load_kube_config", lambda: client.Configuration.set_default(_administrator(control_plane)))
    dynamic = main.kubernetes_client()
    for api_version, kind in (*WORKLOADS, ("v1", "PersistentVolumeClaim"), ("herdkeeper.io/v1alpha1", "ZooKeeperCluster")):
        dynamic.resources.get(api_version=api_version, kind=kind)
    monkeypatch.setattr(reading, "ANSWER_SECONDS", (SECONDS, SECONDS))
    monkeypatch.setattr(writing, "ANSWER_SECONDS", (SECONDS, SECONDS))
    monkeypatch.setattr(lease, "RETRY_SECONDS", SECONDS / 2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        dynamic.client.configuration.host = f"http://127.0.0.1:{server.getsockname()[1]}"
        yield dynamic
    client.Configuration.set_default(None)


def _administrator(plane: ControlPlane) -> client.Configuration:
    with plane.api_client() as api:
        return api.configuration


@pytest.mark.parametrize("call", ["get", "list", "write", "lease"])
def test_a_call_that_nobody_answers_ends(silent: DynamicClient, call: str) -> None:
    reader, key = KubernetesReader(silent), ObjectKey("demo", "zk")
    calls = {
        "get": lambda: reader.resource(ZooKeeperCluster, key),
        "list": lambda: reader.owned("ZooKeeperCluster", key, WORKLOADS),
        "write": lambda: KubernetesWriter(silent).create(
            Create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "x", "namespace": "demo"}})
        ),
        "lease": Lease(silent, "demo", "me", lambda: None)._read,
    }
    begun = time.monotonic()
    with pytest.raises(HTTPError):
        calls[call]()
    assert SECONDS <= time.monotonic() - begun < 2 * SECONDS, "it was asked again"
