"""Which runs of a schedule have expired: only what is known to be of no use any more."""

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
    """The runs that the schedule no longer asks for, of those that are over. One that somebody has deleted takes nobody's place: what is
    kept must still be there once it is gone. `needed` are names of verified checkpoints that somebody else needs."""
    runs = tuple(run for run in runs if not run.going)
    failed = expired_by_number(runs, "Failed", schedule.spec.failed_history_limit)
    match schedule:
        case ScheduledCheckpoint():
            expired = expired_checkpoints(runs, schedule.spec.retention, now)
            return (*(run for run in expired if run.name not in needed), *failed)
        case ScheduledReplicationAudit():
            return (*expired_by_number(runs, "Succeeded", schedule.spec.successful_history_limit), *failed)


def expired_checkpoints(runs: Iterable[Run], retention: Retention, now: datetime.datetime) -> tuple[Run, ...]:
    """The verified checkpoints that no field of the retention asks for; the newest verified one of a log is never among them. What is made
    of another log under the same names (a cluster that was made anew, a tablespace that was restored) does not stand for it.

    One whose verification or end is not known stays: it may be the only good one.
    """
    verified = sorted(
        ((run.completed, run.name, run) for run in runs if run.verified and run.completed is not None), key=lambda entry: entry[:2]
    )
    kept = {name for _, name, _ in verified[-max(1, retention.keep_last) :]}
    kept |= set({run.log: name for _, name, run in verified}.values())
    # The log's pin follows the highest LSN, so that one must stay, too, though a clock that was set back says that it ended before others.
    further = sorted(((run.lsn, name, run.log) for _, name, run in verified if run.lsn is not None), key=lambda entry: entry[:2])
    kept |= set({log: name for _, name, log in further}.values())
    if retention.keep_within is not None:
        begin = now - duration_of(retention.keep_within)
        kept |= {name for completed, name, _ in verified if completed > begin}
        # What a checkpoint holds is not newer than its end: this one surely lies before the window, whose first moments follow on it.
        kept |= {name for _, name, _ in [entry for entry in verified if entry[0] <= begin][-1:]}
    return tuple(run for _, name, run in verified if name not in kept)


def expired_by_number(runs: Iterable[Run], phase: Phase, limit: int) -> tuple[Run, ...]:
    """The runs that ended in this phase, but for the newest `limit` of them."""
    ended = sorted((run for run in runs if run.phase == phase), key=lambda run: (run.due, run.name))
    return tuple(ended[: max(0, len(ended) - limit)])
