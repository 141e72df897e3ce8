"""Executes the bursts of a nemesis plan on the test cluster. After each it waits until everything is healthy and all clients
write again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import assert_never

from herdkeeper_e2e.checker.nemesis_plan import Burst, Hit, Maneuver, Step, Target, Way
from herdkeeper_e2e.checker.operation import Fault, Outcome
from herdkeeper_e2e.checker.partition import heal, parted
from herdkeeper_e2e.checker.recorder import Recorder
from herdkeeper_e2e.cluster import CommandError
from herdkeeper_e2e.conditions import all_ready, pod_problem
from herdkeeper_e2e.kubectl import SERVERS, KubectlError, Object
from herdkeeper_e2e.sql_stack import BOOKIES, RESOURCES, TABLESPACE, SqlStack, say
from herdkeeper_e2e.steered_process import SteeredProcess
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

DATABASE = "db"
SQL_PODS = "app.kubernetes.io/name=herddb"
ZOOKEEPER_PODS = "app.kubernetes.io/name=zookeeper"
NODES = 2
LEDGER_SIZES = ("32Ki", "48Ki")
"""At the clients' pace the leader opens a new ledger every few seconds. Each roll of the SQL nodes switches to the other size."""
LOCKS = {"server.tablemanager.writelocktimeout": "1", "server.tablemanager.readlocktimeout": "1"}
"""Seconds: a client that meets a lock of its own transaction is refused, and continues."""
WRITES = 20
"""Acknowledged writes of each program's clients before the next burst."""
HEALTHY_SECONDS = 5.0
"""Without interruption: a status may still be from before the fault."""
HEALTH = Limit(900, 1)
MOST_RESTARTS = 2
"""Restarts of a container in its pod. The kubelet delays each further one longer."""


@dataclass
class Nemesis:
    """Executes the bursts one after the other, and records them in the history next to the clients' operations."""

    stack: SqlStack
    clients: Sequence[SteeredProcess]
    recorder: Recorder
    number: int = 0
    nodes: int = NODES
    ledger_size: str = ""

    def begin(self) -> None:
        """Set small ledgers and short lock timeouts, and clean up after an earlier run."""
        heal(self.stack)
        self.stack.kubectl.want("herddbcluster", DATABASE, config=LOCKS)
        self._roll()
        self.wait_until_healthy()

    def perform(self, burst: Burst) -> None:
        """Execute the steps of a burst, each at its time, until everything is healthy again. Raises WaitError if that takes too long."""
        with ThreadPoolExecutor(len(burst)) as pool:
            running = []
            for step in burst:
                time.sleep(step.pause_seconds)  # the plan's own pause between two faults, from the seed
                running.append(pool.submit(self._step, self.number, step))
                self.number += 1
            for each in running:
                each.result()
        self.wait_until_healthy()
        self._forget_restarts()

    def wait_until_healthy(self) -> None:
        """Wait until all clients' writes are acknowledged, every server's pod serves, and the four resources have been Ready for some
        seconds.
        """
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
        """Undo whatever may remain of a fault, at the end of any run."""
        heal(self.stack)
        for pod in self._servers():
            with suppress(LookupError, CommandError, KubectlError):  # a pod without a machine, or a deleted one, is not frozen
                self.stack.resume(str(pod["metadata"]["name"]))

    def _problem(self) -> Pending | None:
        pods = self._sql_pods()
        if len(pods) != self.nodes:
            return Pending(f"{len(pods)} of {self.nodes} SQL nodes are there")
        for pod in [*self._servers(), *self.stack.operator_pods()]:
            problem = pod_problem(pod)
            if problem is not None or "deletionTimestamp" in pod["metadata"]:
                return Pending(f"{pod['metadata']['name']}: {problem or 'is being deleted'}")
        ready = all_ready(self.stack.kubectl.list(RESOURCES), 4)
        return ready if isinstance(ready, Pending) else None

    def _step(self, number: int, step: Step) -> None:
        """One fault. It fails if it hit nothing because its victim was just away for another one."""
        operation = self.recorder.begin("nemesis", number, Fault(str(step.action)))
        try:
            self._act(number, step)
            ended = replace(operation, outcome=Outcome.OK)
        except (LookupError, CommandError, KubectlError) as error:
            say(f"nemesis {number}: missed: {error!r}")
            ended = replace(operation, outcome=Outcome.FAIL, error=f"missed: {error!r}")
        self.recorder.end(ended)

    def _act(self, number: int, step: Step) -> None:
        leader = self.stack.leader()
        victim = self._victim(step.action.target, step.victim, leader) if isinstance(step.action, Hit) else leader
        say(f"nemesis {number}: {step.action} ({victim}; {leader} leads; held for {step.hold_seconds:g} s)")
        match step.action:
            case Hit(_, way):
                self._hit(victim, way, step.hold_seconds)
            case Maneuver.SWITCH_OVER:
                self.stack.ask_to_lead(self._victim(Target.FOLLOWER, step.victim, leader))
            case Maneuver.KILL_OPERATOR:
                self.stack.kill_operator()
            case Maneuver.PARTITION_FROM_ZOOKEEPER | Maneuver.PARTITION_FROM_BOOKIES | Maneuver.PARTITION_FROM_OPERATOR:
                with parted(self.stack, number, leader, self._others(step.action)):
                    time.sleep(step.hold_seconds)  # the fault itself lasts so long
            case Maneuver.ROLL:
                self._roll()
            case Maneuver.SCALE:
                self._scale()
            case _:
                assert_never(step.action)

    def _victim(self, target: Target, number: int, leader: str) -> str:
        """Returns the pod to hit. Raises IndexError if there is none."""
        match target:
            case Target.LEADER:
                return leader
            case Target.FOLLOWER:
                found = [node for node in self.stack.replicas() if node != leader]
            case Target.BOOKIE | Target.ZOOKEEPER:
                pods = self.stack.kubectl.list("pods", BOOKIES if target is Target.BOOKIE else ZOOKEEPER_PODS)
                found = [str(pod["metadata"]["name"]) for pod in pods]
            case _:
                assert_never(target)
        if not found:
            raise IndexError(f"there is no {target.value}")
        return found[number % len(found)]

    def _hit(self, pod: str, way: Way, seconds: float) -> None:
        match way:
            case Way.KILLED:
                self.stack.signal("KILL", pod)
            case Way.PAUSED:
                with self.stack.stopped(pod):
                    time.sleep(seconds)  # the fault itself lasts so long
            case Way.DELETED:
                self.stack.kubectl.run("delete", "pod", pod, "--wait=false")
            case Way.REMOVED:
                self.stack.kubectl.run("delete", "pod", pod, "--grace-period=0", "--force", "--wait=false")
            case _:
                assert_never(way)

    def _forget_restarts(self) -> None:
        """Replace pods whose container was killed repeatedly, so that the kubelet's back-off does not accumulate."""
        for pod in self._servers():
            if max((each["restartCount"] for each in pod["status"].get("containerStatuses", [])), default=0) > MOST_RESTARTS:
                self.stack.delete(str(pod["metadata"]["name"]))
                self.wait_until_healthy()

    def _others(self, action: Maneuver) -> Sequence[Object]:
        match action:
            case Maneuver.PARTITION_FROM_ZOOKEEPER:
                return self.stack.kubectl.list("pods", ZOOKEEPER_PODS)
            case Maneuver.PARTITION_FROM_BOOKIES:
                return self.stack.kubectl.list("pods", BOOKIES)
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
        """The added node gets a replica and leads, so that both must move when it is removed."""
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

    def _servers(self) -> list[Object]:
        return self.stack.kubectl.list("pods", SERVERS)
