"""What certificates between servers cost: `python3 -m herdkeeper_e2e.bench_certificates --rounds 5`, on the test cluster.

Two quickstarts side by side, one of them with `spec.security.mode: TLS`, are measured in turns, so that what else the machine does meets
both: rows acknowledged a second, how long no write is acknowledged around a fault, and entries that an audit reads a second. The idle one's
probes and heartbeats take their share of the machine from the other one, in both alike.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import yaml

from herdkeeper_e2e import cluster
from herdkeeper_e2e.bench_leadership import FAULTS, ROWS, TOOLS
from herdkeeper_e2e.jobs import wait_until_succeeded
from herdkeeper_e2e.kubectl import Kubectl, Object
from herdkeeper_e2e.sql_stack import TABLESPACE, SqlStack, say
from herdkeeper_e2e.tools_pod import Database, ToolsPod
from herdkeeper_e2e.writer_process import WriterProcess

MODES = ("Insecure", "TLS")
CLIENTS = (1, 8)
WARM_UP_SECONDS, MEASURED_SECONDS = 5.0, 20.0
CAUSES = ("SIGKILL", "pod deleted", "ZooKeeper's leader deleted")
SETTLED_SECONDS = 30.0


@dataclass
class Measured:
    """What one of the stacks gave, by what was measured."""

    figures: dict[str, list[float]] = field(default_factory=dict)

    def add(self, what: str, figure: float) -> None:
        """One more figure."""
        self.figures.setdefault(what, []).append(figure)


@dataclass(frozen=True)
class Bench:
    """One of the stacks."""

    stack: SqlStack
    tools: ToolsPod
    measured: Measured

    def rows_a_second(self, clients: int, table: str) -> None:
        """Of so many clients, each of which waits for its row before it writes the next."""
        writers = [WriterProcess(self.tools, f"{table}_{number}") for number in range(clients)]
        for writer in writers:
            writer.acknowledges(ROWS)
        time.sleep(WARM_UP_SECONDS)
        began, before = time.monotonic(), sum(writer.acknowledged for writer in writers)
        time.sleep(MEASURED_SECONDS)
        rows, seconds = sum(writer.acknowledged for writer in writers) - before, time.monotonic() - began
        for writer in writers:
            writer.stop()
        self.measured.add(f"rows acknowledged a second, {clients} clients", rows / seconds)

    def write_gap(self, fault: str, table: str) -> None:
        """Around a fault, in seconds. AssertionError where a row is lost that was acknowledged."""
        self.stack.wait_until_settled(SETTLED_SECONDS)
        writer = WriterProcess(self.tools, table, "--patience-seconds", "0.5", "--pause-seconds", "0.02")
        writer.acknowledges(ROWS)
        writer.marked(fault)
        FAULTS[fault].inject(self.stack, writer)
        writer.stop()
        found = writer.read()
        if found["violation"] is not None:
            raise AssertionError(found["violation"])
        self.measured.add(f"seconds without an acknowledged write, {fault}", found["gaps"][0]["seconds"])

    def audit(self, name: str) -> None:
        """Of all copies, in the driver."""
        audit = yaml.safe_load((cluster.REPOSITORY / "examples/audit.yaml").read_text())
        audit["metadata"]["name"] = name
        self.stack.kubectl.apply(json.dumps(audit))
        status = wait_until_succeeded(self.stack.kubectl, "replicationaudit", name, say)["status"]
        self.measured.add("copies that an audit reads a second", status["replicas"] / status["durationSeconds"])


def quickstart(mode: str) -> list[Object]:
    """The example in this mode."""
    documents = list(yaml.safe_load_all((cluster.REPOSITORY / "examples/quickstart.yaml").read_text()))
    for document in documents:
        if mode == "TLS" and document["kind"] == "ZooKeeperCluster":
            document["spec"]["security"] = {"mode": mode}
        if mode == "TLS" and document["kind"] == "HerdDBCluster":
            document["spec"]["tls"] = {"secretName": "db-herddb-identity"}
    return documents


def prepared(environment: Mapping[str, str], mode: str) -> Bench:
    """The stack, Ready, in a namespace of its own."""
    kubectl = Kubectl(f"bench-{mode.lower()}", environment)
    kubectl.run("delete", "namespace", kubectl.namespace, "--ignore-not-found", timeout_seconds=320)
    kubectl.run("create", "namespace", kubectl.namespace)
    kubectl.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": quickstart(mode)}))
    stack = SqlStack(kubectl, environment)
    stack.wait_until_ready()
    tools = ToolsPod(kubectl, TOOLS, Database.of(kubectl, "db", "bk", TABLESPACE), machine=stack.machine_of_operator())
    tools.start()
    return Bench(stack, tools, Measured())


def measure(benches: Sequence[Bench], rounds: int) -> None:
    """In turns."""
    for number in range(rounds):
        for bench in benches:
            bench.stack.wait_until_settled(SETTLED_SECONDS)
            for clients in CLIENTS:
                bench.rows_a_second(clients, f"rows_{number}_{clients}")
            bench.audit(f"round-{number}")
        for cause in CAUSES:
            for bench in benches:
                bench.write_gap(cause, f"gap_{number}_{''.join(filter(str.isalpha, cause)).lower()}")
        print(table({mode: bench.measured for mode, bench in zip(MODES, benches, strict=True)}), flush=True)


def table(measured: Mapping[str, Measured]) -> str:
    """Medians as a Markdown table, with the least and the most in brackets."""
    lines = [f"| What | n | {' | '.join(measured)} |", "|---|---|" + "---|" * len(measured)]
    for what in next(iter(measured.values())).figures:
        found = [each.figures.get(what, []) for each in measured.values()]
        cells = (f"{statistics.median(each):.4g} ({min(each):.4g} to {max(each):.4g})" if each else "–" for each in found)
        lines.append(f"| {what} | {len(found[0])} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    environment = cluster.prepare(say)
    cluster.install_operator(environment, say)
    measure([prepared(environment, mode) for mode in MODES], arguments.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
