"""An audit whose window closes before it has read all: its Job ends, what it has read lies on the volume, and it is Paused until the window
opens. Then another Job goes on from there and reads none of that again, and what the run tells in the end is the whole.

A window opens once a day. So that two of them lie within minutes, the first one has been open for half an hour when the audit is declared,
and the hours are changed during the pause. Times are of one clock: the machines of the test cluster are containers of this one.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from conftest import Stack, goes_in_the_end, say
from own_tablespace import OwnTablespace
from runs import declare_audit, status_of

from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.spans import line_with
from herdkeeper_e2e.tools_pod import CHECKPOINTS
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

NAME = "paused"
AUDIT, UNDISTURBED = "audit-that-pauses", "audit-that-does-not"
WRITE_QUORUM = 3
WIDE_ROWS, WIDE_BYTES = 100, 60_000
"""In the first ledger: with its three copies more than 16 MiB, so that it is a portion by itself."""
SMALL_ROWS = 50
"""In the ledgers behind it."""
RATE, THREADS = "48Ki", 5
"""Bytes per second of a bookie. A bookie's share of the first ledger is cut into two tasks, which run at the same time with half of the
rate each; the first one has 4 MiB, and so takes 170 s."""
FIRST_CLOSES_AFTER = timedelta(seconds=100)
"""And a minute later at most, since windows have no seconds: the Job has begun to read by then, and can't have read the first ledger."""
OPENS_AGAIN_AFTER = timedelta(seconds=30)
"""And a minute later at most: the status has the new time before it comes."""
SHORTEST, DAY, MINUTE = timedelta(minutes=30), timedelta(days=1), timedelta(minutes=1)
PAUSE, SEEN = Limit(600, 1), Limit(60, 0.5)
READ_PROGRESS = f"""
import json, pathlib
from pyarrow import parquet
portions = sorted(pathlib.Path("{CHECKPOINTS}/audit_progress").glob("*/*.parquet"))
read = lambda path: json.loads(parquet.read_schema(path).metadata[b"herdkeeper.audit.portion"])
print(json.dumps([{{"run": path.parent.name, **read(path)}} for path in portions]))
"""
READ_RUNS = f"""
import json, pathlib
from pyarrow import parquet
runs = sorted(pathlib.Path("{CHECKPOINTS}/audit_runs").glob("*.parquet"))
print(json.dumps([row for path in runs for row in parquet.read_table(path).to_pylist()], default=str))
"""


@dataclass(frozen=True)
class Hours:
    """A window of the day, as the moments of its next, or present, time. Whole minutes, in UTC."""

    opens: datetime
    closes: datetime

    @staticmethod
    def closing_soon(now: datetime) -> Hours:
        """As short as one may be, and open now."""
        closes = full_minute(now + FIRST_CLOSES_AFTER)
        return Hours(closes - SHORTEST, closes)

    @staticmethod
    def opening_soon(now: datetime) -> Hours:
        """Of an hour."""
        opens = full_minute(now + OPENS_AGAIN_AFTER)
        return Hours(opens, opens + timedelta(hours=1))

    @property
    def spec(self) -> Object:
        """As `spec.window` has it; it may go over midnight."""
        return {"from": f"{self.opens:%H:%M}", "to": f"{self.closes:%H:%M}", "timeZone": "UTC"}


def full_minute(moment: datetime) -> datetime:
    """The first one at or after a moment."""
    down = moment.replace(second=0, microsecond=0)
    return down if down == moment else down + MINUTE


def shown(moment: datetime) -> str:
    """As a status has it."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def moment_of(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.fixture(scope="module")
def own(request: pytest.FixtureRequest, stack: Stack) -> OwnTablespace:
    """A large ledger and a small one behind it are closed; its volume is the audits' destination."""
    goes_in_the_end(request, stack.kubectl, "replicationaudits", "-l", f"scenario={NAME}")
    own = OwnTablespace.made(request, stack, NAME)
    own.tools.run("wide_rows", "--table", "wide", "--rows", str(WIDE_ROWS), "--bytes", str(WIDE_BYTES))
    own.switch_over()
    own.wait_until_ready()
    own.write_some_rows("written", SMALL_ROWS)
    own.switch_over()
    own.wait_until_ready()
    return own


def declare(own: OwnTablespace, name: str, **spec: object) -> None:
    """A deep audit of the tablespace's closed ledgers."""
    closed = {"states": ["Closed"], "tablespaces": [{"herdDBRef": {"name": "db"}, "name": NAME}]}
    wanted = {"filter": closed, "destination": own.destination, **spec}
    declare_audit(own.stack.kubectl, name, {"localThreads": THREADS}, {"scenario": NAME}, **wanted)


def ended_well(own: OwnTablespace, name: str) -> Object:
    """The status of an audit, once it has succeeded."""
    return status_of(own.stack.kubectl, "replicationaudit", name)


def paused(own: OwnTablespace, limit: Limit, resumes_at: datetime) -> Object:
    """The status of the audit, once it is Paused and goes on at that moment. It can't have ended before."""

    def ask() -> Object | Pending:
        status: Object = own.stack.sql.get("replicationaudit", AUDIT).get("status", {})
        phase = status.get("phase")
        assert phase not in ("Succeeded", "Failed"), status
        due = phase == "Paused" and status["resumesAt"] == shown(resumes_at)
        return status if due else Pending(f"{phase}: {status.get('message')}")

    return wait_for(f"a pause until {shown(resumes_at)}", ask, limit, say)


def only_job(own: OwnTablespace) -> Object:
    """The audit's Job; there is one at a time."""
    (job,) = own.stack.kubectl.list("jobs", f"herdkeeper.io/owner-name={AUDIT}")
    return job


def pod_of(own: OwnTablespace, job: Object) -> Object:
    """The only one that a Job has started."""
    (pod,) = own.stack.kubectl.list("pods", f"batch.kubernetes.io/controller-uid={job['metadata']['uid']}")
    return pod


def log_of(own: OwnTablespace, job: Object) -> list[str]:
    """What the driver of a Job has written."""
    return own.stack.kubectl.run("logs", pod_of(own, job)["metadata"]["name"]).splitlines()


def planned(log: list[str], what: str) -> list[int]:
    """How many ledgers, or copies, each portion has that a Job began to read."""
    return [int(found[1]) for line in log if "planned" in line and (found := re.search(rf"\b{what}=(\d+)", line))]


def told(own: OwnTablespace, program: str) -> list[dict[str, Any]]:
    """What a program prints that reads the volume."""
    found: list[dict[str, Any]] = json.loads(own.tools.script(program))
    return found


def require_all_verified(status: Object) -> None:
    assert status["findingsTotal"] == 0, status.get("findings")
    assert status["replicas"] == WRITE_QUORUM * status["entries"]


def test_an_audit_that_its_window_ends_goes_on_in_the_next_one_from_where_it_was(own: OwnTablespace) -> None:
    first = Hours.closing_soon(datetime.now(UTC))
    declare(own, AUDIT, window=first.spec, bytesPerSecondPerBookie=RATE)
    so_far = paused(own, PAUSE, first.opens + DAY)
    say(f"{so_far['message']}")
    run = own.stack.sql.get("replicationaudit", AUDIT)["metadata"]["uid"]

    job = only_job(own)
    log = log_of(own, job)
    assert pod_of(own, job)["status"]["phase"] == "Succeeded", "a pause needs no pod"
    assert moment_of(job["status"]["startTime"]) < first.closes <= moment_of(job["status"]["completionTime"])
    assert so_far["message"].startswith("paused; so far ")
    assert "completedAt" not in so_far
    require_all_verified(so_far)
    portions = told(own, READ_PROGRESS)
    assert [portion["run"] for portion in portions] == [run]
    assert (portions[0]["ledgers"], portions[0]["entries"]) == (so_far["ledgers"], so_far["entries"])
    assert so_far["entries"] >= WIDE_ROWS
    assert planned(log, "copies") == [WRITE_QUORUM * so_far["entries"]], "it began what it could not end"
    assert told(own, READ_RUNS) == [], "a run that is not over is in no table"

    second = Hours.opening_soon(datetime.now(UTC))
    own.stack.kubectl.want("replicationaudit", AUDIT, window=second.spec)
    still = paused(own, SEEN, second.opens)
    assert {name: still[name] for name in ("ledgers", "entries", "job")} == {name: so_far[name] for name in ("ledgers", "entries", "job")}

    whole = ended_well(own, AUDIT)
    next_job = only_job(own)
    assert next_job["metadata"]["uid"] != job["metadata"]["uid"]
    assert moment_of(next_job["metadata"]["creationTimestamp"]) >= second.opens
    next_log = log_of(own, next_job)
    assert re.search(r"\bportions=1\b", line_with(next_log, "going on"))
    assert sum(planned(next_log, "ledgers")) == whole["ledgers"] - so_far["ledgers"] > 0
    assert sum(planned(next_log, "copies")) == WRITE_QUORUM * (whole["entries"] - so_far["entries"]) > 0, "it read something again"
    require_all_verified(whole)
    assert whole["entries"] - so_far["entries"] >= SMALL_ROWS
    assert "resumesAt" not in whole

    assert told(own, READ_PROGRESS) == []
    assert [told_run["run_id"] for told_run in told(own, READ_RUNS)] == [run]
    require_as_one_that_was_not_disturbed(own, whole)


def require_as_one_that_was_not_disturbed(own: OwnTablespace, whole: Object) -> None:
    """An audit of the same ledgers without a window, and as fast as it can, finds what the paused one has found."""
    declare(own, UNDISTURBED)
    plain = ended_well(own, UNDISTURBED)
    same = ("ledgers", "entries", "replicas", "findingsTotal")
    assert {name: whole[name] for name in same} == {name: plain[name] for name in same}
