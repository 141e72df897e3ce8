"""While pods are deleted one after the other, a writer goes on, and every row that was acknowledged is there at the end."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable
from typing import Any

from conftest import Stack, say

from herdkeeper_e2e.conditions import pod_problem
from herdkeeper_e2e.history import Gap, gap_table
from herdkeeper_e2e.kubectl import Kubectl
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

HISTORY = "/tmp/history"
ROWS_AFTER_A_FAULT = 50


class WriterProcess:
    """The writer in the tools pod, steered by its standard input."""

    def __init__(self, stack: Stack) -> None:
        command = stack.tools.program("writer", "--table", "ledger_of_writes", "--history", HISTORY)
        self._process: subprocess.Popen[str] = stack.kubectl.start("exec", "-i", stack.tools.name, "--", *command)
        self.acknowledged = 0
        self._last = ""
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        for line in self._process.stdout or ():
            self._last = line
            if line.startswith("{"):
                self.acknowledged = int(json.loads(line)["acknowledged"])

    def order(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def acknowledges(self, more: int) -> None:
        """Waits until that many further rows were acknowledged."""
        wanted = self.acknowledged + more

        def enough() -> bool | Pending:
            assert self._process.poll() is None, f"the writer ended: {self._last}"
            return True if self.acknowledged >= wanted else Pending(f"{self.acknowledged} of {wanted} rows")

        wait_for("acknowledged writes", enough, Limit(180, 0.2))

    def stop(self) -> None:
        self.order("stop")
        assert self._process.wait(timeout=60) == 0, self._last


def a_bookie(kubectl: Kubectl) -> str:
    return "bk-bookie-1-0"


def zookeeper_leader(kubectl: Kubectl) -> str:
    cluster = kubectl.get("zookeepercluster", "zk")
    assert cluster is not None
    return str(cluster["status"]["leader"])


def sql_leader(kubectl: Kubectl) -> str:
    tablespace = kubectl.get("tablespace", "flights")
    assert tablespace is not None
    return str(tablespace["status"]["leader"])


FAULTS: tuple[tuple[str, Callable[[Kubectl], str]], ...] = (
    ("a bookie's pod deleted", a_bookie),
    ("ZooKeeper leader's pod deleted", zookeeper_leader),
    ("SQL leader's pod deleted", sql_leader),
)


def test_deleting_a_bookie_the_zookeeper_leader_and_the_sql_leader_loses_nothing_acknowledged(stack: Stack) -> None:
    kubectl = stack.kubectl
    writer = WriterProcess(stack)
    writer.acknowledges(ROWS_AFTER_A_FAULT)
    for fault, choose in FAULTS:
        pod = choose(kubectl)
        before = kubectl.get("pod", pod)
        assert before is not None
        writer.order(f"mark {fault}")
        kubectl.run("delete", "pod", pod, "--wait=false")
        wait_for(f"another {pod}", lambda pod=pod, uid=before["metadata"]["uid"]: replaced(kubectl, pod, uid), Limit(300))
        writer.acknowledges(ROWS_AFTER_A_FAULT)
        meanwhile = read(stack, "--while-writing")
        assert meanwhile["violation"] is None, f"after {fault}"
        stack.wait_until_ready()
    writer.stop()

    found = read(stack)
    say("\n" + gap_table([Gap(**gap) for gap in found["gaps"]]))
    say(f"{found['verdict']['acknowledged']} rows acknowledged, {found['verdict']['unknown']} answers lost")
    assert found["violation"] is None
    assert found["verdict"]["acknowledged"] >= ROWS_AFTER_A_FAULT * (len(FAULTS) + 1)
    assert len(found["gaps"]) == len(FAULTS)


def read(stack: Stack, *arguments: str) -> dict[str, Any]:
    """What the reader finds: the verdict, its violation or None, and the gaps."""
    found: dict[str, Any] = json.loads(stack.tools.run("reader", "--table", "ledger_of_writes", "--history", HISTORY, *arguments))
    return found


def replaced(kubectl: Kubectl, name: str, uid: str) -> bool | Pending:
    pod = kubectl.get("pod", name)
    if pod is None or pod["metadata"]["uid"] == uid:
        return Pending(f"{name} is not replaced yet")
    problem = pod_problem(pod)
    return Pending(problem) if problem else True
