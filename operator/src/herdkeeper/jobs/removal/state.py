"""What was seen of all that may need a Checkpoint's files, before they are removed."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.api import Checkpoint, ScheduledCheckpoint, Tablespace
from herdkeeper.shared.objects import Json
from herdkeeper.shared.unknown import Unknown


@dataclass(frozen=True)
class RemovalObserved:
    """`claim` is that of the destination as it is stored, None when it is gone, or when the destination is no volume. `checkpoints`
    are the others of the namespace, `tablespaces` and `schedules` all; Unknown when one of them can't be read: it may be any of those that
    need the files."""

    claim: Json | None
    checkpoints: tuple[Checkpoint, ...] | Unknown
    tablespaces: tuple[Tablespace, ...] | Unknown
    schedules: tuple[ScheduledCheckpoint, ...] | Unknown = ()
