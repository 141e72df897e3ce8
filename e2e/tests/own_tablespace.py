"""A small tablespace of a scenario's own, with a volume for its checkpoints, and the pod from which both are reached. All of it goes in the
end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from conftest import Stack, goes_in_the_end, say
from runs import SMALL, claimed, reading, running_pod, status_of

from herdkeeper_e2e import built_images
from herdkeeper_e2e.kubectl import Kubectl, Object, resource
from herdkeeper_e2e.sql_stack import SqlStack
from herdkeeper_e2e.tablespaces import VERIFIED, wait_until_ready
from herdkeeper_e2e.tools_pod import Database, ToolsPod
from herdkeeper_e2e.volume_claim import volume_claim
from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_e2e.writer_process import write_rows


def tablespace(name: str, **spec: object) -> Object:
    """A Tablespace of the quickstart's database, of which nothing stays when it is deleted."""
    return resource("Tablespace", name, **{"herdDBRef": {"name": "db"}, "replicas": 2, "deletionPolicy": "Delete", **spec})


def pair(lsn: Object) -> tuple[int, int]:
    """A position of the log, to compare with others."""
    return lsn["ledgerId"], lsn["entryId"]


def rows_in(tools: ToolsPod, table: str) -> list[int]:
    """The ids of a writer's table, ascending; what stands beside them is what a writer puts there."""
    found = tools.query(f"SELECT id, payload FROM {table}")
    assert [row for row in found if row["payload"] != f"row {row['id']}"] == []
    return sorted(int(row["id"]) for row in found)


def rows_of(kubectl: Kubectl, name: str, table: str) -> list[int]:
    """The same of a tablespace, by a pod for it."""
    with reading(kubectl, name) as tools:
        return rows_in(tools, table)


@dataclass(frozen=True)
class OwnTablespace:
    """One that is Ready. `name` is that of the resource, its name in SQL, and the label `scenario` of its Checkpoints."""

    stack: Stack
    name: str
    tools: ToolsPod

    @staticmethod
    def made(request: pytest.FixtureRequest, stack: Stack, name: str, log: Object | None = None) -> OwnTablespace:
        """For as long as the fixture lasts that asks for it. `log` is `spec.log`. Its pod has the image of the jobs, and the volume."""
        kubectl, claim, pod = stack.kubectl, f"{name}-files", f"{name}-tools"
        goes_in_the_end(request, kubectl, "persistentvolumeclaim", claim, "--wait=false")
        goes_in_the_end(request, kubectl, "tablespace", name)
        goes_in_the_end(request, kubectl, "checkpoints", "-l", f"scenario={name}")
        goes_in_the_end(request, kubectl, "pod", pod)
        kubectl.apply_all([volume_claim(claim), tablespace(name, **({"log": log} if log else {}))])
        wait_until_ready(kubectl, name, say)
        tools = ToolsPod(kubectl, pod, Database.of(kubectl, "db", "bk", name), image=built_images.SPARK, claim=claim).start()
        return OwnTablespace(stack, name, tools)

    @property
    def destination(self) -> Object:
        """Its volume, as resources name it."""
        return claimed(f"{self.name}-files")

    @property
    def sql(self) -> SqlStack:
        """The same, for who disturbs it."""
        return SqlStack(self.stack.kubectl, self.name)

    def get(self) -> Object:
        """The resource."""
        return self.stack.sql.get("tablespace", self.name)

    def wait_until_ready(self) -> None:
        """It is Ready, with both copies."""
        wait_until_ready(self.stack.kubectl, self.name, say)

    def log_position(self) -> Object:
        """Where its log stands at its leader: everything that was acknowledged is at or before that."""
        found: Object = json.loads(self.tools.run("sql_node", "--host", self.sql.host_of(self.sql.leader())))["applied"]
        assert found["entryId"] >= 0, found
        return found

    def switch_over(self) -> None:
        """Its other copy leads."""
        self.sql.switch_over(self.sql.other())

    def write_some_rows(self, table: str, rows: int = 50) -> None:
        """So many, or a few more, into a table of their own."""
        write_rows(self.tools, table, rows)

    def declare_checkpoint(self, name: str, **spec: object) -> None:
        """A Checkpoint of now on its volume, compared with a follower, unless `spec` says something else."""
        wanted = {"tablespaceRef": {"name": self.name}, "destination": self.destination, "job": SMALL, **spec}
        self.stack.kubectl.apply(resource("Checkpoint", name, {"scenario": self.name}, **wanted))

    def status_of(self, checkpoint: str) -> Object:
        """The status of a Checkpoint that has succeeded, which is waited for."""
        return status_of(self.stack.kubectl, "checkpoint", checkpoint)

    def checkpoint(self, name: str, **spec: object) -> Object:
        """Its status, once it has succeeded."""
        self.declare_checkpoint(name, **spec)
        return self.status_of(name)

    def driver_of(self, checkpoint: str, before: frozenset[str] = frozenset()) -> Object:
        """The pod that runs a Checkpoint's job now, which is waited for; none of those `before`, by uid."""
        return running_pod(self.stack.kubectl, _of(checkpoint, "checkpoint"), before)

    def wait_for_executors(self, checkpoint: str, instances: int) -> None:
        """So many of a Checkpoint's executors run."""
        wait_for_executors(self.stack.kubectl, checkpoint, instances)

    def rows_made_anew(self, name: str, table: str, **bootstrap: object) -> list[int]:
        """What a tablespace of this name that is made so has in a table. It goes again."""
        with made_anew(self.stack.kubectl, name, 1, **bootstrap):
            return rows_of(self.stack.kubectl, name, table)


@contextmanager
def made_anew(kubectl: Kubectl, name: str, replicas: int = 1, **bootstrap: object) -> Iterator[Object]:
    """A tablespace that is made of something older (`spec.bootstrap`), once it is Ready; then it goes. None of its tables was ever altered.

    With one copy, what it shows is what SQL returns of that moment. Scenarios 3, 4, 10 and 16 have a follower made of what was restored.
    """
    kubectl.apply(tablespace(name, replicas=replicas, bootstrap={"job": SMALL, **bootstrap}))
    made = wait_until_ready(kubectl, name, say)
    say(f"{name}: {made['status']['restore']}")
    assert made["status"]["restore"]["verified"].endswith(VERIFIED), made["status"]["restore"]
    yield made
    kubectl.run("delete", "tablespace", name, timeout_seconds=600)


def wait_for_executors(kubectl: Kubectl, checkpoint: str, instances: int) -> None:
    """Comes back when so many of a Checkpoint's executors run as pods."""

    def ask() -> bool | Pending:
        phases = [pod["status"]["phase"] for pod in kubectl.list("pods", _of(checkpoint, "executor"))]
        return True if phases.count("Running") >= instances else Pending(f"executors of {checkpoint}: {phases}")

    wait_for(f"the executors of {checkpoint}", ask, Limit(300, 0.3))


def _of(checkpoint: str, component: str) -> str:
    """The label selector of a Checkpoint's pods."""
    return f"app.kubernetes.io/name={component},herdkeeper.io/owner-name={checkpoint}"
