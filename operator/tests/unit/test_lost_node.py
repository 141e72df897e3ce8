"""Pods on a node that is down: what is said of them, and that nothing is done to them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import create_autospec

import pytest
from situations import live, objects, pods
from test_plan_bookkeeper import CLUSTER, HEALTHY, IDENTITIES, PODS, STORE, TOKENS, claims, settled
from test_plan_rolling import bookie

from herdkeeper.bookkeeper.plan.gate import why_bookies_unhealthy
from herdkeeper.bookkeeper.state.bookies import Marks
from herdkeeper.bookkeeper.state.fleet import BookieFleet
from herdkeeper.bookkeeper.status import summarize_bookkeeper
from herdkeeper.clients.kubernetes import KubernetesReader, WatchedSource
from herdkeeper.clients.nodes import nodes_of
from herdkeeper.planning.actions import Apply, Delete, Wait
from herdkeeper.planning.rolling import Gate, restart, roll
from herdkeeper.shared.lost_node import LostNode, lost_nodes, trouble_of, unreachable
from herdkeeper.shared.node import Node, NodeDown
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

SINCE = "2026-11-21T12:00:00Z"
SILENT = NodeDown("does not report", SINCE, out_of_service=False)
DOWN = {"worker-3": Node("worker-3", {}, SILENT)}
UP = {"worker-3": Node("worker-3", {})}
WITHOUT_FIRST = replace(HEALTHY, writable=HEALTHY.writable - {IDENTITIES[0].bookie_id})
TAINT = "`kubectl taint nodes worker-3 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute`"


def standing(name: str, node: str = "worker-3", ready: bool = False, deleted: bool = False):
    """A pod on a node."""
    (item,) = pods([name], **({} if ready else {"conditions": []})).values()
    gone = {"deletionTimestamp": SINCE} if deleted else {}
    return {("Pod", name): {**item, "metadata": {**item["metadata"], **gone}, "spec": {"nodeName": node}}}


@pytest.mark.parametrize(
    ("situation", "pod", "nodes", "lost"),
    [
        ("it reports", standing("a"), UP, ()),
        ("it is silent", standing("a"), DOWN, (LostNode("worker-3", SILENT, ("a",), ()),)),
        ("Kubernetes gave the pod up", standing("a", deleted=True), DOWN, (LostNode("worker-3", SILENT, ("a",), ("a",)),)),
        ("Kubernetes does not doubt the pod yet", standing("a", ready=True), DOWN, (LostNode("worker-3", SILENT, ("a",), ()),)),
        ("the pod serves", standing("a", ready=True), UP, ()),
        ("it is gone", standing("a"), {"worker-3": None}, ()),
        ("the pod stands nowhere yet", pods(["a"], conditions=[]), DOWN, ()),
        ("there is no pod", {}, DOWN, ()),
        (
            "two pods are there",
            {**standing("a", deleted=True), **standing("b")},
            DOWN,
            (LostNode("worker-3", SILENT, ("a", "b"), ("a",)),),
        ),
    ],
)
def test_a_node_is_lost_when_it_is_down_under_a_pod_that_does_not_serve(situation, pod, nodes, lost):
    seen = objects(pod)
    assert lost_nodes(seen, ("a", "b"), nodes) == lost, situation
    assert set(unreachable(seen, ("a", "b"), nodes)) == {name for each in lost for name in each.pods}
    assert (f"does not report since {SINCE}" in trouble_of(seen.get("Pod", "a"), nodes)) is bool(lost)


@pytest.mark.parametrize(("ready", "left_alone"), [(False, {"a": "a may still run: silence"}), (True, {})])
def test_a_pod_that_does_not_serve_is_left_alone_while_its_node_can_t_be_read(ready, left_alone):
    unread = {"worker-3": Unknown("silence")}
    assert unreachable(objects(standing("a", ready=ready)), ("a",), unread) == left_alone
    assert lost_nodes(objects(standing("a", ready=ready)), ("a",), unread) == ()


@pytest.mark.parametrize(("ready", "down"), [(False, True), (True, False)])
def test_a_node_that_was_read_as_down_a_while_ago_is_not_down_under_a_pod_that_is_ready_again(ready, down):
    conditions = [{"type": "Ready", "status": "False", "reason": "KubeletNotReady", "lastTransitionTime": SINCE}]
    node = {"metadata": {"name": "worker-3"}, "status": {"conditions": conditions}}
    source = create_autospec(WatchedSource, instance=True)
    source.get.return_value = source.get_recent.return_value = node
    seen = objects(standing("a", ready=ready))
    found = nodes_of(seen.of_kind("Pod"), SimpleNamespace(kubernetes=KubernetesReader(source)))
    assert bool(lost_nodes(seen, ("a",), found)) is down


@pytest.mark.parametrize(("nodes", "closed"), [(UP, False), (DOWN, True)])
def test_a_pod_whose_ready_is_older_than_its_nodes_silence_holds_up_the_roll_of_others(nodes, closed):
    seen = BookieFleet(CLUSTER, objects(settled(), pods(PODS), standing(PODS[3], ready=True)), STORE, HEALTHY, TOKENS, machines=nodes)
    for item in seen.objects.of_kind("StatefulSet"):
        item["status"] = {"observedGeneration": 1, "currentRevision": "a", "updateRevision": "a"}
    trouble = why_bookies_unhealthy(seen, (0, 1, 2, 3), 0)
    assert (trouble is not None) is closed
    assert not closed or f"does not report since {SINCE}" in str(trouble)


@pytest.mark.parametrize(
    ("situation", "pod", "nodes", "expected"),
    [
        ("its node is silent", standing("bk-bookie-0-0"), DOWN, Reason.WAITING_FOR_OTHERS),
        ("Kubernetes gave it up", standing("bk-bookie-0-0", deleted=True), DOWN, Reason.WAITING_FOR_OTHERS),
        ("its node reports: it is mended", standing("bk-bookie-0-0"), UP, Reason.ROLLING),
    ],
)
def test_a_bookie_is_not_changed_while_its_node_is_down(situation, pod, nodes, expected):
    seen = objects(live([bookie("old")]), pod)
    step = roll(bookie("new"), seen, ["bk-bookie-0-0"], Gate(None, unreachable(seen, ["bk-bookie-0-0"], nodes)))
    assert isinstance(step, Apply | Wait)
    assert step.reason is expected, situation


@pytest.mark.parametrize(
    ("situation", "nodes", "gate", "deleted"),
    [
        ("their nodes report: what does not serve is mended, one after the other", UP, None, ["a"]),
        ("the node of both is down: they may still be a quorum", DOWN, None, []),
        ("something else is disrupted as well", DOWN, "c is not Ready", []),
    ],
)
def test_pods_on_a_node_that_is_down_are_not_deleted_with_a_new_template(situation, nodes, gate, deleted):
    manifest = {"metadata": {"name": "set"}, "spec": {"template": {"spec": {}}}}
    status = {"observedGeneration": 1, "updateRevision": "new"}
    seen = objects({("StatefulSet", "set"): {**manifest, "status": status}}, standing("a"), standing("b"), pods(["c"]))
    for pod, revision in (("a", "old"), ("b", "old"), ("c", "new")):
        seen.items["Pod", pod]["metadata"]["labels"] = {"controller-revision-hash": revision}
    step = restart(manifest, seen, ["a", "b", "c"], Gate(gate, unreachable(seen, ["a", "b", "c"], nodes)))
    found = [action.name for action in step if isinstance(action, Delete)] if isinstance(step, tuple) else []
    assert found == deleted, situation
    assert isinstance(step, Wait) is not bool(deleted)


@pytest.mark.parametrize(
    ("situation", "pod", "down", "metadata", "reason", "told", "not_told"),
    [
        (
            "not given up yet",
            standing(PODS[0]),
            SILENT,
            WITHOUT_FIRST,
            Reason.NODE_SILENT,
            ["five minutes", "after 300 s", "Rolls and drains wait"],
            "kubectl",
        ),
        (
            "given up",
            standing(PODS[0], deleted=True),
            SILENT,
            replace(WITHOUT_FIRST, under_replicated=True, marks=Marks(46, None)),
            Reason.NODE_LOST,
            [f"{PODS[0]}: the node worker-3 does not report since {SINCE}", TAINT, "46 ledgers are marked"],
            "five minutes",
        ),
        (
            "somebody said that it is off",
            standing(PODS[0], deleted=True),
            replace(SILENT, out_of_service=True),
            WITHOUT_FIRST,
            Reason.NODE_LOST,
            ["marked as out of service"],
            "kubectl",
        ),
        (
            "nothing copies",
            standing(PODS[0]),
            SILENT,
            replace(WITHOUT_FIRST, replication_enabled=False),
            Reason.NODE_SILENT,
            ["Its ledgers are not copied"],
            "kubectl",
        ),
    ],
)
def test_a_pod_that_hangs_is_told_with_since_when_and_what_a_person_may_do(situation, pod, down, metadata, reason, told, not_told):
    nodes = {"worker-3": Node("worker-3", {}, down)}
    seen = BookieFleet(CLUSTER, objects(settled(), *claims(0, 1, 2, 3), pods(PODS), pod), STORE, metadata, TOKENS, machines=nodes)
    summary = summarize_bookkeeper(seen)
    condition = summary.conditions["NodesReachable"]
    assert (condition.status, condition.reason) == ("False", reason), situation
    assert [part for part in told if part not in condition.message] == []
    assert not_told not in condition.message
    assert "its node worker-3" in summary.health.message


def test_while_no_pod_hangs_there_is_no_such_condition():
    seen = BookieFleet(CLUSTER, objects(settled(), *claims(0, 1, 2, 3), pods(PODS)), STORE, HEALTHY, TOKENS, machines=DOWN)
    assert "NodesReachable" not in summarize_bookkeeper(seen).conditions
