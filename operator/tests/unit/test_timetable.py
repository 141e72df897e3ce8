"""When a cron expression is due, summer time included."""

from __future__ import annotations

import datetime

import pytest

from herdkeeper.shared.timetable import Timetable, TimetableError, duration_of


def utc(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("expression", "zone", "moment", "latest", "after"),
    [
        ("0 3 * * *", "UTC", "2026-05-10T12:00", "2026-05-10T03:00", "2026-05-11T03:00"),
        ("0 3 * * *", "UTC", "2026-05-10T03:00", "2026-05-10T03:00", "2026-05-11T03:00"),
        ("0 3 * * *", "UTC", "2026-05-10T02:59:59.9", "2026-05-09T03:00", "2026-05-10T03:00"),
        ("*/5 * * * *", "UTC", "2026-05-10T12:03", "2026-05-10T12:00", "2026-05-10T12:05"),
        ("0 3 * * MON", "UTC", "2026-05-10T12:00", "2026-05-04T03:00", "2026-05-11T03:00"),
        ("0 3 29 2 *", "UTC", "2026-05-10T12:00", "2024-02-29T03:00", "2028-02-29T03:00"),
        ("30 2 * * *", "Europe/Vienna", "2026-01-10T12:00", "2026-01-10T01:30", "2026-01-11T01:30"),
        ("30 2 * * *", "Europe/Vienna", "2026-07-10T12:00", "2026-07-10T00:30", "2026-07-11T00:30"),
        # 29 March 2026: two o'clock is three; what was due between comes right after
        ("30 2 * * *", "Europe/Vienna", "2026-03-29T00:59", "2026-03-28T01:30", "2026-03-29T01:00"),
        ("30 2 * * *", "Europe/Vienna", "2026-03-29T01:01", "2026-03-29T01:00", "2026-03-30T00:30"),
        # 25 October 2026: three o'clock is two again; what is due between comes once
        ("30 2 * * *", "Europe/Vienna", "2026-10-25T00:29", "2026-10-24T00:30", "2026-10-25T00:30"),
        ("30 2 * * *", "Europe/Vienna", "2026-10-25T00:31", "2026-10-25T00:30", "2026-10-26T01:30"),
        ("30 2 * * *", "Europe/Vienna", "2026-10-25T01:15", "2026-10-25T00:30", "2026-10-26T01:30"),
        ("30 2 * * *", "Europe/Vienna", "2026-10-25T01:31", "2026-10-25T00:30", "2026-10-26T01:30"),
        # but what follows the hand of the clock goes on
        ("30 * * * *", "Europe/Vienna", "2026-10-25T01:15", "2026-10-25T00:30", "2026-10-25T01:30"),
    ],
)
def test_the_times_around_a_moment(expression, zone, moment, latest, after):
    timetable = Timetable.of(expression, zone)
    assert timetable.latest(utc(moment)) == utc(latest)
    assert timetable.after(utc(moment)) == utc(after)


CLOCK_CHANGES = [
    ("Europe/Vienna", "2026-03-29"),
    ("Europe/Vienna", "2026-10-25"),
    ("America/New_York", "2026-03-08"),
    ("America/New_York", "2026-11-01"),
    ("Australia/Lord_Howe", "2026-04-04"),  # by half an hour
    ("Australia/Lord_Howe", "2026-10-03"),
]


@pytest.mark.parametrize(("zone", "day"), CLOCK_CHANGES)
@pytest.mark.parametrize("expression", ["*/20 * * * *", "15,45 * * * *", "40 2 * * *", "10 1-3 * * *", "0 */2 * * *"])
def test_what_was_promised_as_next_is_the_latest_when_it_comes(expression, zone, day):
    timetable = Timetable.of(expression, zone)
    tick, end = timetable.after(utc(day)), utc(day) + datetime.timedelta(hours=20)
    while tick < end:
        following = timetable.after(tick)
        assert following > tick
        assert timetable.latest(tick) == tick
        assert timetable.latest(following - datetime.timedelta(seconds=1)) == tick
        tick = following


@pytest.mark.parametrize(
    ("expression", "zone", "field", "problem"),
    [
        ("0 3 * *", "UTC", "schedule", "it has 4 of the five fields of cron"),
        ("0 0 3 * * *", "UTC", "schedule", "it has 6 of the five fields of cron"),
        ("@daily", "UTC", "schedule", "it has 1 of the five fields of cron"),
        ("60 3 * * *", "UTC", "schedule", "cron can't read it (bad minute)"),
        ("0 3 * 13 *", "UTC", "schedule", "cron can't read it (bad month)"),
        ("0 3 * * FRY", "UTC", "schedule", "cron can't read it (bad day-of-week)"),
        ("0 3 */0 * *", "UTC", "schedule", "cron can't read it (bad day-of-month)"),
        ("0 3 31 2 *", "UTC", "schedule", "cron can't read it (bad day-of-month)"),
        ("0 3 * 2 MON#6", "UTC", "schedule", "cron can't read it (bad day-of-week)"),
        ("0 3 * * *", "Mars/Olympus", "timeZone", "this time zone does not exist"),
        ("0 3 * * *", "America", "timeZone", "this time zone does not exist"),
        ("0 3 * * *", "../etc/passwd", "timeZone", "this time zone does not exist"),
        ("0 3 * * *", "", "timeZone", "this time zone does not exist"),
    ],
)
def test_what_says_nothing_is_refused_by_field_and_problem(expression, zone, field, problem):
    with pytest.raises(TimetableError) as caught:
        Timetable.of(expression, zone)
    assert (caught.value.field, str(caught.value)) == (field, problem)


@pytest.mark.parametrize(("text", "hours"), [("90m", 1.5), ("36h", 36), ("30d", 720)])
def test_a_duration_has_a_unit(text, hours):
    assert duration_of(text) == datetime.timedelta(hours=hours)


@pytest.mark.parametrize("text", ["", "30", "d", "1w", "-1h", "1.5h"])
def test_a_duration_without_a_number_or_a_unit_is_refused(text):
    with pytest.raises(ValueError, match="a whole number with one of m, h and d"):
        duration_of(text)
