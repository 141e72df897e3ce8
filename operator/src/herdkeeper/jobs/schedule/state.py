"""What was seen of a schedule: the runs that it made, and the time."""

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
    """A Checkpoint or ReplicationAudit that a schedule made.

    `due` is the time of the schedule that it was made for, or when it was asked for. `completed` is when it ended; None while it is not
    over, and where that is not known. `verified` is False for an audit, and where it is not known how a checkpoint was verified.
    `going` is whether somebody has deleted it and it is not gone yet. `log` is the one that a checkpoint is of, and `lsn` where in it,
    None where it does not tell.
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
        """Whether it is not over."""
        return self.phase in ("Pending", "Running", "Paused")


@dataclass(frozen=True)
class ScheduleObserved:
    """The runs, the oldest first, and when that was seen. Unknown when one of them could not be read: it may be any of them.

    `tablespace` is the one that Checkpoints are made of, None while there is none; `checkpoints` are all of it, whoever made them, where
    its log is archived, and then `instance_id` is the INSTANCEID of the BookKeeper cluster that keeps it. None of these is looked at for
    audits, nor is `drill`.
    """

    runs: tuple[Run, ...] | Unknown
    now: datetime.datetime
    tablespace: Tablespace | Unknown | None = None
    checkpoints: tuple[Checkpoint, ...] | Unknown = ()
    drill: DrillObserved = NOTHING_DRILLED
    instance_id: str | Unknown = NOT_LOOKED_AT


def run_of(made: Checkpoint | ReplicationAudit) -> Run:
    """A run as its resource tells of it. ValueError when it does not tell when it was made."""
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
    """A run whose spec is refused never begins: it failed, else its schedule would wait for it for ever."""
    ready = condition(made, READY)
    phase = made.status.phase if made.status is not None else None
    if phase is None and ready is not None and ready.reason == Reason.INVALID_SPEC:
        return "Failed", moment_of(ready.last_transition_time)
    return phase or "Pending", moment_of(made.status.completed_at) if made.status is not None else None
