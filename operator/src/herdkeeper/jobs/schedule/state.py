"""A schedule: what is declared, which runs were observed, and what follows from both."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from functools import cached_property

from herdkeeper.api import BookKeeperCluster, Checkpoint, ReplicationAudit, ScheduledCheckpoint, ScheduledReplicationAudit
from herdkeeper.api.checkpoint import CheckpointSpec
from herdkeeper.api.job import Phase
from herdkeeper.herddb.log.identity import LogIdentity, log_of_manifest
from herdkeeper.planning.due import Missed, NotDue, Start, decide_time, pending_time
from herdkeeper.protocol.verification import is_proof
from herdkeeper.shared import names
from herdkeeper.shared.conditions import READY, condition, is_refused
from herdkeeper.shared.paused import paused_by
from herdkeeper.shared.time import moment_of
from herdkeeper.shared.unknown import Unknown


@dataclass(frozen=True)
class Run:
    """A Checkpoint or ReplicationAudit made by a schedule.

    `due` is its scheduled time, or when it was requested. `completed` is its end; None while active, or if unknown. `verified` is False for
    an audit, and if unknown. `instance_id`: the BookKeeper cluster that an audit read, if it told. `going`: it is being deleted.
    `unstopped`: and nobody stops its Job, since it is paused. `refused`: its spec is invalid. `log` and `lsn` are a checkpoint's log and
    position, or None; `tablespace` is the Tablespace that it names. `proven`: the verification was a proof (is_proof). `restorable`:
    nothing is known that prevents a restore.
    """

    name: str
    uid: str
    due: datetime.datetime
    requested: bool
    phase: Phase
    completed: datetime.datetime | None = None
    verified: bool = False
    message: str = ""
    findings: int | None = None
    instance_id: str | None = None
    going: bool = False
    unstopped: bool = False
    refused: bool = False
    log: LogIdentity | None = None
    lsn: tuple[int, int] | None = None
    proven: bool = False
    restorable: bool = True
    tablespace: str | None = None

    @property
    def active(self) -> bool:
        """Whether it has not ended. One that is being deleted is stopped, as a rule, and its deletion may wait for others."""
        return self.phase in ("Pending", "Running", "Paused") and (self.unstopped or not self.going)

    @property
    def ended(self) -> tuple[datetime.datetime, str]:
        """The order of ended runs. The time of one may still come, if the operator's clock was ahead."""
        return self.completed or self.due, self.name


Decision = Start | Missed | NotDue


@dataclass(frozen=True)
class RunSeries:
    """A schedule as declared, and its runs as observed, oldest first. Each derived value is computed once.

    `runs` is Unknown if one could not be read: it may be any of them. `now` is the time of the observation. `audited` is the cluster that a
    schedule's audits are of; None if missing. `taken` are the names of others' resources of the kind of its runs.
    """

    schedule: ScheduledCheckpoint | ScheduledReplicationAudit
    runs: tuple[Run, ...] | Unknown
    now: datetime.datetime
    audited: BookKeeperCluster | None = field(default=None, kw_only=True)
    taken: frozenset[str] = field(default=frozenset(), kw_only=True)

    @property
    def known(self) -> tuple[Run, ...]:
        """The runs. Raises ValueError if one could not be read."""
        if isinstance(self.runs, Unknown):
            raise ValueError(self.runs.why)
        return self.runs

    @property
    def needed(self) -> frozenset[str] | Unknown:
        """Names of runs that others need, however old they are."""
        return frozenset()

    @property
    def active(self) -> Run | None:
        """The run that has not ended, or None."""
        return next((run for run in self.known if run.active), None)

    @property
    def created_at(self) -> datetime.datetime:
        """When the schedule was created. Raises ValueError if no API server has stored it."""
        created = moment_of(self.schedule.metadata.creation_timestamp)
        if created is None:
            raise ValueError(f"the {self.schedule.KIND} {self.schedule.metadata.name} has no creationTimestamp")
        return created

    @property
    def done_until(self) -> datetime.datetime:
        """When the newest run was made, requested or scheduled and perhaps deleted by now. After now if a clock was ahead."""
        status = self.schedule.status
        last = moment_of(status.last_schedule_time) if status is not None else None
        return max(self.created_at, last or self.created_at, *(run.due for run in self.known))

    @cached_property
    def decision(self) -> Decision:
        """The decision on the newest unhandled time. A late one equals a timely one: a run blocks it that is, or was then, active."""
        due = pending_time(self.schedule.spec, self.done_until, self.now)
        if due is None:
            return NotDue()
        blocking = (run.name for run in self.known if run.active or (run.due < due and run.completed is not None and run.completed > due))
        return decide_time(self.schedule.spec, due, next(blocking, None), self.now)


def run_of(made: Checkpoint | ReplicationAudit) -> Run:
    """Returns a run from its resource, which has no spec if that can't be read. Raises ValueError if it has no creation time."""
    annotations = made.metadata.annotations
    requested = names.REQUESTED_AT_ANNOTATION in annotations
    text = annotations.get(names.REQUESTED_AT_ANNOTATION if requested else names.DUE_AT_ANNOTATION)
    due = moment_of(text) or moment_of(made.metadata.creation_timestamp)
    if due is None:
        raise ValueError(f"the {made.KIND} {made.metadata.name} has no scheduled time and no creation time")
    phase, completed = _ending(made)
    status, going = made.status, made.metadata.deletion_timestamp is not None
    checkpoint = made.status if isinstance(made, Checkpoint) else None
    audit = made.status if isinstance(made, ReplicationAudit) else None
    verified = checkpoint.verified if checkpoint is not None and phase == "Succeeded" else None
    return Run(
        name=made.metadata.name,
        uid=made.metadata.uid,
        due=due,
        requested=requested,
        phase=phase,
        completed=completed,
        verified=bool(verified),
        message=status.told if status is not None else "",
        going=going,
        unstopped=going and paused_by(annotations) is not None and status is not None and status.job is not None,
        refused=is_refused(made),
        log=log_of_manifest(checkpoint.manifest) if checkpoint is not None else None,
        lsn=checkpoint.lsn.position if checkpoint is not None and checkpoint.lsn is not None else None,
        proven=is_proof(verified),
        restorable=made.spec is not None and (checkpoint is None or checkpoint.restorable is not False),
        tablespace=made.spec.tablespace_ref.name if isinstance(made.spec, CheckpointSpec) else None,
        findings=audit.findings_total if audit is not None else None,
        instance_id=audit.instance_id if audit is not None else None,
    )


def _ending(made: Checkpoint | ReplicationAudit) -> tuple[Phase, datetime.datetime | None]:
    """A refused run without a Job never starts: it counts as failed, since its schedule would otherwise wait for it forever."""
    ready, status = condition(made, READY), made.status
    if status is None:
        return "Pending", None
    begun = status.job is not None or status.phase not in (None, "Pending")
    if not begun and ready is not None and is_refused(made):
        return "Failed", moment_of(ready.last_transition_time)
    return status.phase or "Pending", moment_of(status.completed_at)
