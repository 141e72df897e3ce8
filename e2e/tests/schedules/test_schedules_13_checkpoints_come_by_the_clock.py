"""While a writer writes, a schedule of each minute makes Checkpoints by itself, the second one from the first, and another one an audit
beside them. Each checkpoint has what the writer remembers of that time, and the window from which moments can be had grows with them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from conftest import Stack, say
from own_tablespace import OwnTablespace, pair
from runs import SMALL, claimed, status_of

from herdkeeper.shared.names import DUE_AT_ANNOTATION, REQUESTED_AT_ANNOTATION
from herdkeeper_e2e.history import wrong_between
from herdkeeper_e2e.kubectl import Object, resource
from herdkeeper_e2e.tools_pod import CHECKPOINTS
from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_e2e.writer_process import WriterProcess

NAME, TABLE, ROWS = "clocked", "written", 100
CHECKPOINTED, AUDITED = "clocked-checkpoints", "clocked-audits"
EACH_MINUTE = "*/1 * * * *"
LOG = {"archive": {"destination": claimed(f"{NAME}-files"), "everySeconds": 5}}
COMES = Limit(300, 0.5)
"""A time that comes while the run before it is not over is left out."""
MARKS = ("before the first", "after the first", "after the second")
IDS = """
import json, pathlib, sys
from herdkeeper_jobs.checkpoint.reading import open_manifest
print(json.dumps(open_manifest(pathlib.Path(sys.argv[1])).load(sys.argv[2]).column("id").to_pylist()))
"""


@pytest.fixture(scope="module")
def own(request: pytest.FixtureRequest, stack: Stack) -> OwnTablespace:
    return OwnTablespace.made(request, stack, NAME, LOG)


def declare_schedules(own: OwnTablespace) -> None:
    """Of checkpoints, and of light audits of all ledgers."""
    checkpoint = {"tablespaceRef": {"name": NAME}, "destination": own.destination, "mode": "Incremental", "job": SMALL}
    audit = {"bookKeeperRef": {"name": "bk"}, "depth": "Light", "job": SMALL}
    schedules = (("ScheduledCheckpoint", CHECKPOINTED, checkpoint), ("ScheduledReplicationAudit", AUDITED, audit))
    own.stack.kubectl.apply_all([resource(kind, name, schedule=EACH_MINUTE, template=made) for kind, name, made in schedules])


def runs(own: OwnTablespace, kind: str, schedule: str) -> list[Object]:
    """What a schedule has made, the oldest one first: names are of their times."""
    return own.stack.kubectl.list(kind, f"herdkeeper.io/owner-name={schedule}")


def run_of(own: OwnTablespace, kind: str, schedule: str, number: int) -> Object:
    """The so-many-th run of a schedule, counted from 0, as it was found when it was there."""

    def ask() -> Object | Pending:
        found = runs(own, kind, schedule)
        return found[number] if len(found) > number else Pending(f"{len(found)} {kind} of {schedule}")

    return wait_for(f"run {number} of {schedule}", ask, COMES, say)


def due_of(run: Object) -> datetime:
    """The whole minute for which a run was made, by nobody's asking and within that minute."""
    annotations = run["metadata"]["annotations"]
    assert REQUESTED_AT_ANNOTATION not in annotations
    due = datetime.fromisoformat(annotations[DUE_AT_ANNOTATION])
    created = datetime.fromisoformat(run["metadata"]["creationTimestamp"])
    say(f"{run['metadata']['name']} was due at {due}, and made at {created}")
    assert due.second == 0
    assert due <= created < due + timedelta(minutes=1)
    return due


def succeeded(own: OwnTablespace, run: Object) -> Object:
    """The status of a Checkpoint, compared with a follower."""
    status = own.status_of(run["metadata"]["name"])
    assert status["verified"].startswith("compared with follower")
    return status


def suspend(own: OwnTablespace, kind: str, schedule: str) -> None:
    """What was made goes on."""
    own.stack.kubectl.want(kind, schedule, suspend=True)


def ids_in(own: OwnTablespace, checkpoint: Object) -> list[int]:
    """The rows that a checkpoint has of the writer's table."""
    path = f"{CHECKPOINTS}/{checkpoint['manifest']}"
    found: list[int] = json.loads(own.tools.script(IDS, path, TABLE))
    return found


def window_beyond(own: OwnTablespace, *lsns: Object) -> Object:
    """The recovery window, once it ends behind these positions of the log."""

    def ask() -> Object | Pending:
        window = own.get()["status"].get("recoveryWindow")
        return dict(window) if window is not None and pair(window["toLsn"]) > max(map(pair, lsns)) else Pending(f"the window is {window}")

    return wait_for("the recovery window", ask, COMES, say)


def newest_verified(own: OwnTablespace, wanted: str) -> Object:
    """The status of the schedule of checkpoints, once it knows this one as the newest."""

    def ask() -> Object | Pending:
        status: Object = own.stack.sql.get("scheduledcheckpoint", CHECKPOINTED)["status"]
        return status if status.get("newestVerified") == wanted else Pending(f"{status}")

    return wait_for("the schedule to tell", ask, Limit(60, 0.5))


def removed(own: OwnTablespace) -> None:
    """The schedules are gone, and all that they have made."""
    kubectl = own.stack.kubectl
    for kind, schedule in (("scheduledcheckpoint", CHECKPOINTED), ("scheduledreplicationaudit", AUDITED)):
        kubectl.run("delete", kind, schedule)

    def ask() -> bool | Pending:
        left = [*runs(own, "checkpoints", CHECKPOINTED), *runs(own, "replicationaudits", AUDITED)]
        return Pending(f"{[run['metadata']['name'] for run in left]}") if left else True

    wait_for("the end of all runs", ask, Limit(300, 1), say)


def test_checkpoints_and_an_audit_come_by_the_clock_while_a_writer_writes(own: OwnTablespace) -> None:
    writer = WriterProcess(own.tools, TABLE).acknowledges(ROWS)
    writer.marked(MARKS[0])
    declared = datetime.now(UTC)
    declare_schedules(own)

    audit = run_of(own, "replicationaudits", AUDITED, 0)
    suspend(own, "scheduledreplicationaudit", AUDITED)
    assert due_of(audit) > declared
    first_run = run_of(own, "checkpoints", CHECKPOINTED, 0)
    due = due_of(first_run)
    assert due > declared
    first = succeeded(own, first_run)
    writer.marked(MARKS[1])
    window = window_beyond(own, first["lsn"])

    second_run = run_of(own, "checkpoints", CHECKPOINTED, 1)
    suspend(own, "scheduledcheckpoint", CHECKPOINTED)
    assert due_of(second_run) > due
    second = succeeded(own, second_run)
    writer.marked(MARKS[2])
    grown = window_beyond(own, second["lsn"], window["toLsn"])
    writer.stop()

    say(f"{window}, then {grown}")
    assert ("base" in first, second.get("base")) == (False, first["lsn"])
    assert pair(second["lsn"]) > pair(first["lsn"])
    assert (grown["from"], grown["fromLsn"]) == (window["from"], window["fromLsn"]), "nothing expires"
    assert datetime.fromisoformat(grown["to"]) > datetime.fromisoformat(second["lsnTimestamp"])
    schedule = newest_verified(own, second_run["metadata"]["name"])
    assert (schedule["verified"], "lastRequest" in schedule) == (2, False)

    events, of_first, of_second = writer.events(), ids_in(own, first), ids_in(own, second)
    say(f"{len(of_first)} rows, then {len(of_second)}")
    assert wrong_between(events, (MARKS[0], MARKS[1]), of_first) is None
    assert wrong_between(events, (MARKS[1], MARKS[2]), of_second) is None

    found = status_of(own.stack.kubectl, "replicationaudit", audit["metadata"]["name"])
    assert {finding["severity"] for finding in found.get("findings", [])} <= {"Pending"}, "the writer went on meanwhile"
    removed(own)
