"""Daily hours, in a time zone, in which something may be done.

A window is an interval between two moments, not a test of the wall clock. When clocks go back, the first of two equal times counts. When
they go forward, a skipped time comes that much later.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from herdkeeper.shared.time import time_zone_of

_DAY = datetime.timedelta(days=1)
_MOST_DAYS = 4
"""A clock change can skip a day's window, but never those of two consecutive days."""


@dataclass(frozen=True)
class DailyWindow:
    """From `opens` to `closes`, on the next day if `closes` is not later. Moments are aware, returned ones in UTC."""

    opens: datetime.time
    closes: datetime.time
    zone: ZoneInfo

    @staticmethod
    def of(opens: str, closes: str, time_zone: str) -> DailyWindow:
        """Parse times such as `22:00`. Raises UnknownTimeZoneError."""
        return DailyWindow(datetime.time.fromisoformat(opens), datetime.time.fromisoformat(closes), time_zone_of(time_zone))

    @property
    def by_the_clock(self) -> datetime.timedelta:
        """Length of the window on a day without a clock change."""
        opens, closes = (datetime.timedelta(hours=time.hour, minutes=time.minute) for time in (self.opens, self.closes))
        return closes - opens if closes > opens else closes - opens + _DAY

    def closing(self, now: datetime.datetime) -> datetime.datetime | None:
        """Returns when the open window closes, or None if it is closed."""
        today = now.astimezone(self.zone).date()
        windows = (self._of_day(today + days * _DAY) for days in range(-2, 2))
        return next((closes for opens, closes in windows if opens <= now < closes), None)

    def opening_after(self, moment: datetime.datetime) -> datetime.datetime:
        """Returns the next opening after a moment."""
        day = moment.astimezone(self.zone).date()
        windows = (self._of_day(day + days * _DAY) for days in range(-1, _MOST_DAYS))
        return next(opens for opens, closes in windows if opens > moment and opens < closes)

    def open_again(self, moment: datetime.datetime, closed: datetime.datetime) -> datetime.datetime:
        """Returns the first time, not before `moment`, at which a window later than the one that ended at `closed` is open."""
        closes = self.closing(moment)
        return moment if closes is not None and closes > closed else self.opening_after(moment)

    def _of_day(self, day: datetime.date) -> tuple[datetime.datetime, datetime.datetime]:
        """Returns the window that opens on this day. It may be empty if its times were skipped by a clock change."""
        ends = day if self.closes > self.opens else day + _DAY
        return self._at(day, self.opens), self._at(ends, self.closes)

    def _at(self, day: datetime.date, time: datetime.time) -> datetime.datetime:
        return datetime.datetime.combine(day, time, self.zone).astimezone(datetime.UTC)
