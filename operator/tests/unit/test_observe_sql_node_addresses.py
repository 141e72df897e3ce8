"""SQL nodes are asked, and ordered, at the address of their pod: after a restart DNS may still give the one before."""

from __future__ import annotations

import pytest
from situations import objects, pods
from test_plan_herddb import CLUSTER, PODS

from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.herddb.execute.node_orders import SqlNodes
from herdkeeper.herddb.observe.nodes import read_nodes
from herdkeeper.herddb.state.nodes import number_of, present_nodes
from herdkeeper.planning.actions import WakeNodes
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.unknown import Unknown


class Answering:
    """Remembers who was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def get(self, url: str, _trust: None) -> list[object]:
        self.asked.append(url)
        return []


STATEFUL_SET = CLUSTER.names.stateful_set
OURS = {"metadata": {"name": STATEFUL_SET, "uid": "ours"}, "spec": {"replicas": 1}}


def at(address, owner="ours"):
    (pod,) = pods([PODS[0]]).values()
    made_by = {"kind": "StatefulSet", "name": STATEFUL_SET, "uid": owner, "controller": True}
    metadata = {**pod["metadata"], "ownerReferences": [made_by]}
    status = {**pod["status"], **({"podIP": address} if address else {})}
    return objects({("Pod", PODS[0]): {**pod, "metadata": metadata, "status": status}, ("StatefulSet", STATEFUL_SET): OURS})


BY_NAME = CLUSTER.names.host_of(PODS[0])


@pytest.mark.parametrize(("address", "host"), [("10.1.2.3", "10.1.2.3"), ("fd00::7", "[fd00::7]"), (None, BY_NAME), ("", BY_NAME)])
def test_a_node_is_asked_at_its_pod_s_address_and_by_its_name_while_there_is_none(address, host):
    answering = Answering()
    assert read_nodes(CLUSTER, at(address), ClusterReader(None, None, answering)) == {PODS[0]: ()}
    assert answering.asked == [f"http://{host}:9845/tablespaces"]


def test_a_pod_with_the_name_and_the_labels_of_a_node_that_our_stateful_set_did_not_make_is_not_asked():
    answering = Answering()
    (found,) = read_nodes(CLUSTER, at("10.1.2.3", owner="somebody-else-s"), ClusterReader(None, None, answering)).values()
    assert isinstance(found, Unknown)
    assert f"no pod {PODS[0]} that the StatefulSet {STATEFUL_SET} made" in found.why
    assert answering.asked == []


def test_a_pod_of_anybody_s_with_a_number_without_bounds_makes_no_nodes():
    """It has the labels of a node; a name has up to 63 characters."""
    stranger = pods([f"{STATEFUL_SET}-100000"])
    assert present_nodes(CLUSTER, objects(pods(PODS), stranger)) == tuple(PODS)


def test_a_znode_with_a_number_that_is_none_names_no_node():
    assert number_of(CLUSTER.names, f"{STATEFUL_SET}-\N{SUPERSCRIPT TWO}") is None


class Kubernetes:
    """What an order is sent with: the database, its token, and the node's pod, if it is there."""

    def __init__(self, pod: object) -> None:
        self.pod = pod

    def readable(self, *_: object) -> object:
        return CLUSTER

    def secret(self, _key: object) -> dict[str, str]:
        return {"token": "a-token"}

    def document(self, _version: str, kind: str, key: ObjectKey) -> object:
        return {("Pod", PODS[0]): self.pod, ("StatefulSet", STATEFUL_SET): OURS}[kind, key.name]


class Ordered:
    def __init__(self) -> None:
        self.orders: list[tuple[str, str]] = []

    def post(self, url: str, token: str, _seconds: float, _trust: None) -> object:
        self.orders.append((url, token))
        return {}


@pytest.mark.parametrize(("pod", "host"), [(at("10.1.2.3").get("Pod", PODS[0]), "10.1.2.3"), (at(None).get("Pod", PODS[0]), BY_NAME)])
def test_orders_go_there_too(pod, host):
    ordered = Ordered()
    SqlNodes("demo", ClusterReader(Kubernetes(pod), None, None), ordered).wake(WakeNodes("db", (PODS[0],)))
    assert ordered.orders == [(f"http://{host}:9845/activator/wake", "a-token")]


@pytest.mark.parametrize("pod", [None, at("10.1.2.3", owner="somebody-else-s").get("Pod", PODS[0])], ids=["no pod", "anybody's"])
def test_no_order_and_no_token_go_to_a_pod_that_our_stateful_set_did_not_make(pod):
    ordered = Ordered()
    SqlNodes("demo", ClusterReader(Kubernetes(pod), None, None), ordered).wake(WakeNodes("db", (PODS[0],)))
    assert ordered.orders == []
