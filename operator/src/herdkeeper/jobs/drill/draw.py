"""Which Checkpoint, or which moment, a restore drill is about: drawn by chance that is the same each time that it is looked at."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterable

from herdkeeper.api import ScheduledCheckpoint
from herdkeeper.shared.time import text_of


def seed_of(schedule: ScheduledCheckpoint, due: datetime.datetime) -> str:
    """What the chance of a drill follows from: the schedule, and the time that the drill is for."""
    return f"{schedule.metadata.uid}@{text_of(due)}"


def drawn_moment(begin: datetime.datetime, end: datetime.datetime, seed: str) -> datetime.datetime:
    """A moment of a window, each of them as likely, in whole milliseconds; the beginning of a window that has no length."""
    millis = max(0, (end - begin) // datetime.timedelta(milliseconds=1))
    return begin + datetime.timedelta(milliseconds=random.Random(seed).randint(0, millis))  # noqa: S311 - no secret


def drawn_name(names: Iterable[str], seed: str) -> str | None:
    """One of several names, whatever their order; None of none."""
    found = sorted(names)
    return random.Random(seed).choice(found) if found else None  # noqa: S311 - no secret


def drilled_checkpoint(schedule: ScheduledCheckpoint) -> str | None:
    """The Checkpoint that a drill reads or is about to read, by the stored status; None while there is no drill. Its files must stay."""
    drill = schedule.status.last_drill if schedule.status is not None else None
    running = drill is not None and drill.outcome == "Running" and schedule.metadata.deletion_timestamp is None
    return drill.checkpoint if drill is not None and running else None
