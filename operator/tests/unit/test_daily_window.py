"""Hours of the day in a time zone: over midnight, and over the days on which clocks are changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdkeeper.shared.daily_window import DailyWindow
from herdkeeper.shared.time import UnknownTimeZoneError

ROME = "Europe/Rome"  # 2026: an hour is left out on 29 March at 02:00 (01:00 UTC), and comes twice on 25 October until 03:00 (01:00 UTC)


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-{text}:00Z")


@pytest.mark.parametrize(
    ("window", "now", "closes"),
    [
        (("09:00", "17:00", "UTC"), "06-01T09:00", "06-01T17:00"),
        (("09:00", "17:00", "UTC"), "06-01T16:59", "06-01T17:00"),
        (("09:00", "17:00", "UTC"), "06-01T17:00", None),
        (("09:00", "17:00", "UTC"), "06-01T08:59", None),
        (("22:00", "05:00", ROME), "06-01T19:59", None),
        (("22:00", "05:00", ROME), "06-01T20:00", "06-02T03:00"),
        (("22:00", "05:00", ROME), "06-02T02:59", "06-02T03:00"),
        (("22:00", "05:00", ROME), "12-31T21:00", "2027-01-01T04:00"),
        (("22:00", "05:00", ROME), "03-29T02:59", "03-29T03:00"),
        (("22:00", "05:00", ROME), "10-25T03:59", "10-25T04:00"),
        (("02:30", "04:00", ROME), "03-29T01:29", None),
        (("02:30", "04:00", ROME), "03-29T01:30", "03-29T02:00"),
        (("01:00", "02:30", ROME), "10-25T00:29", "10-25T00:30"),
        (("01:00", "02:30", ROME), "10-25T00:30", None),
        (("02:30", "04:00", ROME), "10-25T00:30", "10-25T03:00"),
    ],
    ids=[
        *("it opens", "its last minute", "it closes", "before it opens"),
        *("before the night", "the night begins", "the night's end", "over new year"),
        *("a night of six hours", "a night of eight hours", "the time that is left out", "comes later"),
        *("closes at the first of two", "and not at the second", "opens at the first of two"),
    ],
)
def test_a_window_is_open_between_its_times(window: tuple[str, str, str], now: str, closes: str | None) -> None:
    expected = None if closes is None else datetime.fromisoformat(f"{closes}:00Z") if closes.startswith("2027") else at(closes)
    assert DailyWindow.of(*window).closing(at(now)) == expected


@pytest.mark.parametrize(
    ("window", "moment", "opens"),
    [
        (("22:00", "05:00", ROME), "06-01T12:00", "06-01T20:00"),
        (("22:00", "05:00", ROME), "06-01T20:00", "06-02T20:00"),
        (("22:00", "05:00", ROME), "06-02T03:00", "06-02T20:00"),
        (("02:30", "04:00", ROME), "03-28T12:00", "03-29T01:30"),
        (("02:30", "03:15", ROME), "03-28T12:00", "03-30T00:30"),
        (("02:10", "02:40", ROME), "03-28T12:00", "03-29T01:10"),
    ],
    ids=[
        "today",
        "not the one that opens now",
        "after its end",
        "the time that is left out",
        "a day without a window",
        "all of it left out",
    ],
)
def test_it_opens_next_after_a_moment(window: tuple[str, str, str], moment: str, opens: str) -> None:
    assert DailyWindow.of(*window).opening_after(at(moment)) == at(opens)


@pytest.mark.parametrize("name", ["Europe/Nowhere", "America", "../etc/passwd", ""])
def test_a_time_zone_that_there_is_not_is_refused(name: str) -> None:
    with pytest.raises(UnknownTimeZoneError):
        DailyWindow.of("22:00", "05:00", name)


TIMES = st.tuples(st.integers(0, 23), st.integers(0, 59)).map(lambda time: f"{time[0]:02d}:{time[1]:02d}")


@given(
    TIMES, TIMES, st.sampled_from(["UTC", ROME, "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia"]), st.integers(0, 3 * 365 * 1440)
)
def test_a_window_that_opens_is_open_then_and_closes_before_it_opens_the_day_after_next(
    opens: str, closes: str, zone: str, minutes: int
) -> None:
    if opens == closes:
        return
    window, moment = DailyWindow.of(opens, closes, zone), datetime(2025, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    following = window.opening_after(moment)
    ends = window.closing(following)
    assert moment < following <= moment + timedelta(days=3)
    assert ends is not None
    assert following < ends <= following + timedelta(days=1, hours=1)
    assert window.closing(ends - timedelta(minutes=1)) == ends
    told = (ends.astimezone(ZoneInfo(zone)).strftime("%H:%M"), ends.utcoffset())
    assert told[1] == timedelta(0)
