"""The times of a cron expression in a time zone.

cronsim computes the ticks and treats clock changes like Debian's cron. Ticks in a skipped hour come right after it; ticks in a repeated
hour come once. Expressions with `*` in minute or hour follow the wall clock.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from herdkeeper.shared.time import UnknownTimeZoneError, time_zone_of

SOME_DAY = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
FIELDS = 5


class TimetableError(ValueError):
    """Raised for an invalid expression or time zone. `field` is the field at fault, the message the problem."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(problem)
        self.field = field


@dataclass(frozen=True)
class Timetable:
    """The ticks of an expression. Moments are aware, returned ones in UTC."""

    expression: str
    zone: ZoneInfo

    @staticmethod
    def of(expression: str, time_zone: str) -> Timetable:
        """Raises TimetableError for an expression that is malformed or never due, and for an unknown time zone."""
        try:
            zone = time_zone_of(time_zone)
        except UnknownTimeZoneError as error:
            raise TimetableError("timeZone", "this time zone does not exist") from error
        fields = len(expression.split())
        if fields != FIELDS:  # cronsim would read a sixth field as seconds
            raise TimetableError("schedule", f"it has {fields} of the five fields of cron")
        try:
            CronSim(expression, SOME_DAY)
        except CronSimError as error:
            raise TimetableError("schedule", f"cron can't read it ({str(error)[:1].lower()}{str(error)[1:]})") from error
        found = Timetable(expression, zone)
        if found.after(SOME_DAY) is None:
            raise TimetableError("schedule", "it is never due")
        return found

    def after(self, moment: datetime.datetime) -> datetime.datetime | None:
        """Returns the first tick after a moment, or None if there is none within 50 years."""
        # in a repeated hour cronsim may answer with the first pass, which is over
        return next((tick for tick in self._ticks(moment) if tick > moment), None)

    def latest(self, moment: datetime.datetime) -> datetime.datetime | None:
        """Returns the last tick at or before a moment, or None if there is none within 50 years."""
        # Search backwards only for a start: what counts are the ticks that `after` returns.
        begin = next((tick for tick in self._ticks(moment, reverse=True) if tick <= moment - datetime.timedelta(hours=3)), None)
        found = begin
        while begin is not None and (begin := self.after(begin)) is not None and begin <= moment:
            found = begin
        return found

    def _ticks(self, moment: datetime.datetime, *, reverse: bool = False) -> Iterator[datetime.datetime]:
        for tick in CronSim(self.expression, moment.astimezone(self.zone), reverse):
            yield tick.astimezone(datetime.UTC)


def overdue_at(timetable: Timetable, since: datetime.datetime) -> datetime.datetime | None:
    """Returns when a run is overdue, two periods after a moment. None if there are no two further ticks.

    It is as long after the second tick as the moment is after its previous one. Periods need not be equal: on a schedule for working days,
    a checkpoint of Friday is overdue on Tuesday.
    """
    before, first = timetable.latest(since), timetable.after(since)
    second = timetable.after(first) if first is not None else None
    if second is None:
        return None
    return second + (since - before) if before is not None else second


def duration_of(text: str) -> datetime.timedelta:
    """Parses a duration with a unit, e.g. `36h`. Raises ValueError."""
    units = {"m": "minutes", "h": "hours", "d": "days"}
    number, unit = text[:-1], text[-1:]
    if unit not in units or not number.isdigit():
        raise ValueError(f"duration is {text!r}: it must be a whole number with one of m, h and d, e.g. 36h")
    return datetime.timedelta(**{units[unit]: int(number)})
