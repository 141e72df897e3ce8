"""Decides when a schedule starts a run: only the newest missed time counts, and runs never overlap."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from herdkeeper.api.schedule import Times, Timing
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import soonest
from herdkeeper.shared.timetable import Timetable


@dataclass(frozen=True)
class Start:
    """The run of the time `due` starts now."""

    due: datetime.datetime


@dataclass(frozen=True)
class Missed:
    """The time `due` is skipped for good."""

    due: datetime.datetime
    why: str


@dataclass(frozen=True)
class NotDue:
    """Nothing is due, or the schedule is suspended."""


def timetable_of(timing: Times) -> Timetable:
    """Returns the timetable of a validated schedule."""
    return Timetable.of(timing.schedule, timing.time_zone)


def newest_time(times: Times, done_until: datetime.datetime, now: datetime.datetime) -> datetime.datetime | None:
    """Returns the newest time that is not handled yet, or None. Earlier missed times are skipped."""
    due = timetable_of(times).latest(now)
    return None if due is None or due <= done_until else due


def pending_time(timing: Timing, done_until: datetime.datetime, now: datetime.datetime) -> datetime.datetime | None:
    """Like `newest_time`, but None while the schedule is suspended."""
    return None if timing.suspend else newest_time(timing, done_until, now)


def decide_time(timing: Timing, due: datetime.datetime, in_the_way: str | None, now: datetime.datetime) -> Start | Missed:
    """Returns whether a run starts or its time is skipped. `in_the_way`: what was not over at that time."""
    if in_the_way is not None:
        return Missed(due, f"{in_the_way} was not over")
    deadline = timing.starting_deadline_seconds
    if deadline is not None and now - due > datetime.timedelta(seconds=deadline):
        return Missed(due, f"startingDeadlineSeconds ({deadline}) had passed")
    return Start(due)


def seconds_to_next(times: Times, now: datetime.datetime) -> float | None:
    following = timetable_of(times).after(now)
    return None if following is None else max(requeue.NOTED, (following - now).total_seconds())


def requeue_after_seconds(again: float | None, to_next: float | None, *, acts: bool) -> float | None:
    """Returns the seconds until the next reconcile: the schedule's next time, or sooner if `again` or `acts` asks for it."""
    return soonest(requeue.SOON if acts and again is None else again, to_next)
