"""Chooses the Checkpoint or moment of a restore drill: at random, but reproducibly."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterable
from dataclasses import dataclass

from herdkeeper.api import ScheduledCheckpoint
from herdkeeper.shared.time import text_of


@dataclass(frozen=True)
class Drawn:
    """The Checkpoint that a drill restores, and its moment if known. One of a moment of the recovery window is made for the drill."""

    name: str
    moment: str | None


@dataclass(frozen=True)
class NothingToDraw:
    """Nothing can be restored for now."""

    why: str


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
