"""How long no write is acknowledged while a tablespace's leader changes: `python3 -m herdkeeper_e2e.bench_leadership --rounds 20`.

On the test cluster, with a writer that connects again at once. Each round begins with the stack Ready. At the end the table is read and
compared with the writer's history: an acknowledged row that is missing fails the benchmark, whatever the times are.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from herdkeeper_e2e import cluster
from herdkeeper_e2e.conditions import all_ready
from herdkeeper_e2e.kubectl import Kubectl, Object
from herdkeeper_e2e.tools_pod import Database, ToolsPod
from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_e2e.writer_process import WriterProcess

NAMESPACE = "bench"
RESOURCES = "zookeeperclusters,bookkeeperclusters,herddbclusters,tablespaces"
TABLESPACE = "flights"
ROWS = 40
"""Acknowledged before and after each fault: a gap has two ends."""


@dataclass(frozen=True)
class Bench:
    """Where it runs."""

    kubectl: Kubectl
    environment: Mapping[str, str]

    def leader(self) -> str:
        """The node that leads."""
        return str(self._get("tablespace", TABLESPACE)["status"]["leader"])

    def leader_of_zookeeper(self) -> str:
        """The pod of the ensemble's leader."""
        return str(self._get("zookeepercluster", "zk")["status"]["leader"])

    def other(self) -> str:
        """A replica that does not lead."""
        replicas = self._get("tablespace", TABLESPACE)["status"]["replicas"]
        return next(str(each["node"]) for each in replicas if each["node"] != self.leader())

    def wait_until_ready(self) -> None:
        """All four resources are Ready."""
        wait_for("the stack", lambda: all_ready(self.kubectl.list(RESOURCES), 4), Limit(900, 1), say)

    def _get(self, kind: str, name: str) -> Object:
        found = self.kubectl.get(kind, name)
        if found is None:
            raise KeyError(f"{kind} {name}")
        return found

    def node_of(self, pod: str) -> str:
        """The machine of a pod."""
        return str(self._get("pod", pod)["spec"]["nodeName"])

    def machine_of_operator(self) -> str:
        """Where the operator runs."""
        pods = self.kubectl.in_namespace(cluster.OPERATOR_NAMESPACE).list("pods", "app.kubernetes.io/name=herdkeeper-operator")
        return str(pods[0]["spec"]["nodeName"])

    def replaced(self, pod: str, uid: str) -> bool | Pending:
        """Whether another pod of that name is there."""
        found = self.kubectl.get("pod", pod)
        return True if found is not None and found["metadata"]["uid"] != uid else Pending(f"{pod} is not replaced yet")

    def switch_over(self, target: str) -> None:
        """As a person asks for it."""
        self.kubectl.run("annotate", "tablespace", TABLESPACE, f"herdkeeper.io/switchover={target}", "--overwrite")
        wait_for(target, lambda: self.leader() == target or Pending(f"{self.leader()} leads"), Limit(120, 0.5))

    def signal(self, name: str, leader: str) -> None:
        """Send the JVM of a SQL node a signal."""
        script = f"kill -{name} $(pgrep -f 'io[.]herdkeeper[.]node[.]Main.*--node-id {leader} ')"
        cluster.run(["docker", "exec", self.node_of(leader), "sh", "-c", script], self.environment, say)

    def delete(self, pod: str, *arguments: str) -> None:
        """Delete a pod and wait for its successor."""
        uid = self._get("pod", pod)["metadata"]["uid"]
        self.kubectl.run("delete", "pod", pod, "--wait=false", *arguments)
        wait_for(f"another {pod}", lambda: self.replaced(pod, uid), Limit(300, 0.5))


def switch_over(bench: Bench, writer: WriterProcess) -> None:
    """As a person asks for it."""
    bench.switch_over(bench.other())
    writer.acknowledges(ROWS)


def delete_gracefully(bench: Bench, writer: WriterProcess) -> None:
    """As a drain does it."""
    bench.delete(bench.leader())
    writer.acknowledges(ROWS)


def kill(bench: Bench, writer: WriterProcess) -> None:
    """SIGKILL of the leader's JVM. Its pod is deleted afterwards, so that the kubelet's back-off does not add up."""
    leader = bench.leader()
    bench.signal("KILL", leader)
    writer.acknowledges(ROWS)
    bench.delete(leader)


def delete_at_once(bench: Bench, writer: WriterProcess) -> None:
    """The pod deleted with a grace of 0."""
    bench.delete(bench.leader(), "--grace-period=0", "--force")
    writer.acknowledges(ROWS)


def hang(bench: Bench, writer: WriterProcess) -> None:
    """SIGSTOP of the leader's JVM, until another node leads."""
    leader = bench.leader()
    bench.signal("STOP", leader)
    try:
        writer.acknowledges(ROWS)
    finally:
        bench.signal("CONT", leader)


def lose_machine(bench: Bench, writer: WriterProcess) -> None:
    """The leader's machine stands still, its kubelet and all its containers: bookie, ZooKeeper member and SQL node at once."""
    machine = bench.node_of(bench.leader())
    cluster.run(["docker", "pause", machine], bench.environment, say)
    try:
        writer.acknowledges(ROWS)
    finally:
        cluster.run(["docker", "unpause", machine], bench.environment, say)


def delete_leader_of_zookeeper(bench: Bench, writer: WriterProcess) -> None:
    """No leader change of the tablespace: an ensemble elects its leader anew beneath it."""
    bench.delete(bench.leader_of_zookeeper())
    writer.acknowledges(ROWS)


def lead_from_another_machine(bench: Bench) -> None:
    """The machine that will be lost is neither the operator's, nor that of the writer beside it."""
    if bench.node_of(bench.leader()) == bench.machine_of_operator():
        bench.switch_over(bench.other())


@dataclass(frozen=True)
class Fault:
    """What is done to the leader, and what must be so before."""

    inject: Callable[[Bench, WriterProcess], None]
    before: Callable[[Bench], None] = lambda _: None


FAULTS: Mapping[str, Fault] = {
    "switchover": Fault(switch_over),
    "pod deleted": Fault(delete_gracefully),
    "SIGKILL": Fault(kill),
    "pod deleted at once": Fault(delete_at_once),
    "SIGSTOP": Fault(hang),
    "machine lost": Fault(lose_machine, lead_from_another_machine),
    "ZooKeeper's leader deleted": Fault(delete_leader_of_zookeeper),
}


def table(seconds: Mapping[str, Sequence[float]]) -> str:
    """The figures as a Markdown table, in seconds."""
    lines = ["| What happens | n | min | median | p95 | max |", "|---|---|---|---|---|---|"]
    for name, found in seconds.items():
        ordered = sorted(found)
        p95 = ordered[min(len(ordered) - 1, round(0.95 * (len(ordered) - 1)))]
        figures = (ordered[0], statistics.median(ordered), p95, ordered[-1])
        lines.append(f"| {name} | {len(ordered)} | " + " | ".join(f"{value:.2f}" for value in figures) + " |")
    return "\n".join(lines)


def say(message: str) -> None:
    """A line of progress."""
    print(message, file=sys.stderr, flush=True)


def prepare() -> tuple[Bench, ToolsPod]:
    """The cluster, the operator, and the quickstart in a namespace of its own."""
    environment = cluster.prepare(say)
    cluster.install_operator(environment, say)
    kubectl = Kubectl(NAMESPACE, environment)
    if Kubectl("default", environment).get("namespace", NAMESPACE) is None:
        kubectl.run("create", "namespace", NAMESPACE)
    kubectl.apply(cluster.REPOSITORY / "examples/quickstart.yaml")
    bench = Bench(kubectl, environment)
    bench.wait_until_ready()
    tools = ToolsPod(kubectl, "tools", Database.of(kubectl, "db", "bk", TABLESPACE), machine=bench.machine_of_operator())
    tools.start()
    return bench, tools


def measure(bench: Bench, tools: ToolsPod, faults: Sequence[str], rounds: int) -> str | None:
    """Prints the figures. What contradicts the history is returned: an acknowledged row that is lost, or None."""
    writer = WriterProcess(tools, f"bench_{int(time.time())}", "--patience-seconds", "0.5")
    for number in range(rounds):
        for fault in faults:
            bench.wait_until_ready()
            FAULTS[fault].before(bench)
            writer.acknowledges(ROWS)
            writer.order(f"mark {fault}")
            FAULTS[fault].inject(bench, writer)
            say(f"round {number + 1} of {rounds}: {fault}")
    writer.stop()
    found = writer.read()
    seconds = {fault: [gap["seconds"] for gap in found["gaps"] if gap["fault"] == fault] for fault in faults}
    print(table(seconds))
    print(f"{found['verdict']['acknowledged']} rows acknowledged, {found['verdict']['unknown']} answers lost")
    violation: str | None = found["violation"]
    return violation


def main() -> int:
    """The command line; 1 when an acknowledged row is lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20, help="of each leader change")
    parser.add_argument("--fault", choices=tuple(FAULTS), action="append", help="only this one; may be repeated")
    arguments = parser.parse_args()
    bench, tools = prepare()
    violation = measure(bench, tools, arguments.fault or tuple(FAULTS), arguments.rounds)
    if violation is not None:
        print(violation, file=sys.stderr)
    return 0 if violation is None else 1


if __name__ == "__main__":
    sys.exit(main())
