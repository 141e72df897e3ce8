"""While pods are deleted one after the other, a writer goes on, and every row that was acknowledged is there at the end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from conftest import Stack, say
from under_load import lost_nothing

from herdkeeper_e2e.conditions import pod_problem
from herdkeeper_e2e.kubectl import Kubectl
from herdkeeper_e2e.sql_stack import SqlStack
from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_e2e.writer_process import WriterProcess

ROWS_AFTER_A_FAULT = 50


FAULTS: tuple[tuple[str, Callable[[SqlStack], str]], ...] = (
    ("a bookie's pod deleted", lambda _: "bk-bookie-1-0"),
    ("ZooKeeper leader's pod deleted", SqlStack.leader_of_zookeeper),
    ("SQL leader's pod deleted", SqlStack.leader),
)


def test_deleting_a_bookie_the_zookeeper_leader_and_the_sql_leader_loses_nothing_acknowledged(stack: Stack) -> None:
    kubectl = stack.kubectl
    writer = WriterProcess(stack.tools, "ledger_of_writes").acknowledges(ROWS_AFTER_A_FAULT)
    beside = writer.read_meanwhile()
    beside.acknowledges(1)
    for fault, choose in FAULTS:
        pod = choose(stack.sql)
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
    found = lost_nothing(writer)
    assert found["verdict"]["acknowledged"] >= ROWS_AFTER_A_FAULT * (len(FAULTS) + 1)
    assert len(found["gaps"]) == len(FAULTS)


def replaced(kubectl: Kubectl, name: str, uid: str) -> bool | Pending:
    pod = kubectl.get("pod", name)
    if pod is None or pod["metadata"]["uid"] == uid:
        return Pending(f"{name} is not replaced yet")
    problem = pod_problem(pod)
    return Pending(problem) if problem else True
