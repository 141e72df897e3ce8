"""Measures how long no write is acknowledged during a leader change: `python3 -m herdkeeper_e2e.bench_leadership --rounds 20`.

It uses the test cluster, and a writer that reconnects at once. Each round starts with a Ready stack whose SQL processes are half a minute
old: a fresh JVM runs uncompiled code, and two restarts in a row are not measured. At the end, the table is compared with the writer's
history: a missing acknowledged row fails the benchmark, whatever the times are. The stack goes in the end; after a failure it stays until
the next run.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import yaml

from herdkeeper_e2e import cluster
from herdkeeper_e2e.history import PAUSE_SECONDS
from herdkeeper_e2e.kubectl import Kubectl, Object
from herdkeeper_e2e.machine_to_lose import Placement, Refused, who_shall_lead
from herdkeeper_e2e.sql_stack import TABLESPACE, SqlStack, say
from herdkeeper_e2e.tools_pod import Database, ToolsPod
from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_e2e.writer_process import WriterProcess

NAMESPACE = "bench"
TOOLS = "tools"
"""The pod of the writer."""
DRAIN = ("--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=300s")
ROWS = 40
"""Acknowledged before and after each fault: a gap has two ends."""
FIGURES = {"seconds": "Longest time without an acknowledged write", "pauses": f"All pauses over {PAUSE_SECONDS:g} s together"}
"""What is derived from a gap, and the title of its column."""


def switch_over(stack: SqlStack, writer: WriterProcess) -> None:
    """As a user requests it."""
    stack.switch_over(stack.other())
    writer.acknowledges(ROWS)


def delete_gracefully(stack: SqlStack, writer: WriterProcess) -> None:
    """As a drain does it."""
    stack.delete(stack.leader())
    writer.acknowledges(ROWS)


def kill(stack: SqlStack, writer: WriterProcess) -> None:
    """SIGKILL of the leader's JVM. Its pod is deleted afterwards, so that the kubelet's back-off does not accumulate."""
    leader = stack.leader()
    stack.signal("KILL", leader)
    writer.acknowledges(ROWS)
    stack.delete(leader)


def delete_at_once(stack: SqlStack, writer: WriterProcess) -> None:
    """Delete the pod with a grace period of 0."""
    stack.delete(stack.leader(), "--grace-period=0", "--force")
    writer.acknowledges(ROWS)


def hang(stack: SqlStack, writer: WriterProcess) -> None:
    """SIGSTOP of the leader's JVM, until another node leads."""
    leader = stack.leader()
    stack.signal("STOP", leader)
    try:
        another_leads(stack, leader, writer)
    finally:
        stack.signal("CONT", leader)


def lose_machine(stack: SqlStack, writer: WriterProcess) -> None:
    """Freeze the leader's machine with kubelet and containers: bookie, ZooKeeper member and SQL node at once."""
    lost = stack.leader()
    with stack.standing_still(stack.node_of(lost)):
        another_leads(stack, lost, writer)


def another_leads(stack: SqlStack, before: str, writer: WriterProcess) -> None:
    """Wait for another leader. Rows alone prove none: the first that are counted may have been acknowledged before the fault."""

    def told() -> str | Pending:
        return leader if (leader := stack.leader()) != before else Pending(f"the status tells of {before}")

    wait_for("another leader", told, Limit(120, 0.5))
    writer.acknowledges(ROWS)


def drain_machine(stack: SqlStack, writer: WriterProcess) -> None:
    """`kubectl drain` of the leader's machine: its SQL node, bookie and ZooKeeper member are evicted, and come back afterwards."""
    machine = stack.node_of(stack.leader())
    try:
        stack.kubectl.run("drain", machine, *DRAIN, timeout_seconds=320)
        writer.acknowledges(ROWS)
    finally:
        stack.kubectl.run("uncordon", machine)


def roll(stack: SqlStack, writer: WriterProcess) -> None:
    """Change an irrelevant setting by some milliseconds: each SQL node is restarted, the leader last."""
    before = {node: stack.get("pod", node)["metadata"]["uid"] for node in stack.replicas()}
    stack.kubectl.want("herddbcluster", "db", config={"server.checkpoint.period": str(900_000 + int(time.time()) % 1000)})
    for node, uid in before.items():
        wait_for(f"another {node}", lambda node=node, uid=uid: stack.replaced(node, uid), Limit(600, 0.5))  # type: ignore[misc]
    stack.wait_until_ready()
    writer.acknowledges(ROWS)


def delete_leader_of_zookeeper(stack: SqlStack, writer: WriterProcess) -> None:
    """No leader change of the tablespace: the ensemble below elects its leader again."""
    deleted = stack.leader_of_zookeeper()
    stack.delete(deleted)
    writer.acknowledges(ROWS)

    def elected() -> bool | Pending:
        return stack.get("zookeepercluster", "zk")["status"].get("leader", deleted) != deleted or Pending(f"the status tells of {deleted}")

    wait_for("another leader of ZooKeeper", elected, Limit(120))  # writes go on without one, and a switchover is refused


def lead_from_a_machine_to_lose(stack: SqlStack) -> str | None:
    """Move the leader to a machine without operator and writer, and with at most one bookie. A drain evicts a second one only once the
    first serves again, which is impossible here. Returns why there is no such machine.
    """
    leader = stack.leader()
    chosen = who_shall_lead(
        Placement(
            leader=leader,
            replicas={node: stack.node_of(node) for node in stack.replicas()},
            bookies=stack.machines_of_bookies(),
            observers={"the operator": stack.machine_of_operator(), "the writer": stack.node_of(TOOLS)},
        )
    )
    match chosen:
        case Refused(why):
            return why
        case node:
            if node != leader:
                stack.switch_over(node)
            return None


@dataclass(frozen=True)
class Fault:
    """A fault of the leader, and its preparation, which returns why it is impossible, or None."""

    inject: Callable[[SqlStack, WriterProcess], None]
    before: Callable[[SqlStack], str | None] = lambda _: None


FAULTS: Mapping[str, Fault] = {
    "switchover": Fault(switch_over),
    "pod deleted": Fault(delete_gracefully),
    "SIGKILL": Fault(kill),
    "pod deleted at once": Fault(delete_at_once),
    "SIGSTOP": Fault(hang),
    "machine drained": Fault(drain_machine, lead_from_a_machine_to_lose),
    "SQL nodes rolled": Fault(roll),
    "machine lost": Fault(lose_machine, lead_from_a_machine_to_lose),
    "ZooKeeper's leader deleted": Fault(delete_leader_of_zookeeper),
}


def table(what: str, seconds: Mapping[str, Sequence[float]]) -> str:
    """Returns the figures as a Markdown table, in seconds."""
    lines = [f"| {what} | n | min | median | p95 | max |", "|---|---|---|---|---|---|"]
    for name, found in seconds.items():
        ordered = sorted(found)
        p95 = ordered[min(len(ordered) - 1, round(0.95 * (len(ordered) - 1)))]
        figures = (ordered[0], statistics.median(ordered), p95, ordered[-1])
        lines.append(f"| {name} | {len(ordered)} | " + " | ".join(f"{value:.2f}" for value in figures) + " |")
    return "\n".join(lines)


def quickstart(insecure: bool) -> list[Object]:
    """Returns the resources of the quickstart, with certificates or in plain text."""
    found: list[Object] = list(yaml.safe_load_all((cluster.REPOSITORY / "examples/quickstart.yaml").read_text()))
    for item in found:
        if insecure and item["kind"] == "ZooKeeperCluster":
            item["spec"]["security"] = {"mode": "Insecure"}
    return found


def prepare(insecure: bool) -> tuple[SqlStack, ToolsPod]:
    """Returns the quickstart, Ready, in a namespace that begins empty, and the writer's pod."""
    environment = cluster.prepare(say)
    cluster.install_operator(environment, say)
    kubectl = Kubectl(NAMESPACE, environment)
    kubectl.run("delete", "namespace", NAMESPACE, "--ignore-not-found", timeout_seconds=300)
    kubectl.run("create", "namespace", NAMESPACE)
    kubectl.apply_all(quickstart(insecure))
    stack = SqlStack(kubectl)
    stack.wait_until_ready()
    tools = ToolsPod(kubectl, TOOLS, Database.of(kubectl, "db", "bk", TABLESPACE), machine=stack.machine_of_operator()).start()
    return stack, tools


def rounds_within(rounds: int, minutes: float | None) -> Iterator[int]:
    """Yields the rounds, from 1, as long as they begin in time."""
    begun = time.monotonic()
    for number in range(1, rounds + 1):
        if minutes is not None and time.monotonic() - begun > 60 * minutes:
            say(f"{minutes:g} minutes are over: {number - 1} of {rounds} rounds were run")
            return
        yield number


@dataclass(frozen=True)
class Plan:
    faults: Sequence[str]
    rounds: Iterator[int]
    settled_seconds: float
    """Minimum age of a SQL node's process before each fault."""
    pause_seconds: float = 0.0
    """Of the writer, after each row."""


def measure(stack: SqlStack, tools: ToolsPod, plan: Plan) -> str | None:
    """Print the figures, also of what ended early. Returns a contradiction with the history, i.e. a lost acknowledged row, or None."""
    writer = WriterProcess(tools, f"bench_{int(time.time())}", "--patience-seconds", "0.5", "--pause-seconds", str(plan.pause_seconds))
    left_out: dict[str, str] = {}
    try:
        for number in plan.rounds:
            left_out |= one_round(stack, writer, plan, number)
    finally:
        violation = report(writer, plan, left_out)
    return violation


def one_round(stack: SqlStack, writer: WriterProcess, plan: Plan, number: int) -> dict[str, str]:
    """Returns which faults were left out, and why."""
    left_out: dict[str, str] = {}
    for fault in plan.faults:
        stack.wait_until_settled(plan.settled_seconds)
        writer.order("mark preparation")  # which may move the leader: no gap of the fault before
        if (why := FAULTS[fault].before(stack)) is not None:
            say(f"round {number}: {fault} is left out: {why}")
            left_out[fault] = why
            continue
        writer.acknowledges(ROWS)
        writer.order(f"mark {fault}")
        FAULTS[fault].inject(stack, writer)
        say(f"round {number}: {fault}")
    return left_out


def report(writer: WriterProcess, plan: Plan, left_out: Mapping[str, str]) -> str | None:
    """Print the figures. Returns a contradiction with the history, or None."""
    writer.stop()
    found = writer.read()
    for figure, what in FIGURES.items():
        figures = {fault: [gap[figure] for gap in found["gaps"] if gap["fault"] == fault] for fault in plan.faults}
        print(table(what, {fault: gaps for fault, gaps in figures.items() if gaps}))
    for fault, why in left_out.items():
        print(f"{fault} was left out, in one round at least: {why}")
    print(f"{found['verdict']['acknowledged']} rows acknowledged, {found['verdict']['unknown']} answers lost")
    violation: str | None = found["violation"]
    return violation


def main() -> int:
    """The command line; 1 if an acknowledged row is lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20, help="of each leader change")
    parser.add_argument("--minutes", type=float, help="no round begins later than this")
    parser.add_argument("--settled-seconds", type=float, default=30, help="for how long each SQL node's process has run before a fault")
    parser.add_argument(
        "--pause-seconds", type=float, default=0.0, help="of the writer after each row; without one it takes what the machines have to give"
    )
    parser.add_argument("--fault", choices=tuple(FAULTS), action="append", help="only this one; may be repeated")
    parser.add_argument("--insecure", action="store_true", help="a stack in plain text, to compare with one that has certificates")
    arguments = parser.parse_args()
    stack, tools = prepare(arguments.insecure)
    rounds = rounds_within(arguments.rounds, arguments.minutes)
    faults = arguments.fault or tuple(FAULTS)
    violation = measure(stack, tools, Plan(faults, rounds, arguments.settled_seconds, arguments.pause_seconds))
    if violation is not None:
        print(violation, file=sys.stderr)
        return 1
    stack.kubectl.run("delete", "namespace", NAMESPACE, "--wait=false")
    return 0


if __name__ == "__main__":
    sys.exit(main())
