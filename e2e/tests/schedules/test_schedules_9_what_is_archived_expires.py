"""With a window of a minute the oldest segments of an archive go as soon as a checkpoint is as old as that, and only those which it makes
useless: what is left has no gap, and moments from the beginning of the window to its end are made of it and of the checkpoint's files.
Who makes them is told of nothing else: neither the tablespace nor its log is asked, though both are there."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from conftest import Stack, say
from own_tablespace import OwnTablespace, pair, rows_in
from runs import claimed, files_of, of_ledgers, rows_of_tables

from herdkeeper_e2e.history import wrong_between
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.tools_pod import CHECKPOINTS
from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_e2e.writer_process import WriterProcess

NAME, TABLE = "kept", "written"
ROWS = 100
LEAST_SEGMENTS = 3
"""Before the checkpoint from which the archive is kept: there is something to go, and more than the oldest one."""
WITHIN = "1m"
LOG = {"archive": {"destination": claimed(f"{NAME}-files"), "everySeconds": 5, "retention": {"keepWithin": WITHIN}}}
ARCHIVING, EXPIRY = Limit(300, 1), Limit(600, 2)
MARKS = ("before the moment", "after the moment")


@pytest.fixture(scope="module")
def own(request: pytest.FixtureRequest, stack: Stack) -> OwnTablespace:
    return OwnTablespace.made(request, stack, NAME, LOG)


def archive(own: OwnTablespace) -> dict[str, Any]:
    """What the archive has, read from its files beside the ledgers' metadata."""
    found: dict[str, Any] = of_ledgers(own.stack, "archived_log", own.tools)
    return found


def archived(own: OwnTablespace, position: Object) -> dict[str, Any]:
    """The same, once the archive has a position of the log, and some segments."""

    def ask() -> dict[str, Any] | Pending:
        status = own.get()["status"].get("archive", {})
        if "lsn" not in status or pair(status["lsn"]) < pair(position):
            return Pending(f"archived up to {status.get('lsn')}")
        found = archive(own)
        return found if found["segments"] >= LEAST_SEGMENTS else Pending(f"{found['segments']} segments")

    return wait_for("the archive", ask, ARCHIVING, say)


def expired(own: OwnTablespace, first: tuple[int, int], written: Object) -> Object:
    """The status, once the archive begins behind where it began first, and has all up to the position `written`."""

    def ask() -> Object | Pending:
        status: Object = own.get()["status"]
        if pair(status["archive"]["lsn"]) < pair(written):
            return Pending(f"archived up to {status['archive']['lsn']}")
        return status if pair(status["archive"]["firstLsn"]) > first else Pending(status["archive"].get("expiry", "nothing is said"))

    return wait_for("the end of what is old", ask, EXPIRY, say)


def gone(own: OwnTablespace, first: Object) -> None:
    """Comes back when the archive begins with an entry on the volume, too, and has a file for each of its segments and no other one."""
    begin = f"{first['ledgerId']:020d}-{first['entryId']:020d}.json"

    def ask() -> bool | Pending:
        found = [path.rpartition("/")[2] for path in files_of(own.tools, CHECKPOINTS) if path.split("/")[2:3] == ["log"]]
        segments, data = sorted(name for name in found if name.endswith(".json")), [name for name in found if name.endswith(".parquet")]
        whole = segments[:1] == [begin] and len(data) == len(segments) and len(found) == len(data) + len(segments)
        return True if whole else Pending(f"{len(segments)} segments from {segments[:1]} on, and {len(found)} files in all")

    wait_for("the end of the files of what is old", ask, Limit(60, 1), say)


def test_what_is_older_than_the_window_goes_and_each_moment_of_the_window_can_be_had(own: OwnTablespace) -> None:
    writer = WriterProcess(own.tools, TABLE).acknowledges(ROWS)
    before = archived(own, own.log_position())
    assert own.get()["status"]["archive"]["expiry"].startswith("nothing expires: ")
    base = own.checkpoint("base")
    writer.marked(MARKS[0])
    moment = datetime.now(UTC)
    writer.marked(MARKS[1])
    writer.acknowledges(ROWS)
    writer.stop()

    status = expired(own, (before["first"][0], before["first"][1]), own.log_position())
    say(f"{status['archive']['expiry']}")
    assert status["archive"]["expiry"].startswith("kept from LSN ")
    assert "for the Checkpoint base " in status["archive"]["expiry"]
    assert status["recoveryWindow"]["fromLsn"] == base["lsn"]
    gone(own, status["archive"]["firstLsn"])
    found = archive(own)
    say(f"{before}\n{found}")
    assert found["wrong"] == []
    # the checkpoint is gone on from in the oldest segment: every older one has gone, and no other one
    assert tuple(found["first"]) <= pair(base["restartLsn"]) <= tuple(found["first_segment_ends"])
    assert tuple(found["last"]) >= tuple(before["last"])

    def rows_at(name: str, **target: object) -> list[int]:
        """What there was at a moment, made of files."""
        files = {**own.destination, "manifest": base["manifest"]}
        rows = own.rows_made_anew(f"{NAME}-{name}", TABLE, files=files, archive=own.destination, target=target)
        say(f"{name}: {len(rows)} rows at {target}")
        return rows

    of_the_base = rows_of_tables(base)[TABLE]
    at_first = len(rows_at("begin", lsn={**base["lsn"], "entryId": base["lsn"]["entryId"] + 1}))
    assert of_the_base <= at_first <= of_the_base + 1, "one entry is behind the checkpoint, which may be of a row"
    assert wrong_between(writer.events(), MARKS, rows_at("middle", timestamp=moment.isoformat(timespec="milliseconds"))) is None
    assert rows_at("end", lsn=status["recoveryWindow"]["toLsn"]) == rows_in(own.tools, TABLE)
