"""The verified Checkpoints of a tablespace that another one can be made from, with the log behind them."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass

from herdkeeper.api import Checkpoint
from herdkeeper.api.checkpoint import CheckpointStatus
from herdkeeper.herddb.log.identity import LogIdentity, log_of_manifest
from herdkeeper.protocol.verification import is_proof
from herdkeeper.shared import names
from herdkeeper.shared.time import moment_of
from herdkeeper.shared.unknown import Unknown


@dataclass(frozen=True)
class Base:
    """A verified Checkpoint: where it is, where it has to be gone on from, and its name. `stamp` is its time as its status tells it, which
    is that of its last entry; `latest` that of the latest entry of all, None where an earlier version made it. `place` and `manifest`
    tell where its files are: a claim's name or an object store's address, and the path there."""

    lsn: tuple[int, int]
    restart: tuple[int, int]
    stamp: str | None
    name: str
    latest: str | None = None
    place: str = ""
    manifest: str = ""

    @property
    def moment(self) -> str | None:
        """The first time that can be had from it: leaders' clocks differ, and a log is cut before the first entry that is later."""
        return self.latest or self.stamp

    @property
    def holds_nothing_after(self) -> datetime.datetime | None:
        """The same as a time; None where it is not known for certain."""
        return moment_of(self.latest)


def bases(checkpoints: Iterable[Checkpoint], log: LogIdentity | Unknown) -> tuple[Base, ...] | Unknown:
    """The Checkpoints of this very log of which a follower had the same rows; Unknown while nobody knows which log it is. One that is being
    deleted may have no files any more, and one that was made for a restore drill is about to go: neither the log nor the archive may rest
    on it."""
    if isinstance(log, Unknown):
        return log
    return tuple(
        Base(
            (status.lsn.ledger_id, status.lsn.entry_id),
            restart,
            status.lsn_timestamp,
            checkpoint.metadata.name,
            status.latest_timestamp,
            checkpoint.place,
            status.manifest or "",
        )
        for checkpoint in checkpoints
        if (status := checkpoint.status) is not None
        and checkpoint.metadata.deletion_timestamp is None
        and not is_made_for_a_drill(checkpoint)
        and status.lsn is not None
        and _is_base(status, log)
        and (restart := _restart(status)) is not None
    )


def _is_base(status: CheckpointStatus, log: LogIdentity) -> bool:
    return status.phase == "Succeeded" and is_proof(status.verified) and log_of_manifest(status.manifest) == log


def _restart(status: CheckpointStatus) -> tuple[int, int] | None:
    """None for one of an earlier version that does not tell where its open transactions began."""
    lsn = status.restart_lsn or (status.lsn if status.open_transactions == 0 else None)
    return None if lsn is None else (lsn.ledger_id, lsn.entry_id)


def is_made_for_a_drill(checkpoint: Checkpoint) -> bool:
    """Whether it is deleted as soon as a drill has ended, so that nothing else may rest on it."""
    return checkpoint.metadata.labels.get(names.COMPONENT_LABEL) == names.DRILL_COMPONENT
