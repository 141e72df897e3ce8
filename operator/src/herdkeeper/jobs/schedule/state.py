"""The observation of a schedule: its runs, and the time."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from herdkeeper.api import Checkpoint, ReplicationAudit, Tablespace
from herdkeeper.api.job import Phase
from herdkeeper.herddb.log.identity import NOT_LOOKED_AT, LogIdentity, log_of_manifest
from herdkeeper.jobs.drill.state import NOTHING_DRILLED, DrillObserved
from herdkeeper.shared import names
from herdkeeper.shared.conditions import READY, condition
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.time import moment_of
from herdkeeper.shared.unknown import Unknown


@dataclass(frozen=True)
class Run:
    """A Checkpoint or ReplicationAudit made by a schedule.

    `due` is its scheduled time, or when it was requested. `completed` is its end; None while active, or if unknown. `verified` is False for
    an audit, and if unknown. `going`: it is being deleted. `log` and `lsn` are a checkpoint's log and position, or None.
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
    going: bool = False
    log: LogIdentity | None = None
    lsn: tuple[int, int] | None = None

    @property
    def active(self) -> bool:
        """Whether it has not ended."""
        return self.phase in ("Pending", "Running", "Paused")


@dataclass(frozen=True)
class ScheduleObserved:
    """The runs, oldest first, and the time of the observation. Unknown if a run could not be read: it may be any of them.

    `tablespace` is the one of the Checkpoints, or None. `checkpoints` are all of it, if its log is archived; `instance_id` is then the
    INSTANCEID of the log's BookKeeper cluster. These, and `drill`, are not read for audits.
    """

    runs: tuple[Run, ...] | Unknown
    now: datetime.datetime
    tablespace: Tablespace | Unknown | None = None
    checkpoints: tuple[Checkpoint, ...] | Unknown = ()
    drill: DrillObserved = NOTHING_DRILLED
    instance_id: str | Unknown = NOT_LOOKED_AT


def run_of(made: Checkpoint | ReplicationAudit) -> Run:
    """Returns a run from its resource. Raises ValueError if it has no creation time."""
    annotations = made.metadata.annotations
    requested = names.REQUESTED_AT_ANNOTATION in annotations
    text = annotations.get(names.REQUESTED_AT_ANNOTATION if requested else names.DUE_AT_ANNOTATION)
    due = moment_of(text) or moment_of(made.metadata.creation_timestamp)
    if due is None:
        raise ValueError(f"the {made.KIND} {made.metadata.name} has no scheduled time and no creation time")
    phase, completed = _ending(made)
    status = made.status
    return Run(
        name=made.metadata.name,
        uid=made.metadata.uid,
        due=due,
        requested=requested,
        phase=phase,
        completed=completed,
        verified=isinstance(made, Checkpoint) and phase == "Succeeded" and bool(made.status and made.status.verified),
        message=(status.message if status is not None else None) or "",
        going=made.metadata.deletion_timestamp is not None,
        log=log_of_manifest(made.status.manifest) if isinstance(made, Checkpoint) and made.status is not None else None,
        lsn=_lsn_of(made) if isinstance(made, Checkpoint) else None,
        findings=made.status.findings_total if isinstance(made, ReplicationAudit) and made.status is not None else None,
    )


def _lsn_of(checkpoint: Checkpoint) -> tuple[int, int] | None:
    lsn = checkpoint.status.lsn if checkpoint.status is not None else None
    return None if lsn is None else (lsn.ledger_id, lsn.entry_id)


def _ending(made: Checkpoint | ReplicationAudit) -> tuple[Phase, datetime.datetime | None]:
    """A run with a refused spec never starts: it counts as failed, since its schedule would otherwise wait for it forever."""
    ready = condition(made, READY)
    phase = made.status.phase if made.status is not None else None
    if phase is None and ready is not None and ready.reason == Reason.INVALID_SPEC:
        return "Failed", moment_of(ready.last_transition_time)
    return phase or "Pending", moment_of(made.status.completed_at) if made.status is not None else None
