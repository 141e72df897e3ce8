"""Refuses invalid Checkpoints, audits and schedules."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from herdkeeper.api import Checkpoint, ReplicationAudit, ScheduledCheckpoint, ScheduledReplicationAudit, Tablespace
from herdkeeper.api.replication_audit import Window
from herdkeeper.jobs.audit.state import described, window_of
from herdkeeper.planning.refusal import Refusal, name_refusals, timetable_refusals, unknown_time_zone
from herdkeeper.shared.time import UnknownTimeZoneError

SHORTEST_WINDOW = datetime.timedelta(minutes=30)
"""A Job starts and finds its position before it reads. In a shorter window it would do only that, day after day."""


def checkpoint_refusals(checkpoint: Checkpoint, tablespace: Tablespace | None) -> tuple[Refusal, ...]:
    """Returns what is invalid in a Checkpoint, given the Tablespace that it refers to (or None)."""
    return () if _has_begun(checkpoint) else (*name_refusals(checkpoint.spec), *_no_follower(checkpoint, tablespace))


def _no_follower(checkpoint: Checkpoint, tablespace: Tablespace | None) -> Iterator[Refusal]:
    if tablespace is not None and checkpoint.spec.verify == "Follower" and tablespace.spec.replicas == 1:
        problem = f"the Tablespace {tablespace.metadata.name} has one replica, so there is no follower to compare with"
        fix = "create a Checkpoint with verify: Reread, or raise the Tablespace's replicas to 2"
        yield Refusal("spec.verify", "Follower", problem, fix)


def audit_refusals(audit: ReplicationAudit) -> tuple[Refusal, ...]:
    """Returns what is invalid in a ReplicationAudit. Changed hours of a finished one don't matter: its result stays."""
    names = name_refusals(audit.spec)
    return () if audit.is_over else (*(names if not _has_begun(audit) else ()), *_window_refusals(audit.spec.window, "spec.window"))


def _has_begun(run: Checkpoint | ReplicationAudit) -> bool:
    """Returns whether a run has a Job, or had one: then its end is reported, for which its schedule may wait."""
    return run.is_over or (run.status is not None and run.status.job is not None)


def schedule_refusals(schedule: ScheduledCheckpoint | ScheduledReplicationAudit) -> tuple[Refusal, ...]:
    """Returns what is invalid in a schedule. What depends on other resources is refused for each run."""
    of_both = (*name_refusals(schedule.spec), *timetable_refusals(schedule.spec, "spec"))
    match schedule:
        case ScheduledCheckpoint():
            return of_both if schedule.spec.drill is None else (*of_both, *timetable_refusals(schedule.spec.drill, "spec.drill"))
        case ScheduledReplicationAudit():
            return (*of_both, *_window_refusals(schedule.spec.template.window, "spec.template.window"))


def _window_refusals(window: Window | None, path: str) -> Iterator[Refusal]:
    if window is None:
        return
    try:
        open_for = window_of(window).by_the_clock
    except UnknownTimeZoneError:
        yield unknown_time_zone(f"{path}.timeZone", window.time_zone)
        return
    if open_for < SHORTEST_WINDOW:
        minutes = SHORTEST_WINDOW // datetime.timedelta(minutes=1)
        problem = f"a run whose Job starts in it can read little or nothing in less than {minutes} minutes"
        yield Refusal(path, described(window), problem, f"let it close at least {minutes} minutes after it opens, or remove it")
