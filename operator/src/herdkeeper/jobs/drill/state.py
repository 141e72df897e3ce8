"""A ScheduledCheckpoint: its restore drills as observed, and what follows from them and from what is declared."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from herdkeeper.api import Checkpoint, HerdDBCluster, ScheduledCheckpoint, Tablespace
from herdkeeper.api.restore_drill import DrillStatus
from herdkeeper.api.tablespace import RecoveryWindow
from herdkeeper.herddb.log.archive_expiry import needed_by_archive
from herdkeeper.herddb.log.checkpoint_base import bases, is_made_for_a_drill
from herdkeeper.herddb.log.identity import NOT_LOOKED_AT, log_of
from herdkeeper.jobs.schedule.state import Run, RunSeries
from herdkeeper.planning.due import newest_time
from herdkeeper.shared import names
from herdkeeper.shared.objects import Objects, ended_in, pods_of_job
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.time import moment_of, text_of
from herdkeeper.shared.unknown import Unknown
from herdkeeper.spark.build_throwaway_server import SERVER


@dataclass(frozen=True)
class Drawn:
    """The Checkpoint that a drill restores, and its moment if known. One of a moment of the recovery window is made for the drill."""

    name: str
    moment: str | None


@dataclass(frozen=True)
class NothingToDraw:
    """Nothing can be restored for now."""

    why: str


@dataclass(frozen=True)
class DrillObserved:
    """`objects` are the drills' Jobs and pods; `checkpoints` all that the schedule made, also for drills. `herddb` is the tablespace's
    database; None if missing, or without drills. `store_unusable` is why the object store of the drilled Checkpoint can't be opened.
    """

    objects: Objects
    checkpoints: tuple[Checkpoint, ...]
    herddb: HerdDBCluster | None = None
    store_unusable: Problem | None = None

    def checkpoint(self, name: str) -> Checkpoint | None:
        """Returns one of the schedule's Checkpoints by name, or None."""
        return next((found for found in self.checkpoints if found.metadata.name == name), None)

    @property
    def made_for_drills(self) -> tuple[Checkpoint, ...]:
        """Returns the Checkpoints of moments chosen for drills."""
        return tuple(found for found in self.checkpoints if is_made_for_a_drill(found))

    def server_trouble(self, job: str) -> str:
        """Returns the message of the server next to a Job's restore if it ended prematurely, or an empty string."""
        for pod in reversed(pods_of_job(self.objects, job)):
            for ended in ended_in(pod, "initContainerStatuses"):
                if ended.container == SERVER and not ended.is_current and ended.exit_code:
                    said = f": {ended.message[-300:].strip()}" if ended.message else ""
                    return f"; its HerdDB server had ended (exit code {ended.exit_code}){said}"
        return ""


NOTHING_DRILLED = DrillObserved(Objects({}), ())
"""For a schedule that never had drills."""


@dataclass(frozen=True)
class CheckpointSeries(RunSeries):
    """A ScheduledCheckpoint as declared, with its runs and drills as observed.

    `tablespace` is the one of the Checkpoints, or None. `checkpoints` are all of it, if its log is archived; `instance_id` is then the
    INSTANCEID of the log's BookKeeper cluster. `restored` are the names of Checkpoints that Tablespaces name, and are still made from.
    """

    schedule: ScheduledCheckpoint
    tablespace: Tablespace | Unknown | None = None
    checkpoints: tuple[Checkpoint, ...] | Unknown = ()
    drill: DrillObserved = NOTHING_DRILLED
    instance_id: str | Unknown = NOT_LOOKED_AT
    restored: frozenset[str] = frozenset()

    @property
    def needed(self) -> frozenset[str] | Unknown:
        """Names of the runs that a drill or a restore reads, or that the recovery window of the log's archive needs.

        A deleted Tablespace may have left an archive, then the only source for a restore. It is unknown which Checkpoints its window needs.
        So it is of a Tablespace that the schedule no longer names.
        """
        read = frozenset(filter(None, (drilled_checkpoint(self.schedule), *self.restored, *self._of_other_tablespaces)))
        if self.tablespace is None:
            return read | {run.name for run in self.known if run.verified}
        if isinstance(self.tablespace, Unknown):
            return self.tablespace
        if isinstance(self.checkpoints, Unknown):
            return self.checkpoints
        needed = needed_by_archive(self.tablespace, self.checkpoints, self.instance_id, self.now)
        return needed if isinstance(needed, Unknown) else read | needed

    @property
    def _of_other_tablespaces(self) -> frozenset[str]:
        """Names of the Checkpoints of Tablespaces that the schedule named before."""
        now = self.schedule.spec.template.tablespace_ref
        return frozenset(made.metadata.name for made in self.drill.checkpoints if made.spec.tablespace_ref != now)

    def is_of_the_tablespace(self, run: Run) -> bool:
        """Returns whether a run is of the tablespace that the schedule names now, as far as known: of its name, and of its uuid."""
        of_another = self.is_another(None if run.log is None else run.log.tablespace_uuid)
        return not of_another and run.tablespace in (None, self.schedule.spec.template.tablespace_ref.name)

    @property
    def tablespace_uuid(self) -> str | None:
        """The uuid of the tablespace that the schedule names now; None if unknown."""
        return self.tablespace.made_uuid if isinstance(self.tablespace, Tablespace) else None

    def is_another(self, uuid: str | None) -> bool:
        """Returns whether a uuid is known to be that of another tablespace than the schedule names now."""
        return None not in (uuid, self.tablespace_uuid) and uuid != self.tablespace_uuid

    @property
    def newest_drill(self) -> DrillStatus | None:
        """The newest drill, by the stored status."""
        return self.schedule.status.last_drill if self.schedule.status is not None else None

    @property
    def drill_of_another(self) -> DrillStatus | None:
        """The newest drill if it was of another tablespace than the schedule names now: then it says nothing of this one."""
        drill = self.newest_drill
        return drill if drill is not None and self.is_another(drill.tablespace_uuid) else None

    @property
    def running_drill(self) -> DrillStatus | None:
        """The newest drill, unless it is finished or drills are no longer declared."""
        drill = self.newest_drill
        return drill if drill is not None and drill.outcome == "Running" and self.schedule.spec.drill is not None else None

    @cached_property
    def due_drill(self) -> datetime.datetime | None:
        """The newest time without a drill yet. None if there is none, or no drill may start."""
        schedule, last = self.schedule, self.newest_drill
        since = moment_of(schedule.status.drills_since) if schedule.status is not None else None
        if schedule.spec.drill is None or since is None or schedule.spec.suspend:
            return None
        if last is not None and last.outcome == "Running":
            return None
        return newest_time(schedule.spec.drill, since if last is None else max(since, due_of(last)), self.now)

    @cached_property
    def drawn(self) -> Drawn | NothingToDraw | None:
        """What the drill that is due restores. None if none is due."""
        return None if self.due_drill is None else self.draw(self.due_drill)

    def draw(self, due: datetime.datetime) -> Drawn | NothingToDraw:
        """Returns what this time's drill restores: a moment of the recovery window if the log is archived, else a verified Checkpoint."""
        schedule, tablespace, seed = self.schedule, self.tablespace, seed_of(self.schedule, due)
        if isinstance(tablespace, Unknown):
            return NothingToDraw(tablespace.why)
        if tablespace is None or self.drill.herddb is None:
            return NothingToDraw(
                f"the Tablespace {schedule.spec.template.tablespace_ref.name}, or its database, does not exist or can't be read"
            )
        window = tablespace.status.recovery_window if tablespace.status is not None else None
        if tablespace.spec.log.archive is not None and window is not None:
            begin, end = moment_of(window.from_), moment_of(window.to)
            restored = moment_of(tablespace.restore.completed_at) if tablespace.restore is not None else None
            if begin is not None and restored is not None:
                begin = max(begin, restored)  # before that it has a table of its own restore, with which no other one begins
            begin = self._first_made_here(tablespace, window, begin)
            if begin is not None and end is not None and begin < end:
                return Drawn(names.drill_checkpoint(schedule.metadata.name, due), text_of(drawn_moment(begin, end, seed), "milliseconds"))
        own = {run.name for run in self.known if self.is_of_the_tablespace(run)}
        made = (each for each in self.drill.checkpoints if each.metadata.name in own and is_restorable(each))
        moments = {each.metadata.name: each.status.lsn_timestamp if each.status is not None else None for each in made}
        name = drawn_name(moments, seed)
        nothing = NothingToDraw("this schedule has no verified Checkpoint of this tablespace yet")
        return nothing if name is None else Drawn(name, moments[name])

    def _first_made_here(self, tablespace: Tablespace, window: RecoveryWindow, begin: datetime.datetime | None) -> datetime.datetime | None:
        """Returns the first moment from `begin` on that can be made at the schedule's destination, or None. A window that begins with a
        Checkpoint may begin with one elsewhere: a schedule's destination changes, and a tablespace may have several schedules.
        """
        start = None if window.from_lsn is None else window.from_lsn.position
        log = None if tablespace.made_uuid is None else log_of(self.instance_id, tablespace.made_uuid)
        found = () if log is None or isinstance(self.checkpoints, Unknown) else bases(self.checkpoints, log)
        if begin is None or isinstance(found, Unknown) or all(base.lsn != start for base in found):
            return begin
        place = self.schedule.spec.template.destination.place
        here = [base.holds_nothing_after for base in found if base.place == place and start is not None and base.lsn >= start]
        first = min((moment for moment in here if moment is not None), default=None)
        return None if first is None else max(begin, first)

    def job_of(self, drill: DrillStatus) -> str:
        return names.drill_job(self.schedule.metadata.name, due_of(drill))

    def is_of_a_moment(self, drill: DrillStatus) -> bool:
        """Returns whether a drill's Checkpoint is made for it."""
        return drill.checkpoint == names.drill_checkpoint(self.schedule.metadata.name, due_of(drill))


def due_of(drill: DrillStatus) -> datetime.datetime:
    """Returns the scheduled time of a drill. Raises ValueError if the status has none."""
    due = moment_of(drill.scheduled_time)
    if due is None:
        raise ValueError(f"status.lastDrill.scheduledTime is {drill.scheduled_time!r}, which is not a time")
    return due


def is_restorable(checkpoint: Checkpoint) -> bool:
    """Returns whether a Checkpoint succeeded, is verified, and was not deleted."""
    status = checkpoint.status
    there = checkpoint.metadata.deletion_timestamp is None and checkpoint.manifest is not None
    return there and status is not None and status.phase == "Succeeded" and bool(status.verified)


def seed_of(schedule: ScheduledCheckpoint, due: datetime.datetime) -> str:
    """Returns the seed of a drill: its schedule and its time."""
    return f"{schedule.metadata.uid}@{text_of(due)}"


def drawn_moment(begin: datetime.datetime, end: datetime.datetime, seed: str) -> datetime.datetime:
    """Returns a moment from the beginning of a window to before its end, uniformly at random, in whole milliseconds.

    At its end a later entry may have the same time: a Checkpoint of that moment waits for one. Raises ValueError if the window is empty.
    """
    millis = -((begin - end) // datetime.timedelta(milliseconds=1))
    return begin + datetime.timedelta(milliseconds=random.Random(seed).randrange(millis))  # noqa: S311 - no secret


def drawn_name(names: Iterable[str], seed: str) -> str | None:
    """Returns one of several names, independent of their order; None without names."""
    found = sorted(names)
    return random.Random(seed).choice(found) if found else None  # noqa: S311 - no secret


def drilled_checkpoint(schedule: ScheduledCheckpoint) -> str | None:
    """Returns the Checkpoint that a drill reads, or is about to read, by the stored status. None without a drill. Its files must stay."""
    drill = schedule.status.last_drill if schedule.status is not None else None
    running = drill is not None and drill.outcome == "Running" and schedule.metadata.deletion_timestamp is None
    return drill.checkpoint if drill is not None and running else None
