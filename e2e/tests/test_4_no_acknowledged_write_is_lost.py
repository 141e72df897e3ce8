"""While pods are deleted one after the other, a writer goes on, and every row that was acknowledged is there at the end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from conftest import Stack, say

from herdkeeper_e2e.conditions import pod_problem
from herdkeeper_e2e.history import Gap, gap_table
from herdkeeper_e2e.kubectl import Kubectl
from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_e2e.writer_process import WriterProcess

ROWS_AFTER_A_FAULT = 50


def a_bookie(kubectl: Kubectl) -> str:
    return "bk-bookie-1-0"


def zookeeper_leader(kubectl: Kubectl) -> str:
    cluster = kubectl.existing("zookeepercluster", "zk")
    return str(cluster["status"]["leader"])


def sql_leader(kubectl: Kubectl) -> str:
    tablespace = kubectl.existing("tablespace", "flights")
    return str(tablespace["status"]["leader"])


FAULTS: tuple[tuple[str, Callable[[Kubectl], str]], ...] = (
    ("a bookie's pod deleted", a_bookie),
    ("ZooKeeper leader's pod deleted", zookeeper_leader),
    ("SQL leader's pod deleted", sql_leader),
)


def test_deleting_a_bookie_the_zookeeper_leader_and_the_sql_leader_loses_nothing_acknowledged(stack: Stack) -> None:
    kubectl = stack.kubectl
    writer = WriterProcess(stack.tools, "ledger_of_writes")
    writer.acknowledges(ROWS_AFTER_A_FAULT)
    beside = writer.read_meanwhile()
    beside.acknowledges(1)
    for fault, choose in FAULTS:
        pod = choose(kubectl)
        before = kubectl.existing("pod", pod)
        writer.order(f"mark {fault}")
        kubectl.run("delete", "pod", pod, "--wait=false")
        wait_for(f"another {pod}", partial(replaced, kubectl, pod, before["metadata"]["uid"]), Limit(300))
        writer.acknowledges(ROWS_AFTER_A_FAULT)
        meanwhile = writer.read("--while-writing")
        assert meanwhile["violation"] is None, f"after {fault}"
        beside.acknowledges(1)
        stack.wait_until_ready()
    assert beside.violation() is None
    say(f"{beside.acknowledged} reads of all rows beside the writer")
    writer.stop()

    found = writer.read()
    say("\n" + gap_table([Gap(**gap) for gap in found["gaps"]]))
    say(f"{found['verdict']['acknowledged']} rows acknowledged, {found['verdict']['unknown']} answers lost")
    assert found["violation"] is None
    assert found["verdict"]["acknowledged"] >= ROWS_AFTER_A_FAULT * (len(FAULTS) + 1)
    assert len(found["gaps"]) == len(FAULTS)


def replaced(kubectl: Kubectl, name: str, uid: str) -> bool | Pending:
    pod = kubectl.get("pod", name)
    if pod is None or pod["metadata"]["uid"] == uid:
        return Pending(f"{name} is not replaced yet")
    problem = pod_problem(pod)
    return Pending(problem) if problem else True
