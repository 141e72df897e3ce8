"""Hours of the day in a time zone, in which something may be done.

A window is an interval between two moments, not a test of the clock on the wall: of a time of day that comes twice, when clocks are
changed, the first one counts, and one that is left out comes as much later as is left out.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from zoneinfo import ZoneInfo

_DAY = datetime.timedelta(days=1)
_MOST_DAYS = 4
"""A day on which the hours of a window are left out has none; no two such days follow each other."""


class UnknownTimeZoneError(ValueError):
    """There is no time zone of this name."""


@dataclass(frozen=True)
class DailyWindow:
    """From `opens` to `closes` of each day, of the next day when that is not later. Moments are aware, those that are returned in UTC."""

    opens: datetime.time
    closes: datetime.time
    zone: ZoneInfo

    @staticmethod
    def of(opens: str, closes: str, time_zone: str) -> DailyWindow:
        """From times as `22:00`. Raises UnknownTimeZoneError."""
        try:
            zone = ZoneInfo(time_zone)
        except (KeyError, ValueError, OSError) as error:  # OSError: the name of a folder of the database, e.g. `America`
            raise UnknownTimeZoneError(time_zone) from error
        return DailyWindow(datetime.time.fromisoformat(opens), datetime.time.fromisoformat(closes), zone)

    @property
    def by_the_clock(self) -> datetime.timedelta:
        """For how long it is open on a day on which no clock is changed."""
        opens, closes = (datetime.timedelta(hours=time.hour, minutes=time.minute) for time in (self.opens, self.closes))
        return closes - opens if closes > opens else closes - opens + _DAY

    def closing(self, now: datetime.datetime) -> datetime.datetime | None:
        """When the window closes that is open now; None while it is closed."""
        today = now.astimezone(self.zone).date()
        windows = (self._of_day(today + days * _DAY) for days in range(-2, 2))
        return next((closes for opens, closes in windows if opens <= now < closes), None)

    def opening_after(self, moment: datetime.datetime) -> datetime.datetime:
        """The next time that it opens, later than a moment."""
        day = moment.astimezone(self.zone).date()
        windows = (self._of_day(day + days * _DAY) for days in range(-1, _MOST_DAYS))
        return next(opens for opens, closes in windows if opens > moment and opens < closes)

    def open_again(self, moment: datetime.datetime, closed: datetime.datetime) -> datetime.datetime:
        """The first time, at a moment or later, at which a window is open that closes later than the one that ended at `closed`."""
        closes = self.closing(moment)
        return moment if closes is not None and closes > closed else self.opening_after(moment)

    def _of_day(self, day: datetime.date) -> tuple[datetime.datetime, datetime.datetime]:
        """The window that opens on this day. It may be empty: both times are left out, or one, and the other comes right after."""
        ends = day if self.closes > self.opens else day + _DAY
        return self._at(day, self.opens), self._at(ends, self.closes)

    def _at(self, day: datetime.date, time: datetime.time) -> datetime.datetime:
        return datetime.datetime.combine(day, time, self.zone).astimezone(datetime.UTC)
