"""Checkpoints of a schedule are restored by themselves into servers that are thrown away: one that is whole, one that somebody damaged, and
a moment of the archive. Nothing of a drill is left, and the live tablespace has what it had."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from conftest import Stack, goes_in_the_end, say
from own_tablespace import OwnTablespace
from runs import SMALL, claimed, run_asked_for

from herdkeeper_e2e.conditions import condition, not_ready_reason
from herdkeeper_e2e.jobs import wait_until_succeeded
from herdkeeper_e2e.kubectl import Object, resource
from herdkeeper_e2e.tools_pod import CHECKPOINTS, ToolsPod
from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_e2e.writer_process import write_rows

NAME, TABLESPACE, TABLE = "drilled-yearly", "drilled", "written"
ROWS = 200
END = Limit(1500, 2)
DESTINATION = claimed(f"{TABLESPACE}-files")
DRILL = {"server": {"resources": {"cpu": "100m", "memory": "768Mi"}, "storage": {"size": "1Gi"}}, "job": SMALL}
MADE_FOR_DRILLS = f"herdkeeper.io/owner-name={NAME},app.kubernetes.io/name=restore-drill"
RUNS = f"herdkeeper.io/owner-name={NAME},app.kubernetes.io/name=checkpoint"
DAMAGE = """
import pathlib, sys
path = pathlib.Path(sys.argv[1])
content = bytearray(path.read_bytes())
content[len(content) // 2] ^= 1
path.chmod(0o644)
path.write_bytes(content)
"""


@pytest.fixture(scope="module")
def tools(request: pytest.FixtureRequest, stack: Stack) -> ToolsPod:
    """Where SQL is spoken to a tablespace of its own, and its volume of checkpoints is mounted. The times of its schedule don't come: runs
    are asked for."""
    own = OwnTablespace.made(request, stack, TABLESPACE)
    goes_in_the_end(request, stack.kubectl, "scheduledcheckpoint", NAME)
    template = {"tablespaceRef": {"name": TABLESPACE}, "destination": DESTINATION, "deletionPolicy": "Delete", "job": SMALL}
    stack.kubectl.apply(resource("ScheduledCheckpoint", NAME, schedule="0 0 1 1 *", retention={"keepLast": 1}, template=template))
    return own.tools


def live(tools: ToolsPod) -> tuple[int, list[str]]:
    """How many rows the tablespace has, and which tables."""
    (counted,) = tools.query(f"SELECT COUNT(*) AS found FROM {TABLE}")
    return int(counted["found"]), sorted(str(row["table_name"]) for row in tools.query("SELECT * FROM systables"))


def drilled(stack: Stack) -> Object:
    """The schedule, when a drill of a minute that is about to come has ended."""
    at = (datetime.now(UTC) + timedelta(minutes=2)).replace(second=0, microsecond=0)
    stack.kubectl.want("scheduledcheckpoint", NAME, drill={**DRILL, "schedule": f"{at.minute} {at.hour} {at.day} {at.month} *"})

    def ask() -> Object | Pending:
        schedule = stack.sql.get("scheduledcheckpoint", NAME)
        drill = schedule.get("status", {}).get("lastDrill", {})
        if drill.get("scheduledTime") is None or datetime.fromisoformat(drill["scheduledTime"]) != at:
            return Pending(f"nothing is drawn for {at} yet")
        return schedule if drill["outcome"] != "Running" else Pending(f"{drill['checkpoint']}: {drill['message']}")

    schedule = wait_for("the end of the drill", ask, END, say)
    say(f"{schedule['status']['lastDrill']}")
    return schedule


def told(schedule: Object) -> tuple[str, str]:
    """What the condition of drills says."""
    entry = condition(schedule, "RestoreDrilled")
    assert entry is not None
    return entry["status"], entry["reason"]


def test_a_checkpoint_of_the_schedule_is_restored_whole_and_the_live_tablespace_is_not_touched(stack: Stack, tools: ToolsPod) -> None:
    write_rows(tools, TABLE, ROWS)
    run = wait_until_succeeded(stack.kubectl, "checkpoint", run_asked_for(stack, NAME), say)
    before = live(tools)
    schedule = drilled(stack)
    drill = schedule["status"]["lastDrill"]
    assert (drill["outcome"], drill["checkpoint"]) == ("Succeeded", run["metadata"]["name"]), drill["message"]
    assert (drill["rows"], drill["lsn"], drill["moment"]) == tuple(run["status"][name] for name in ("rows", "lsn", "lsnTimestamp"))
    assert drill["rows"] >= ROWS
    assert told(schedule) == ("True", "Drilled")
    assert live(tools) == before
    (job,) = stack.kubectl.list("jobs", MADE_FOR_DRILLS)
    assert job["metadata"]["name"] == drill["job"]


def test_a_checkpoint_that_somebody_damaged_is_told_of_before_it_is_needed(stack: Stack, tools: ToolsPod) -> None:
    (run,) = stack.kubectl.list("checkpoints", RUNS)
    manifest = run["status"]["manifest"]
    tables = json.loads(stack.kubectl.exec(tools.name, "cat", f"{CHECKPOINTS}/{manifest}"))["tables"]
    file = next(file["path"] for table in tables for file in table["files"])
    tools.script(DAMAGE, f"{CHECKPOINTS}/{manifest.split('/manifests/')[0]}/{file}")
    schedule = drilled(stack)
    drill = schedule["status"]["lastDrill"]
    assert drill["outcome"] == "Failed"
    assert "has other bytes than the checkpoint wrote" in drill["message"]
    assert drill["lastSuccessfulTime"] < drill["completedAt"]
    assert told(schedule) == ("False", "DrillFailed")
    assert not_ready_reason(schedule) is not None


def test_a_moment_of_the_archive_is_made_restored_and_taken_away(stack: Stack, tools: ToolsPod) -> None:
    stack.kubectl.want("tablespace", TABLESPACE, log={"archive": {"destination": DESTINATION, "everySeconds": 5}})
    write_rows(tools, f"{TABLE}_later", ROWS)
    later = datetime.now(UTC)

    def archived() -> Object | Pending:
        status = stack.sql.get("tablespace", TABLESPACE)["status"]
        current, window = status.get("archive", {}).get("currentAt"), status.get("recoveryWindow")
        if current is None or window is None or datetime.fromisoformat(current) <= later:
            return Pending(f"archived up to {current}, window {window}")
        return dict(window)

    window = wait_for("the archive", archived, Limit(300, 1), say)
    before = live(tools)
    schedule = drilled(stack)
    drill = schedule["status"]["lastDrill"]
    assert drill["outcome"] == "Succeeded", drill["message"]
    assert drill["checkpoint"].endswith("-d")
    assert datetime.fromisoformat(window["from"]) <= datetime.fromisoformat(drill["moment"]) <= datetime.now(UTC)
    assert told(schedule) == ("True", "Drilled")
    assert live(tools) == before

    def gone() -> bool | Pending:
        left = stack.kubectl.list("checkpoints", MADE_FOR_DRILLS)
        return Pending(f"{left[0].get('status', {}).get('message')}") if left else True

    wait_for("the end of the Checkpoint that was made for it", gone, Limit(600, 1), say)


@pytest.mark.usefixtures("tools")
def test_a_schedule_that_is_deleted_leaves_nothing_of_its_drills(stack: Stack) -> None:
    stack.kubectl.run("delete", "scheduledcheckpoint", NAME)

    def gone() -> bool | Pending:
        left = stack.kubectl.list("jobs,pods,checkpoints", f"herdkeeper.io/owner-name={NAME}")
        return Pending(", ".join(each["metadata"]["name"] for each in left)) if left else True

    wait_for("the end of all that was made", gone, Limit(600, 1), say)
    stack.kubectl.run("delete", "tablespace", TABLESPACE, timeout_seconds=600)
    stack.wait_until_ready()
