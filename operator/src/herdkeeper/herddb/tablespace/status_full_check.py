"""The full check in a Tablespace's status: its result, its schedule, and what a person must know about a failed replica or a
missed time.
"""

from __future__ import annotations

from typing import Any

from herdkeeper.api.tablespace import FullCheckStatus, FullCheckTimes
from herdkeeper.herddb.tablespace.full_check import declared_times, newest_check, remembered_times, timing_of
from herdkeeper.herddb.tablespace.plan_full_check import DeferredCheck, StartedCheck, decide_check
from herdkeeper.herddb.tablespace.state import TablespaceObserved
from herdkeeper.planning.due import Missed, timetable_of
from herdkeeper.shared import names
from herdkeeper.shared.time import text_of

NOTE = (
    "a follower that failed can't lead. It is not removed, because the leader may be wrong: a Checkpoint with verify: Follower shows "
    "whether it matches the log"
)


def full_check_fields(seen: TablespaceObserved) -> dict[str, Any] | None:
    """Returns status.fullCheck; None if no check was requested, reported or scheduled. Known results stay while nothing can be read."""
    tablespace = seen.tablespace
    answer = tablespace.metadata.annotations.get(names.FULL_CHECK_ANSWER_ANNOTATION)
    before = tablespace.status.full_check if tablespace.status is not None else None
    check = newest_check(tablespace, seen.nodes, seen.known_record) if seen.known_record is not None else None
    found = (check or before or FullCheckStatus()).document()
    kept = {name: value for name, value in found.items() if name not in ("lastRequest", "note", "schedule")}
    told = {"lastRequest": answer} if answer is not None else {}
    note = {"note": NOTE} if any(replica["verdict"] == "Failed" for replica in kept.get("replicas", ())) else {}
    times = _times(seen)
    fields = {**told, **kept, **note, **({"schedule": times} if times is not None else {})}
    return fields if any(value != [] for value in fields.values()) else None


def _times(seen: TablespaceObserved) -> dict[str, Any] | None:
    """Returns the state of the schedule's times. A check's time is written with its first report, so that neither is lost alone."""
    timing = timing_of(seen.tablespace)
    if timing is None:
        return None
    before = remembered_times(seen.tablespace) or FullCheckTimes(declared=declared_times(timing), since=text_of(seen.now))
    decision = decide_check(seen)
    following = None if timing.suspend else timetable_of(timing).after(seen.now)
    times = FullCheckTimes(
        declared=before.declared,
        since=before.since,
        last_schedule_time=text_of(decision.due) if isinstance(decision, StartedCheck) else before.last_schedule_time,
        next_schedule_time=text_of(following) if following is not None else None,
        waits_for=decision.why if isinstance(decision, DeferredCheck) else None,
        last_missed_time=text_of(decision.due) if isinstance(decision, Missed) else before.last_missed_time,
        last_missed_why=decision.why if isinstance(decision, Missed) else before.last_missed_why,
    )
    return times.document()


def newly_missed(before: dict[str, Any] | None, after: dict[str, Any] | None) -> str | None:
    """Returns a sentence about a time that was skipped since the last write of the status; both arguments are status.fullCheck."""
    was, times = (before or {}).get("schedule", {}), (after or {}).get("schedule", {})
    if (missed := times.get("lastMissedTime")) is None or missed == was.get("lastMissedTime"):
        return None
    return f"no full check was started for {missed}, since {times['lastMissedWhy']}"


def newly_failed(before: dict[str, Any] | None, after: dict[str, Any] | None) -> tuple[str, ...]:
    """Returns a sentence for each replica that failed the check since the last write of the status; both arguments are status.fullCheck."""
    if after is None:
        return ()
    same = before is not None and before.get("startedAt") == after.get("startedAt")
    known = [_failure(replica) for replica in before.get("replicas", ())] if same and before is not None else []
    failed = [replica for replica in after.get("replicas", ()) if _failure(replica) is not None]
    return tuple(_sentence(replica, after) for replica in failed if _failure(replica) not in known)


def _failure(replica: dict[str, Any]) -> tuple[str, tuple[str, ...]] | None:
    return (replica["node"], tuple(replica.get("differentTables", ()))) if replica["verdict"] == "Failed" else None


def _sentence(replica: dict[str, Any], check: dict[str, Any]) -> str:
    node, tables = replica["node"], ", ".join(replica.get("differentTables", ()))
    passed = [other["node"] for other in check["replicas"] if other["verdict"] == "Passed"]
    others = f"{', '.join(passed)} passed" if passed else "no other follower has passed"
    return (
        f"{node} had other rows than the leader {check['leader']} in {tables} at the full check of {check['startedAt']}; {others}. "
        f"Note that {NOTE}. Create one: a replica that differs from the log is rebuilt. If it equals the log, the leader's rows are "
        "in doubt"
    )
