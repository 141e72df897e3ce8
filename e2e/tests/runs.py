"""Checkpoints and audits that a scenario declares and waits for, and what it compares them with."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import pytest
import yaml
from conftest import TABLES, Stack, goes_in_the_end, say

from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.drop_entries import Loss, drop_entries
from herdkeeper_e2e.jobs import wait_until_succeeded
from herdkeeper_e2e.kubectl import Kubectl, Object, resource
from herdkeeper_e2e.nycflights import TABLES as ALL_TABLES
from herdkeeper_e2e.nycflights import data_directory, read_rows
from herdkeeper_e2e.pod_process import kill
from herdkeeper_e2e.tools_pod import Database, ToolsPod
from herdkeeper_e2e.volume_claim import volume_claim
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

DRIVER = {"cpu": "100m", "memory": "1536Mi"}
SMALL: Object = {"resources": DRIVER}
"""A job that does all of its work in one pod."""
ROW_BY_ROW = dict[str, tuple[int, int, list[str]]]
"""Per table its rows in SQL and in a checkpoint, and the first keys that differ."""


def with_executors(instances: int) -> Object:
    """A job whose work is done in pods of their own."""
    return {"resources": DRIVER, "executors": {"instances": instances, "cpu": "100m", "memory": "512Mi"}}


def status_of(kubectl: Kubectl, kind: str, name: str) -> Object:
    """The status of a Checkpoint or an audit that has succeeded, which is waited for."""
    status: Object = wait_until_succeeded(kubectl, kind.lower(), name, say)["status"]
    say(f"{name}: {status.get('message')}; {status.get('verified', 'an audit')}; {status.get('durationSeconds')} s")
    return status


def made(kubectl: Kubectl, kind: str, name: str, /, **spec: object) -> Object:
    """The status of a Checkpoint or an audit that is declared so, once it has succeeded."""
    kubectl.apply(resource(kind, name, **spec))
    return status_of(kubectl, kind, name)


def runs_of(stack: Stack, schedule: str) -> list[str]:
    """The Checkpoints that a schedule has made, and that are there."""
    selector = f"herdkeeper.io/owner-name={schedule},app.kubernetes.io/name=checkpoint"
    return [str(each["metadata"]["name"]) for each in stack.kubectl.list("checkpoints", selector)]


def run_asked_for(stack: Stack, schedule: str) -> str:
    """The Checkpoint that a schedule makes at once."""
    before = runs_of(stack, schedule)
    stack.kubectl.run("annotate", "scheduledcheckpoint", schedule, "herdkeeper.io/run-now=yes")

    def ask() -> str | Pending:
        new = [name for name in runs_of(stack, schedule) if name not in before]
        return new[0] if new else Pending(f"{stack.sql.get('scheduledcheckpoint', schedule).get('status')}")

    return wait_for("the Checkpoint that was asked for", ask, Limit(120, 0.5))


def kill_job(stack: Stack, pod: Object, program: str) -> None:
    """A job's program is gone at once, without a word; comes back once its pod has failed."""
    name = pod["metadata"]["name"]
    stack.sql.on_machine(pod["spec"]["nodeName"], kill(pod, program))

    def ask() -> bool | Pending:
        phase = stack.sql.get("pod", name)["status"]["phase"]
        assert phase != "Succeeded", "it had ended before"
        return True if phase == "Failed" else Pending(phase)

    wait_for(f"the end of {name}", ask, Limit(300, 0.5))
    say(f"{name} was killed")


def new_key() -> str:
    """For the encryption of files, as its Secret has it; nobody else has this one."""
    return base64.b64encode(secrets.token_bytes(32)).decode()


def claimed(name: str) -> Object:
    """A volume, as the destination of checkpoints, archives and audits."""
    return {"persistentVolumeClaim": {"claimName": name}}


def compared(tools: ToolsPod, tables: Iterable[str]) -> ROW_BY_ROW:
    """The newest checkpoint of a pod's volume beside SQL, row by row, by a program that knows nothing of digests."""
    found = json.loads(tools.run("compare", "--tables", ",".join(tables)))
    return {name: (each["rows_in_sql"], each["rows_in_checkpoint"], each["differing"]) for name, each in found.items()}


def the_same(rows: Mapping[str, int]) -> ROW_BY_ROW:
    """What `compared` gives where both have exactly these numbers of rows, and no row differs."""
    return {name: (number, number, []) for name, number in rows.items()}


def rows_of_tables(status: Object) -> dict[str, int]:
    """Per table the rows of a checkpoint."""
    return {table["name"]: table["rows"] for table in status["tables"]}


def loaded_rows(status: Object) -> dict[str, int]:
    """The same of the quickstart's tables alone."""
    rows = rows_of_tables(status)
    return {name: rows[name] for name in TABLES.split(",")}


def rows_in_files(tables: Collection[str]) -> dict[str, int]:
    """Per table the rows of its file, from which it was loaded."""
    return {table.name: sum(1 for _ in read_rows(table, data_directory())) for table in ALL_TABLES if table.name in tables}


def files_of(pod: ToolsPod, volume: str) -> list[str]:
    """The paths of all files below a folder of a pod, relative to it."""
    listed = (
        "import pathlib, sys; [print(path.relative_to(sys.argv[1])) for path in pathlib.Path(sys.argv[1]).rglob('*') if path.is_file()]"
    )
    return pod.script(listed, volume).split()


def own_volume(request: pytest.FixtureRequest, kubectl: Kubectl, name: str) -> Object:
    """A scenario's own, as a destination; it goes when the fixture ends."""
    goes_in_the_end(request, kubectl, "persistentvolumeclaim", name, "--wait=false")
    kubectl.apply(volume_claim(name))
    return claimed(name)


def reading(kubectl: Kubectl, tablespace: str) -> AbstractContextManager[ToolsPod]:
    """A pod that speaks SQL to a tablespace of the quickstart's database, as long as the block lasts."""
    return ToolsPod(kubectl, f"{tablespace}-reader", Database.of(kubectl, "db", "bk", tablespace)).for_a_while()


def has_the_same_rows(stack: Stack, tablespace: str, tables: Iterable[str]) -> None:
    """As the quickstart's."""
    with reading(stack.kubectl, tablespace) as reader:
        for table in tables:
            assert reader.rows(table) == stack.tools.rows(table), table


def running_pod(kubectl: Kubectl, selector: str, before: frozenset[str] = frozenset()) -> Object:
    """The pod of a job that runs now, which is waited for; none of those `before`, by uid."""

    def ask() -> Object | Pending:
        pods = kubectl.list("pods", selector)
        running = [pod for pod in pods if pod["status"]["phase"] == "Running" and pod["metadata"]["uid"] not in before]
        return running[0] if running else Pending(f"pods of {selector}: {[pod['status']['phase'] for pod in pods]}")

    return wait_for(f"a pod of {selector}", ask, Limit(300, 0.5))


def declare_audit(kubectl: Kubectl, name: str, job: Object | None = None, labels: Object | None = None, /, **spec: object) -> None:
    """The example's audit with these fields, and these of its job."""
    audit = yaml.safe_load((REPOSITORY / "examples/audit.yaml").read_text())
    audit["metadata"] = {"name": name, "labels": labels or {}}
    audit["spec"] |= {**spec, "job": {**audit["spec"]["job"], **(job or {})}}
    kubectl.apply(audit)


def audited(kubectl: Kubectl, name: str, job: Object | None = None, labels: Object | None = None, /, **spec: object) -> Object:
    """The status of the same, once it has succeeded."""
    declare_audit(kubectl, name, job, labels, **spec)
    return status_of(kubectl, "replicationaudit", name)


def of_ledgers(stack: Stack, fact: str, tools: ToolsPod | None = None, bookies: str = "bk") -> Any:
    """A fact of the ledgers of a BookKeeperCluster, seen from the stack's pod or another one."""
    root = stack.sql.get("bookkeepercluster", bookies)["status"]["ledgersRoot"]
    return (tools or stack.tools).fact(fact, "--ledgers-root", root)


def first_ledger(stack: Stack, tools: ToolsPod | None = None) -> Object:
    """Of the log of a pod's tablespace: its id (`ledger`), its `bookies`, whether it is `closed`, and its metadata's `version`."""
    found: Object = of_ledgers(stack, "first_ledger", tools)
    return found


def newest_ledger(stack: Stack) -> Object:
    """The same of the ledger that the leader writes."""
    found: Object = of_ledgers(stack, "newest_ledger")
    return found


def inflicted(stack: Stack, ledger: Object, *faults: tuple[int, int, bool]) -> list[Loss]:
    """Faults on the first bookie that holds a ledger: the first and the last entry, and whether they are damaged instead of missing."""
    holder = ledger["bookies"][0]
    bookies = stack.sql.get("bookkeepercluster", "bk")["status"]["bookies"]
    number = next(bookie["number"] for bookie in bookies if bookie["bookieId"] == holder)
    losses = [Loss("bk", number, ledger["ledger"], *fault) for fault in faults]
    say(f"on {holder}: {losses}")
    drop_entries(stack.kubectl, *losses)
    return losses
