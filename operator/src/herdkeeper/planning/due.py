"""Decides which times of a schedule start something: only the newest one counts, and runs never overlap."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from herdkeeper.api.schedule import Times, Timing
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import soonest
from herdkeeper.shared.timetable import Timetable


@dataclass(frozen=True)
class Start:
    """What is due at the time `due` is to be begun."""

    due: datetime.datetime


@dataclass(frozen=True)
class Missed:
    """Nothing is begun for the time `due`, now or later."""

    due: datetime.datetime
    why: str


@dataclass(frozen=True)
class NotDue:
    """Nothing is due, or only what a suspended schedule leaves for later."""


def timetable_of(timing: Times) -> Timetable:
    """The times of a schedule whose spec was validated."""
    return Timetable.of(timing.schedule, timing.time_zone)


def newest_time(times: Times, done_until: datetime.datetime, now: datetime.datetime) -> datetime.datetime | None:
    """The newest time that is not dealt with; None when there is none. Those that were missed before it are left out."""
    due = timetable_of(times).latest(now)
    return None if due is None or due <= done_until else due


def pending_time(timing: Timing, done_until: datetime.datetime, now: datetime.datetime) -> datetime.datetime | None:
    """As `newest_time`; None as long as the schedule is suspended."""
    return None if timing.suspend else newest_time(timing, done_until, now)


def decide_time(timing: Timing, due: datetime.datetime, in_the_way: str | None, now: datetime.datetime) -> Start | Missed:
    """What becomes of a time that is not dealt with. `in_the_way`: what was not over when it came."""
    if in_the_way is not None:
        return Missed(due, f"{in_the_way} was not over")
    deadline = timing.starting_deadline_seconds
    if deadline is not None and now - due > datetime.timedelta(seconds=deadline):
        return Missed(due, f"startingDeadlineSeconds ({deadline}) had passed")
    return Start(due)


def seconds_to_next(times: Times, now: datetime.datetime) -> float | None:
    """Until the next time of a schedule; None when there is none."""
    following = timetable_of(times).after(now)
    return None if following is None else max(requeue.NOTED, (following - now).total_seconds())


def requeue_after_seconds(again: float | None, to_next: float | None, *, acts: bool) -> float | None:
    """Seconds until the next reconcile: at the next time of a schedule, or sooner if `again` or `acts` asks for it."""
    return soonest(requeue.SOON if acts and again is None else again, to_next)
