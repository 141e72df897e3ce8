"""A Kubernetes node dies under a bookie and a SQL node: it is told, and nothing is forced."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kubernetes.dynamic import DynamicClient
from serving_bookies import Bookies
from stage import Stage, nothing_written

KIND = "BookKeeperCluster"
SINCE = "2026-11-21T12:00:00Z"
TAINT = "node.kubernetes.io/out-of-service"


@pytest.fixture
def node(dynamic: DynamicClient, namespace: str) -> Iterator[str]:
    """The name of a node, which the test makes; nodes have no namespace that would take them along."""
    name = f"{namespace}-worker"
    yield name
    stage = Stage(dynamic, namespace)
    if stage.live("Node", name) is not None:
        stage.delete("Node", name)


@pytest.fixture
def bookies(dynamic: DynamicClient, charted: DynamicClient, namespace: str, node: str) -> Bookies:
    """Four bookies, of which the last one stands on the node."""
    stage = Stage(dynamic, namespace, operator=charted)
    found = Bookies(stage, 4)
    stage.add_node(node, {})
    stage.delete("Pod", found.named.pod(3))
    stage.serve(found.named.stateful_set(3), node=node)
    found.settle()
    assert stage.condition(KIND, "bk") == ("True", "Ready")
    return found


def node_is(stage: Stage, node: str, ready: str) -> None:
    """What Kubernetes writes of a node: `Unknown` when its kubelet is silent."""
    condition = {"type": "Ready", "status": ready, "reason": "NodeStatusUnknown", "lastTransitionTime": SINCE}
    stage.set_status("Node", node, {"conditions": [condition]})


def told(stage: Stage) -> tuple[str, str]:
    """Reason and message of the condition; empty when it does not exist."""
    conditions = stage.found(KIND, "bk")["status"]["conditions"]
    return next(((each["reason"], each["message"]) for each in conditions if each["type"] == "NodesReachable"), ("", ""))


def test_a_pod_that_hangs_on_a_dead_node_is_told_and_left_to_kubernetes_while_rolls_and_drains_wait(bookies: Bookies, node: str) -> None:
    stage, pod = bookies.stage, bookies.named.pod(3)
    node_is(stage, node, "Unknown")
    stage.stop_serving(pod)
    stage.ensemble.delete_tree(f"{bookies.named.ledgers_root}/available/{bookies.id(3)}")
    bookies.settle()
    assert told(stage)[0] == "NodeSilent"
    assert f"the node {node} does not report since {SINCE}" in told(stage)[1]

    stage.delete("Pod", pod)  # what Kubernetes does after five minutes; the node does not confirm it
    assert stage.found("Pod", pod)["metadata"]["deletionTimestamp"]
    bookies.settle()
    assert told(stage)[0] == "NodeLost"
    assert f"`kubectl taint nodes {node} {TAINT}=nodeshutdown:NoExecute`" in told(stage)[1]
    with nothing_written(stage):
        stage.reconcile(KIND, "bk")

    before = [stage.found("Pod", bookies.named.pod(number))["metadata"]["uid"] for number in range(4)]
    bookies.ledgers.put(7, (0, bookies.ids(1, 2, 3)), last_entry_id=9)
    bookies.want(config={"rwRereplicateBackoffMs": "90000"}, bookies=3, drain=[0])
    pods = [stage.found("Pod", bookies.named.pod(number))["metadata"] for number in range(4)]
    assert [each["uid"] for each in pods] == before, "a template that has changed reaches no pod meanwhile"
    assert ["deletionTimestamp" in each for each in pods] == [False, False, False, True]
    assert "1 ledger names bookies that are away or lost volumes" in bookies.drain_of(0)["message"]
    assert bookies.registered(0) == "rw"
    assert stage.live("Pod", pod) is not None
    assert bookies.claims() == {0, 1, 2, 3}

    stage.patch("Node", node, {"spec": {"taints": [{"key": TAINT, "value": "nodeshutdown", "effect": "NoExecute"}]}})
    bookies.settle()
    assert "marked as out of service" in told(stage)[1]
    stage.of("Pod").delete(name=pod, namespace=stage.namespace, body={"gracePeriodSeconds": 0})  # what Kubernetes does then
    bookies.come_back(3, "rw")
    bookies.settle()
    assert told(stage) == ("", "")
