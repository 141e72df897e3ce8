"""An API server whose connections nobody answers any more: a call ends with an error instead of holding its worker for ever."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from kubernetes import client, config
from kubernetes.dynamic import DynamicClient
from urllib3.exceptions import HTTPError

from herdkeeper.api import ZooKeeperCluster
from herdkeeper.clients import kubernetes as reading
from herdkeeper.clients import kubernetes_writer as writing
from herdkeeper.clients.kubernetes import WORKLOADS, KubernetesReader, LiveSource
from herdkeeper.clients.kubernetes_writer import KubernetesWriter
from herdkeeper.planning.actions import Create
from herdkeeper.process import lease, main
from herdkeeper.process.lease import Lease
from herdkeeper.shared.names import ObjectKey
from herdkeeper_e2e.control_plane import ControlPlane

SECONDS = 0.3


@dataclass(frozen=True)
class Silent:
    """A server that takes connections and says nothing, and its client."""

    client: DynamicClient
    server: socket.socket

    def connections(self) -> int:
        """How many were opened to it. A request that is tried again opens another one."""
        self.server.setblocking(False)
        found = 0
        while True:
            try:
                self.server.accept()[0].close()
            except BlockingIOError:
                return found
            found += 1


@pytest.fixture
def silent(control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> Iterator[Silent]:
    """The client of the operator's process, which knows all kinds, and whose server then only accepts connections."""
    monkeypatch.setenv("KUBECONFIG", str(control_plane.kubeconfig))
    monkeypatch.setattr(config, "load_kube_config", lambda: client.Configuration.set_default(_administrator(control_plane)))
    dynamic = main.kubernetes_client()
    for api_version, kind in (*WORKLOADS, ("v1", "PersistentVolumeClaim"), ("herdkeeper.io/v1alpha1", "ZooKeeperCluster")):
        dynamic.resources.get(api_version=api_version, kind=kind)
    monkeypatch.setattr(reading, "ANSWER_SECONDS", (SECONDS, SECONDS))
    monkeypatch.setattr(writing, "ANSWER_SECONDS", (SECONDS, SECONDS))
    monkeypatch.setattr(lease, "RETRY_SECONDS", SECONDS / 2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        dynamic.client.configuration.host = f"http://127.0.0.1:{server.getsockname()[1]}"
        yield Silent(dynamic, server)
    client.Configuration.set_default(None)


def _administrator(plane: ControlPlane) -> client.Configuration:
    with plane.api_client() as api:
        return api.configuration


@pytest.mark.parametrize("call", ["get", "list", "write", "lease"])
def test_a_call_that_nobody_answers_ends_and_is_not_made_again(silent: Silent, call: str) -> None:
    reader, key = KubernetesReader(LiveSource(silent.client)), ObjectKey("demo", "zk")
    calls = {
        "get": lambda: reader.resource(ZooKeeperCluster, key),
        "list": lambda: reader.owned("ZooKeeperCluster", key, WORKLOADS),
        "write": lambda: KubernetesWriter(silent.client).create(
            Create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "x", "namespace": "demo"}})
        ),
        "lease": Lease(silent.client, "demo", "me", lambda: None)._read,
    }
    with pytest.raises(HTTPError):
        calls[call]()
    assert silent.connections() == 1
