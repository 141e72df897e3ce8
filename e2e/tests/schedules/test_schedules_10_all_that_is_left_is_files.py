"""A tablespace is dropped, with its records, its log and its Checkpoints. Of a checkpoint's files and the archive of its log, on a volume,
three moments of it are made anew: each has what was recorded at that moment, and what was not archived is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from conftest import START, Stack, goes_in_the_end, say

from herdkeeper_e2e.conditions import condition
from herdkeeper_e2e.history import EventKind, parse_history
from herdkeeper_e2e.jobs import wait_until_succeeded
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.sql_stack import SqlStack
from herdkeeper_e2e.tablespaces import wait_until_ready
from herdkeeper_e2e.tools_pod import Database, ToolsPod
from herdkeeper_e2e.volume_claim import volume_claim
from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_e2e.writer_process import WriterProcess, write_rows

NAME, CLAIM, CHECKPOINT = "recorded", "remembered", "recorded-base"
FIRST, GOING_ON, NOTES, SHORT_LIVED = "written", "going_on", "notes", "short_lived"
ROWS = 200
OWN = "herdkeeper.io/v1alpha1"
PLACE = {"persistentVolumeClaim": {"claimName": CLAIM}}
JOB = {"resources": {"cpu": "100m", "memory": "1536Mi"}}
ARCHIVE = {"destination": PLACE, "everySeconds": 5, "resources": {"cpu": "50m", "memory": "512Mi"}}
Contents = dict[str, list[str]]
"""Per table its rows, each as JSON, sorted."""


@dataclass(frozen=True)
class Left:
    """What is left of the tablespace, and what is known of its moments.

    `manifest` is the checkpoint's path on the volume. Up to `by_lsn` it had `at_lsn`, in the end `at_the_end`. At the time `moment` it had
    `at_moment`, while rows 0, 1, 2, … came into the table GOING_ON: at least `fewest` of them were there, at most `most`.
    """

    manifest: str
    by_lsn: Object
    at_lsn: Contents
    moment: datetime
    at_moment: Contents
    fewest: int
    most: int
    at_the_end: Contents

    @property
    def folder(self) -> str:
        return self.manifest.split("/manifests/")[0]


def tablespace(name: str, **more: object) -> Object:
    spec = {"herdDBRef": {"name": "db"}, "replicas": 2, "deletionPolicy": "Delete", **more}
    return {"apiVersion": OWN, "kind": "Tablespace", "metadata": {"name": name}, "spec": spec}


def tools_name(tablespace: str) -> str:
    """Of the pod from which SQL is spoken to a tablespace."""
    return f"tools-{tablespace}"


def tools_of(stack: Stack, name: str) -> ToolsPod:
    tools = ToolsPod(stack.kubectl, tools_name(name), Database.of(stack.kubectl, "db", "bk", name))
    tools.start()
    return tools


def contents(tools: ToolsPod) -> Contents:
    """All rows of all tables of a tablespace."""
    tables = [str(row["table_name"]) for row in tools.query("SELECT * FROM systables") if row["systemtable"] == "false"]
    return {table: sorted(json.dumps(row, sort_keys=True) for row in tools.query(f"SELECT * FROM `{table}`")) for table in tables}


def archived_after(stack: Stack, moment: datetime) -> Object:
    """What the status tells of the archive, once it has an entry that was written after a moment, as an idle leader writes some.

    That all is archived which was confirmed then would not do: the last entry is confirmed with the one behind it.
    """

    def ask() -> Object | Pending:
        archive = stack.sql.get("tablespace", NAME).get("status", {}).get("archive", {})
        stamped = archive.get("lsnTimestamp")
        if stamped is None or datetime.fromisoformat(stamped) <= moment:
            return Pending(f"archived up to an entry of {stamped}")
        return dict(archive)

    return wait_for(f"the archive of {moment}", ask, Limit(300, 1), say)


def acknowledged_rows(tools: ToolsPod, table: str) -> int:
    """How many rows the history of the table's writer has, which goes on meanwhile."""
    lines = tools.kubectl.exec(tools.name, "cat", f"/tmp/history-of-{table}").split("\n")[:-1]
    events = parse_history(lines)
    assert not any(event.kind is EventKind.UNKNOWN for event in events), "no row may be in doubt"
    return sum(event.kind is EventKind.ACKNOWLEDGED for event in events)


@pytest.fixture(scope="module")
def left(request: pytest.FixtureRequest, stack: Stack) -> Left:
    """What is left, once everything else is gone."""
    goes_in_the_end(request, stack.kubectl, "persistentvolumeclaim", CLAIM, "--wait=false")
    made = (("tablespace", NAME), ("checkpoint", CHECKPOINT), ("pod", tools_name(NAME)))
    for kind, name in made:
        goes_in_the_end(request, stack.kubectl, kind, name)
    claim = volume_claim(CLAIM)
    stack.kubectl.apply_all([claim, tablespace(NAME, log={"archive": ARCHIVE})])
    wait_until_ready(stack.kubectl, NAME, say)
    tools = tools_of(stack, NAME)

    create = "CREATE TABLE `{}` (`id` long, `word` string, PRIMARY KEY (`id`))"
    tools.run("query", create.format(NOTES), create.format(SHORT_LIVED), f"INSERT INTO `{NOTES}` (`id`, `word`) VALUES (1, 'first')")
    tools.run("query", f"INSERT INTO `{SHORT_LIVED}` (`id`, `word`) VALUES (7, 'gone soon')")
    write_rows(tools, FIRST, ROWS)
    at_lsn = contents(tools)
    by_lsn = archived_after(stack, datetime.now(UTC))["lsn"]

    tools.run("query", f"UPDATE `{NOTES}` SET `word` = 'second' WHERE `id` = 1", f"INSERT INTO `{NOTES}` (`id`, `word`) VALUES (2, 'x')")
    spec = {"tablespaceRef": {"name": NAME}, "destination": PLACE, "job": JOB}
    stack.kubectl.apply_all([{"apiVersion": OWN, "kind": "Checkpoint", "metadata": {"name": CHECKPOINT}, "spec": spec}])
    base = wait_until_succeeded(stack.kubectl, "checkpoint", CHECKPOINT, say)["status"]
    sql = SqlStack(stack.kubectl, NAME)
    sql.switch_over(sql.other())
    tools.run("query", f"DELETE FROM `{NOTES}` WHERE `id` = 2", f"DROP TABLE `{SHORT_LIVED}`")

    at_moment = contents(tools)
    writer = WriterProcess(tools, GOING_ON)
    writer.acknowledges(ROWS)
    fewest = acknowledged_rows(tools, GOING_ON)
    moment = datetime.now(UTC)
    most = acknowledged_rows(tools, GOING_ON) + 1  # one may have been under way
    writer.acknowledges(ROWS)
    writer.stop()
    tools.run("query", f"DELETE FROM `{GOING_ON}` WHERE `id` < 10", f"UPDATE `{NOTES}` SET `word` = 'last' WHERE `id` = 1")
    at_the_end = contents(tools)
    say(f"{archived_after(stack, datetime.now(UTC))}")

    for kind, name in reversed(made):
        stack.kubectl.run("delete", kind, name, timeout_seconds=600)
    return Left(base["manifest"], by_lsn, at_lsn, moment, at_moment, fewest, most, at_the_end)


class Restored:
    """Makes tablespaces of what is left, which go after the test."""

    def __init__(self, request: pytest.FixtureRequest, stack: Stack) -> None:
        self._request, self._stack = request, stack

    def declare(self, name: str, bootstrap: Object) -> None:
        for kind, made in (("tablespace", name), ("pod", tools_name(name))):
            goes_in_the_end(self._request, self._stack.kubectl, kind, made)
        self._stack.kubectl.apply_all([tablespace(name, bootstrap={**bootstrap, "job": JOB})])

    def contents(self, name: str, bootstrap: Object) -> tuple[Contents, Object]:
        """What a tablespace has that is made so, and what its status tells of that."""
        self.declare(name, bootstrap)
        restore = wait_until_ready(self._stack.kubectl, name, say)["status"]["restore"]
        say(f"{name}: {restore}")
        tools = tools_of(self._stack, name)
        return contents(tools), restore


@pytest.fixture
def restored(request: pytest.FixtureRequest, stack: Stack) -> Restored:
    return Restored(request, stack)


def test_an_lsn_from_before_the_checkpoint_is_restored_from_the_archive_alone(left: Left, restored: Restored) -> None:
    archive = {**PLACE, "folder": left.folder}
    there, restore = restored.contents("as-of-lsn", {"archive": archive, "target": {"lsn": left.by_lsn}})
    assert there == left.at_lsn
    assert restore["lsn"] == left.by_lsn
    assert restore["manifest"].startswith(f"{left.folder}/manifests/")


def test_a_time_at_which_a_writer_went_on_is_restored_from_the_checkpoint_and_the_archive(left: Left, restored: Restored) -> None:
    files = {**PLACE, "manifest": left.manifest}
    target = {"timestamp": left.moment.isoformat(timespec="milliseconds")}
    there, restore = restored.contents("as-of-time", {"files": files, "archive": PLACE, "target": target})
    ids = sorted(int(json.loads(row)["id"]) for row in there.pop(GOING_ON))
    assert there == left.at_moment
    assert ids == list(range(len(ids))), "rows came one after the other"
    assert left.fewest <= len(ids) <= left.most
    assert datetime.fromisoformat(restore["lsnTimestamp"]) <= left.moment


def test_the_latest_moment_is_all_that_was_written(left: Left, restored: Restored) -> None:
    files = {**PLACE, "manifest": left.manifest}
    there, _ = restored.contents("as-of-latest", {"files": files, "archive": PLACE, "target": {"latest": True}})
    assert there == left.at_the_end


def test_a_moment_behind_the_archive_is_refused_with_what_there_is(stack: Stack, left: Left, restored: Restored) -> None:
    archive = {**PLACE, "folder": left.folder}
    restored.declare("beyond", {"archive": archive, "target": {"lsn": {"ledgerId": 4_000_000_000, "entryId": 0}}})

    def refused() -> str | Pending:
        ready = condition(stack.sql.get("tablespace", "beyond"), "Ready")
        return str(ready["message"]) if ready is not None and ready["reason"] == "RestoreFailed" else Pending(f"{ready}")

    message = wait_for("the refusal", refused, START, say)
    assert "spec.bootstrap.target.lsn (--to) is 4000000000,0: the archive ends with" in message
    assert "can be had" in message


def test_nothing_of_it_holds_up_what_comes_next(stack: Stack) -> None:
    stack.wait_until_ready()
