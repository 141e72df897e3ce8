"""A tablespace is dropped, with its records, its log and its Checkpoints. Of a checkpoint's files and the archive of its log, on a volume,
three moments of it are made anew: each has what was recorded at that moment, and what was not archived is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import pytest
from conftest import START, Stack, goes_in_the_end, say
from own_tablespace import OwnTablespace, tablespace
from runs import SMALL, claimed

from herdkeeper_e2e.conditions import message_of
from herdkeeper_e2e.history import EventKind
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.tablespaces import wait_until_ready
from herdkeeper_e2e.tools_pod import Database, ToolsPod
from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_e2e.writer_process import WriterProcess, write_rows

NAME, CHECKPOINT = "recorded", "recorded-base"
FIRST, GOING_ON, NOTES, SHORT_LIVED = "written", "going_on", "notes", "short_lived"
ROWS = 200
PLACE = claimed(f"{NAME}-files")
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


def contents(tools: ToolsPod) -> Contents:
    """All rows of all tables of a tablespace."""
    tables = [str(row["table_name"]) for row in tools.query("SELECT * FROM systables") if row["systemtable"] == "false"]
    return {table: tools.rows(f"`{table}`") for table in tables}


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


def acknowledged_rows(writer: WriterProcess) -> int:
    """How many rows the history of a writer has, which goes on meanwhile."""
    events = writer.events()
    assert not any(event.kind is EventKind.UNKNOWN for event in events), "no row may be in doubt"
    return sum(event.kind is EventKind.ACKNOWLEDGED for event in events)


@pytest.fixture(scope="module")
def left(request: pytest.FixtureRequest, stack: Stack) -> Left:
    """What is left, once everything else is gone."""
    own = OwnTablespace.made(request, stack, NAME, {"archive": ARCHIVE})
    tools = own.tools

    create = "CREATE TABLE `{}` (`id` long, `word` string, PRIMARY KEY (`id`))"
    tools.run("query", create.format(NOTES), create.format(SHORT_LIVED), f"INSERT INTO `{NOTES}` (`id`, `word`) VALUES (1, 'first')")
    tools.run("query", f"INSERT INTO `{SHORT_LIVED}` (`id`, `word`) VALUES (7, 'gone soon')")
    write_rows(tools, FIRST, ROWS)
    at_lsn = contents(tools)
    by_lsn = archived_after(stack, datetime.now(UTC))["lsn"]

    tools.run("query", f"UPDATE `{NOTES}` SET `word` = 'second' WHERE `id` = 1", f"INSERT INTO `{NOTES}` (`id`, `word`) VALUES (2, 'x')")
    base = own.checkpoint(CHECKPOINT)
    own.switch_over()
    tools.run("query", f"DELETE FROM `{NOTES}` WHERE `id` = 2", f"DROP TABLE `{SHORT_LIVED}`")

    at_moment = contents(tools)
    writer = WriterProcess(tools, GOING_ON).acknowledges(ROWS)
    fewest = acknowledged_rows(writer)
    moment = datetime.now(UTC)
    most = acknowledged_rows(writer) + 1  # one may have been under way
    writer.acknowledges(ROWS)
    writer.stop()
    tools.run("query", f"DELETE FROM `{GOING_ON}` WHERE `id` < 10", f"UPDATE `{NOTES}` SET `word` = 'last' WHERE `id` = 1")
    at_the_end = contents(tools)
    say(f"{archived_after(stack, datetime.now(UTC))}")

    for kind, name in (("pod", tools.name), ("checkpoint", CHECKPOINT), ("tablespace", NAME)):
        stack.kubectl.run("delete", kind, name, timeout_seconds=600)
    return Left(base["manifest"], by_lsn, at_lsn, moment, at_moment, fewest, most, at_the_end)


class Restored:
    """Makes tablespaces of what is left, which go after the test."""

    def __init__(self, request: pytest.FixtureRequest, stack: Stack) -> None:
        self._request, self._stack = request, stack

    def declare(self, name: str, bootstrap: Object) -> None:
        for kind, named in (("tablespace", name), ("pod", f"{name}-tools")):
            goes_in_the_end(self._request, self._stack.kubectl, kind, named)
        self._stack.kubectl.apply(tablespace(name, bootstrap={**bootstrap, "job": SMALL}))

    def contents(self, name: str, bootstrap: Object) -> tuple[Contents, Object]:
        """What a tablespace has that is made so, and what its status tells of that."""
        self.declare(name, bootstrap)
        restore = wait_until_ready(self._stack.kubectl, name, say)["status"]["restore"]
        say(f"{name}: {restore}")
        database = Database.of(self._stack.kubectl, "db", "bk", name)
        return contents(ToolsPod(self._stack.kubectl, f"{name}-tools", database).start()), restore


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
    beyond = partial(stack.kubectl.get, "tablespace", "beyond")
    message = wait_for("the refusal", lambda: message_of(beyond(), "Ready", "RestoreFailed"), START, say)
    assert "spec.bootstrap.target.lsn (--to) is 4000000000,0: the archive ends with" in message
    assert "can be had" in message


def test_nothing_of_it_holds_up_what_comes_next(stack: Stack) -> None:
    stack.wait_until_ready()
