"""Carries the steps of a nemesis plan out on the test cluster, and waits after each until all is healthy and all clients write again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from herdkeeper_e2e.checker.nemesis_plan import Action, Step
from herdkeeper_e2e.checker.operation import Fault, Outcome
from herdkeeper_e2e.checker.partition import heal, parted
from herdkeeper_e2e.checker.recorder import Recorder
from herdkeeper_e2e.conditions import all_ready, pod_problem
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.sql_stack import RESOURCES, TABLESPACE, SqlStack, say
from herdkeeper_e2e.steered_process import SteeredProcess
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

DATABASE = "db"
SQL_PODS = "app.kubernetes.io/name=herddb"
ZOOKEEPER_PODS = "app.kubernetes.io/name=zookeeper"
BOOKIE_PODS = "app.kubernetes.io/name=bookie"
NODES = 2
LEDGER_SIZES = ("32Ki", "48Ki")
"""At the pace of the clients the leader opens another ledger every few seconds. Each roll of the SQL nodes takes the other one."""
WRITES = 20
"""Acknowledged to each program's clients before the next fault."""
HEALTHY_SECONDS = 5.0
"""On end: a status may still tell of the time before the fault."""
HEALTH = Limit(900, 1)


@dataclass
class Nemesis:
    """Does the steps one after the other; what it did is in the history, beside the clients' operations."""

    stack: SqlStack
    clients: Sequence[SteeredProcess]
    recorder: Recorder
    number: int = 0
    nodes: int = NODES
    ledger_size: str = ""

    def begin(self) -> None:
        """Small ledgers, and nothing left of an earlier run."""
        heal(self.stack)
        self._roll()
        self.wait_until_healthy()

    def perform(self, step: Step) -> None:
        """One step, and all is healthy again. WaitError when that takes too long."""
        time.sleep(step.pause_seconds)  # the plan's own time between two faults, drawn from the seed
        leader = self.stack.leader()
        say(f"nemesis {self.number}: {step.action.value} ({leader} leads, held for {step.hold_seconds:g} s)")
        operation = self.recorder.begin("nemesis", self.number, Fault(step.action.value))
        self.number += 1
        try:
            self._act(step, leader)
        finally:
            self.recorder.end(replace(operation, outcome=Outcome.OK, leader=leader))
        self.wait_until_healthy()

    def wait_until_healthy(self) -> None:
        """All clients' writes are acknowledged, every SQL pod serves, and the four resources have been Ready for some seconds."""
        for clients in self.clients:
            clients.acknowledges(WRITES, HEALTH)
        since = time.monotonic()

        def healthy() -> bool | Pending:
            nonlocal since
            problem = self._problem()
            if problem is not None:
                since = time.monotonic()
                return problem
            return True if time.monotonic() - since >= HEALTHY_SECONDS else Pending("all is Ready")

        wait_for("a healthy stack", healthy, HEALTH, say)

    def finish(self) -> None:
        """Takes back whatever may still be there of a fault; for the end of a run, a broken one too."""
        heal(self.stack)
        for pod in self._sql_pods():
            self.stack.resume(str(pod["metadata"]["name"]))

    def _problem(self) -> Pending | None:
        pods = self._sql_pods()
        if len(pods) != self.nodes:
            return Pending(f"{len(pods)} of {self.nodes} SQL nodes are there")
        for pod in [*pods, *self.stack.operator_pods()]:
            problem = pod_problem(pod)
            if problem is not None or "deletionTimestamp" in pod["metadata"]:
                return Pending(f"{pod['metadata']['name']}: {problem or 'is being deleted'}")
        ready = all_ready(self.stack.kubectl.list(RESOURCES), 4)
        return ready if isinstance(ready, Pending) else None

    def _act(self, step: Step, leader: str) -> None:
        match step.action:
            case Action.KILL_LEADER:
                self._kill(leader)
            case Action.KILL_LEADER_AND_OPERATOR:
                self.stack.kill_operator()
                self._kill(leader)
            case Action.PAUSE_LEADER:
                self._pause(leader, step.hold_seconds)
            case Action.DELETE_LEADER:
                self.stack.delete(leader)
            case Action.SWITCH_OVER:
                self.stack.switch_over(self.stack.other())
            case Action.KILL_OPERATOR:
                self.stack.kill_operator()
            case Action.PARTITION_FROM_ZOOKEEPER | Action.PARTITION_FROM_BOOKIES | Action.PARTITION_FROM_OPERATOR:
                with parted(self.stack, leader, self._others(step.action)):
                    time.sleep(step.hold_seconds)  # the fault itself lasts so long
            case Action.ROLL:
                self._roll()
            case Action.SCALE:
                self._scale()
            case _:
                assert_never(step.action)

    def _kill(self, leader: str) -> None:
        """SIGKILL of the JVM. Its pod is deleted once all write again, so that the kubelet's back-off does not add up."""
        self.stack.signal("KILL", leader)
        for clients in self.clients:
            clients.acknowledges(WRITES, HEALTH)
        self.stack.delete(leader)

    def _pause(self, leader: str, seconds: float) -> None:
        try:
            self.stack.signal("STOP", leader)
            time.sleep(seconds)  # the fault itself lasts so long
        finally:
            self.stack.resume(leader)

    def _others(self, action: Action) -> Sequence[Object]:
        match action:
            case Action.PARTITION_FROM_ZOOKEEPER:
                return self.stack.kubectl.list("pods", ZOOKEEPER_PODS)
            case Action.PARTITION_FROM_BOOKIES:
                return self.stack.kubectl.list("pods", BOOKIE_PODS)
            case _:
                return self.stack.operator_pods()

    def _roll(self) -> None:
        before = {str(pod["metadata"]["uid"]) for pod in self._sql_pods()}
        self.ledger_size = next(size for size in LEDGER_SIZES if size != self.ledger_size)
        self.stack.kubectl.want("herddbcluster", DATABASE, ledgers={"maxSize": self.ledger_size})

        def rolled() -> bool | Pending:
            left = before & {str(pod["metadata"]["uid"]) for pod in self._sql_pods()}
            return Pending(f"{len(left)} of {len(before)} SQL nodes are still to be restarted") if left else True

        wait_for("the roll of the SQL nodes", rolled, HEALTH, say)

    def _scale(self) -> None:
        """The node that comes gets a copy and leads, so that the leadership and a copy must leave when it goes."""
        self.nodes = NODES + 1
        self.stack.kubectl.want("herddbcluster", DATABASE, replicas=self.nodes)
        self.stack.kubectl.want("tablespace", TABLESPACE, replicas=self.nodes)
        self.wait_until_healthy()
        self.stack.switch_over(f"{DATABASE}-herddb-{NODES}")
        self.nodes = NODES
        self.stack.kubectl.want("tablespace", TABLESPACE, replicas=self.nodes)
        self.stack.kubectl.want("herddbcluster", DATABASE, replicas=self.nodes)

    def _sql_pods(self) -> list[Object]:
        return self.stack.kubectl.list("pods", SQL_PODS)
