"""The observation of everything that may need a Checkpoint's files."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.api import Checkpoint, ScheduledCheckpoint, Tablespace
from herdkeeper.shared.unknown import Unknown
from herdkeeper.shared.volumes import Claim


@dataclass(frozen=True)
class RemovalObserved:
    """`claim` is the destination's claim; None if it is gone or the destination is no volume. `checkpoints` are the others of the
    namespace, `tablespaces` and `schedules` all of them. Unknown if one can't be read, since it may need the files.
    """

    claim: Claim | None
    checkpoints: tuple[Checkpoint, ...] | Unknown
    tablespaces: tuple[Tablespace, ...] | Unknown
    schedules: tuple[ScheduledCheckpoint, ...] | Unknown = ()
