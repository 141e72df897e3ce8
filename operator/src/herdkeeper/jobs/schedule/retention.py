"""Which runs of a schedule have expired: only those that are certainly useless."""

from __future__ import annotations

import datetime
from collections.abc import Iterable

from herdkeeper.api import ScheduledCheckpoint, ScheduledReplicationAudit
from herdkeeper.api.job import Phase
from herdkeeper.api.scheduled_checkpoint import Retention
from herdkeeper.jobs.schedule.state import Run
from herdkeeper.shared.timetable import duration_of


def expired_runs(
    schedule: ScheduledCheckpoint | ScheduledReplicationAudit,
    runs: tuple[Run, ...],
    now: datetime.datetime,
    needed: frozenset[str] = frozenset(),
) -> tuple[Run, ...]:
    """Returns finished runs that are no longer kept. One that is being deleted is not kept. `needed`: Checkpoints that others need."""
    runs = tuple(run for run in runs if not run.going)
    failed = expired_by_number(runs, "Failed", schedule.spec.failed_history_limit)
    match schedule:
        case ScheduledCheckpoint():
            expired = expired_checkpoints(runs, schedule.spec.retention, now)
            return (*(run for run in expired if run.name not in needed), *failed)
        case ScheduledReplicationAudit():
            return (*expired_by_number(runs, "Succeeded", schedule.spec.successful_history_limit), *failed)


def expired_checkpoints(runs: Iterable[Run], retention: Retention, now: datetime.datetime) -> tuple[Run, ...]:
    """Returns the verified checkpoints that no field of the retention keeps. Of each log these always stay: the newest one, the newest
    proven one, and the newest one that can be restored.

    A checkpoint of another log under the same names (a recreated cluster, a restored tablespace) does not replace it. One with an unknown
    verification or end stays: it may be the only good one.
    """
    verified = sorted(
        ((run.completed, run.name, run) for run in runs if run.verified and run.completed is not None), key=lambda entry: entry[:2]
    )
    # One of a time that has not come was made while a clock was ahead: it replaces none of the last ones.
    kept = {name for completed, name, _ in verified if completed > now}
    kept |= {name for _, name, _ in [entry for entry in verified if entry[0] <= now][-max(1, retention.keep_last) :]}
    for candidates in (verified, [entry for entry in verified if entry[2].restorable]):
        kept |= set({run.log: name for _, name, run in candidates}.values())
    # The log's pin follows the highest proven LSN, so that checkpoint must stay, too. A clock that was set back may make it look older, and
    # newer ones may only have reread their files.
    further = sorted(((run.lsn, name, run) for _, name, run in verified if run.lsn is not None), key=lambda entry: entry[:2])
    for reaching in (further, [entry for entry in further if entry[2].proven]):
        kept |= set({run.log: name for _, name, run in reaching}.values())
    if retention.keep_within is not None and verified:
        # Back from the newest one: a clock that is ahead expires nothing, nor does time alone while no Checkpoint succeeds.
        begin = min(now, verified[-1][0]) - duration_of(retention.keep_within)
        kept |= {name for completed, name, _ in verified if completed > begin}
        # A checkpoint's content is not newer than its end, so this one is certainly from before the window, whose first moments build on
        # it.
        kept |= {name for _, name, _ in [entry for entry in verified if entry[0] <= begin][-1:]}
    return tuple(run for _, name, run in verified if name not in kept)


def expired_by_number(runs: Iterable[Run], phase: Phase, limit: int) -> tuple[Run, ...]:
    """Returns the runs that ended in this phase, except the newest `limit`."""
    ended = sorted((run for run in runs if run.phase == phase), key=lambda run: run.ended)
    return tuple(ended[: max(0, len(ended) - limit)])
