"""Whether each reader of a tablespace's log has read it before its retention is over."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from enum import Enum

from herdkeeper.herddb.log.checkpoint_base import Base
from herdkeeper.herddb.log.seen import SeenStream


class Needer(Enum):
    """What needs a log."""

    CHECKPOINT = "checkpoint"
    ARCHIVE = "archive"
    STREAM = "stream"


@dataclass(frozen=True)
class Need:
    """A need of the log from an LSN on (ledger id, entry id); None: from the beginning. `kept`: a pin keeps it past the retention. `base`
    is the newest verified Checkpoint, the base of the next one; `stream` the change stream.
    """

    by: Needer
    since: tuple[int, int] | None
    kept: bool
    base: Base | None = None
    stream: SeenStream | None = None


class Phase(Enum):
    """How far the retention of the oldest needed ledger has run."""

    IN_TIME = "in time"
    NEARS = "nears its end"
    PAST = "is over"
    GONE = "gone"


@dataclass(frozen=True)
class Standing:
    """The standing of one need.

    `ended` is when the oldest needed ledger ended, `retention_ends` when its retention does; both None while it is written, and once it is
    gone. `turns_at` is when the phase changes, None if time alone changes nothing.
    """

    need: Need
    phase: Phase
    ended: datetime.datetime | None = None
    retention_ends: datetime.datetime | None = None
    turns_at: datetime.datetime | None = None
