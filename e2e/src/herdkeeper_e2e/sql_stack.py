"""The quickstart on the test cluster, for tests that disturb its SQL leader."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from herdkeeper.shared import names
from herdkeeper_e2e import cluster
from herdkeeper_e2e.conditions import all_ready
from herdkeeper_e2e.kubectl import Kubectl, Object
from herdkeeper_e2e.pod_process import processes_of
from herdkeeper_e2e.waiting import Limit, Pending, WaitError, wait_for

RESOURCES = "zookeeperclusters,bookkeeperclusters,herddbclusters,tablespaces"
TABLESPACE = "flights"
BOOKIES = "app.kubernetes.io/name=bookie"
OPERATOR = "app.kubernetes.io/name=herdkeeper-operator"


def say(message: str) -> None:
    """A line of progress."""
    print(message, file=sys.stderr, flush=True)


def youngest_process(pods: Sequence[Object], now: datetime) -> float:
    """Returns the minimum age in seconds of the containers of some pods; 0 if one does not run."""
    states = [status["state"].get("running") for pod in pods for status in pod["status"].get("containerStatuses", [{"state": {}}])]
    return min((now - datetime.fromisoformat(state["startedAt"])).total_seconds() if state else 0 for state in states)


def _resume(processes: str) -> str:
    """Shell; `processes` is shell that prints them."""
    return f"for process in $({processes}); do kill -CONT $process; done"


@dataclass(frozen=True)
class SqlStack:
    kubectl: Kubectl
    tablespace: str = TABLESPACE

    def leader(self) -> str:
        return str(self.get("tablespace", self.tablespace)["status"]["leader"])

    def leader_of_zookeeper(self) -> str:
        """Returns the pod of the ensemble's leader."""
        return str(self.get("zookeepercluster", "zk")["status"]["leader"])

    def replicas(self) -> list[str]:
        return [str(each["node"]) for each in self.get("tablespace", self.tablespace)["status"]["replicas"]]

    def other(self) -> str:
        """Returns a replica that does not lead."""
        leader = self.leader()
        return next(node for node in self.replicas() if node != leader)

    def wait_until_ready(self) -> None:
        """Wait until all four resources are Ready."""
        wait_for("the stack", lambda: all_ready(self.kubectl.list(RESOURCES), 4), Limit(900, 1), say)

    def get(self, kind: str, name: str) -> Object:
        """Returns an existing object. Raises KeyError."""
        return self.kubectl.existing(kind, name)

    def node_of(self, pod: str) -> str:
        return str(self.get("pod", pod)["spec"]["nodeName"])

    def host_of(self, node: str) -> str:
        """Returns the host name of a SQL node."""
        return names.HerdDBNames(names.ObjectKey(self.kubectl.namespace, "db")).host_of(node)

    def operator_pods(self) -> list[Object]:
        return self.kubectl.in_namespace(cluster.OPERATOR_NAMESPACE).list("pods", OPERATOR)

    def machine_of_operator(self) -> str:
        return str(self.operator_pods()[0]["spec"]["nodeName"])

    def machines_of_bookies(self) -> list[str]:
        """Where the bookies run, one entry for each."""
        return [str(pod["spec"]["nodeName"]) for pod in self.kubectl.list("pods", BOOKIES)]

    def wait_until_settled(self, seconds: float) -> None:
        """Wait until all four resources are Ready, and no SQL node's process is younger than that."""
        self.wait_until_ready()

        def settled() -> bool | Pending:
            age = youngest_process([self.get("pod", node) for node in self.replicas()], datetime.now(UTC))
            return True if age >= seconds else Pending(f"a SQL node's process is {age:.0f} s old")

        wait_for(f"SQL nodes that are {seconds:g} s old", settled, Limit(seconds + 300, 5))

    def replaced(self, pod: str, uid: str) -> bool | Pending:
        """Returns whether another pod of that name exists."""
        found = self.kubectl.get("pod", pod)
        return True if found is not None and found["metadata"]["uid"] != uid else Pending(f"{pod} is not replaced yet")

    def switch_over(self, target: str) -> None:
        """Make another node the leader, as a user requests it. Raises WaitError if the operator refuses."""

        def answer(tablespace: Object) -> str:
            return str(tablespace["metadata"].get("annotations", {}).get(names.SWITCHOVER_ANSWER_ANNOTATION, ""))

        before = answer(self.get("tablespace", self.tablespace))
        self.ask_to_lead(target)

        def leads() -> bool | Pending:
            found = self.get("tablespace", self.tablespace)
            if (now := answer(found)) != before and now.startswith("refused"):
                raise WaitError(f"{target} does not lead: {now}")
            return found["status"]["leader"] == target or Pending(f"{found['status']['leader']} leads")

        wait_for(target, leads, Limit(120, 0.5))

    def ask_to_lead(self, target: str) -> None:
        """Request a switchover, as a user does, without waiting."""
        self.kubectl.run("annotate", "tablespace", self.tablespace, f"{names.SWITCHOVER_ANNOTATION}={target}", "--overwrite")

    def signal(self, name: str, pod: str) -> None:
        """Send a signal to the JVM of a pod. Raises CommandError if there is none."""
        self.on_machine(self.node_of(pod), f"kill -{name} $({self._process_of(pod)})")

    def resume(self, pod: str) -> None:
        """Resume the JVM of a pod, if it is stopped and still exists."""
        self.on_machine(self.node_of(pod), _resume(self._process_of(pod)))

    @contextmanager
    def stopped(self, pod: str) -> Iterator[None]:
        """The JVM of a pod is frozen within the block, or until it is killed. Raises CommandError if there is none."""
        machine, process = self.node_of(pod), self._process_of(pod)
        try:
            self.on_machine(machine, f"kill -STOP $({process})")
            yield
        finally:
            self.on_machine(machine, _resume(process))

    def _process_of(self, pod: str) -> str:
        """Returns shell that prints the JVM's process on its machine, where a pod of another namespace may have the same name."""
        return processes_of(self.get("pod", pod), "[j]ava ")

    def delete(self, pod: str, *arguments: str) -> None:
        """Delete a pod and wait for its successor."""
        uid = self.get("pod", pod)["metadata"]["uid"]
        # kubectl waits with one watch: polling each half second would take CPU from the next leader.
        self.kubectl.run("delete", "pod", pod, *arguments, timeout_seconds=320)
        wait_for(f"another {pod}", lambda: self.replaced(pod, uid), Limit(300))

    def kill_operator(self) -> None:
        """Delete its pod with a grace period of 0; another one leads once the Lease has expired."""
        operator = self.kubectl.in_namespace(cluster.OPERATOR_NAMESPACE)
        operator.run("delete", "pods", "-l", OPERATOR, "--grace-period=0", "--force", "--wait=false")

    @contextmanager
    def standing_still(self, machine: str) -> Iterator[None]:
        """Kubelet and containers of a machine are frozen within the block."""

        def frozen() -> bool | Pending:
            try:
                cluster.run(["docker", "pause", machine], self.kubectl.environment, say)
            except cluster.CommandError as error:
                if "unable to freeze" not in str(error):
                    raise
                return Pending(str(error))  # the container runtime gives up if processes are forked while it freezes them
            return True

        wait_for(f"{machine} to stand still", frozen, Limit(60, 0.5))
        try:
            yield
        finally:
            cluster.run(["docker", "unpause", machine], self.kubectl.environment, say)

    def machines(self) -> Sequence[str]:
        return [str(machine["metadata"]["name"]) for machine in self.kubectl.list("nodes")]

    def on_machine(self, machine: str, script: str) -> None:
        """Run a shell script on a machine of the cluster. Raises CommandError."""
        cluster.run(["docker", "exec", machine, "sh", "-c", script], self.kubectl.environment, say)
