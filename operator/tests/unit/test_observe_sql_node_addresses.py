"""SQL nodes are asked, and ordered, at the address of their pod: after a restart DNS may still give the one before."""

from __future__ import annotations

import pytest
from situations import objects, pods
from test_plan_herddb import CLUSTER, PODS

from herdkeeper.clients.world import World
from herdkeeper.herddb.execute.node_orders import wake_nodes
from herdkeeper.herddb.observe.cluster import read_nodes
from herdkeeper.planning.actions import WakeNodes
from herdkeeper.shared.names import ObjectKey


class Answering:
    """Remembers who was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def get(self, url: str) -> list[object]:
        self.asked.append(url)
        return []


def at(address):
    (pod,) = pods([PODS[0]]).values()
    return objects({("Pod", PODS[0]): {**pod, "status": {**pod["status"], **({"podIP": address} if address else {})}}})


BY_NAME = CLUSTER.names.host_of(PODS[0])


@pytest.mark.parametrize(("address", "host"), [("10.1.2.3", "10.1.2.3"), ("fd00::7", "[fd00::7]"), (None, BY_NAME), ("", BY_NAME)])
def test_a_node_is_asked_at_its_pod_s_address_and_by_its_name_while_there_is_none(address, host):
    answering = Answering()
    assert read_nodes(CLUSTER, at(address), World(None, None, answering)) == {PODS[0]: ()}
    assert answering.asked == [f"http://{host}:9845/tablespaces"]


class Kubernetes:
    """What an order is sent with: the database, its token, and the node's pod, if it is there."""

    def __init__(self, pod: object) -> None:
        self.pod = pod

    def readable(self, *_: object) -> object:
        return CLUSTER

    def secret(self, _key: object) -> dict[str, str]:
        return {"token": "a-token"}

    def document(self, _version: str, kind: str, key: ObjectKey) -> object:
        assert (kind, key) == ("Pod", ObjectKey("demo", PODS[0]))
        return self.pod


class Ordered:
    def __init__(self) -> None:
        self.orders: list[tuple[str, str]] = []

    def post(self, url: str, token: str, _seconds: float) -> object:
        self.orders.append((url, token))
        return {}


@pytest.mark.parametrize(
    ("pod", "host"), [(at("10.1.2.3").get("Pod", PODS[0]), "10.1.2.3"), (at(None).get("Pod", PODS[0]), BY_NAME), (None, BY_NAME)]
)
def test_orders_go_there_too(pod, host):
    ordered = Ordered()
    wake_nodes("demo", WakeNodes("db", (PODS[0],)), World(Kubernetes(pod), None, None), ordered)
    assert ordered.orders == [(f"http://{host}:9845/activator/wake", "a-token")]
