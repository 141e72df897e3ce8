"""Whether each reader of a tablespace's log has read it before its retention is over."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from enum import Enum

from herdkeeper.herddb.log.checkpoint_base import Base
from herdkeeper.herddb.log.seen_pins import SeenStream


class Needer(Enum):
    """Who needs a log."""

    CHECKPOINT = "checkpoint"
    ARCHIVE = "archive"
    STREAM = "stream"


@dataclass(frozen=True)
class Need:
    """Who needs the log, and from which LSN on (ledger id, entry id); None: whatever is there. `kept`: a pin keeps it past the retention.
    `base` is the newest verified Checkpoint, which the next one is made from; `stream` the stream of changes."""

    by: Needer
    since: tuple[int, int] | None
    kept: bool
    base: Base | None = None
    stream: SeenStream | None = None


class Phase(Enum):
    """How far the retention of the oldest ledger is that somebody needs."""

    IN_TIME = "in time"
    NEARS = "nears its end"
    PAST = "is over"
    GONE = "gone"


@dataclass(frozen=True)
class Standing:
    """How it stands with one need. `ended` is when the oldest ledger that it needs ended, and `retention_ends` when that is past its
    retention; both None while the ledger is written, and once it is gone. `turns_at` is when the phase will be another one, None when
    time alone changes nothing."""

    need: Need
    phase: Phase
    ended: datetime.datetime | None = None
    retention_ends: datetime.datetime | None = None
    turns_at: datetime.datetime | None = None
