"""How a user may write a moment of a log."""

from __future__ import annotations

import pytest

from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.moment import Time, parse_moment, stamp


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("now", None),
        ("12,340", Lsn(12, 340)),
        ("1970-01-01T00:00:01Z", Time(1000, "1970-01-01T00:00:01Z")),
        ("1970-01-01T01:00:01.5+01:00", Time(1500, "1970-01-01T01:00:01.5+01:00")),
        ("1970-01-01T00:00:00.001999999Z", Time(1, "1970-01-01T00:00:00.001999999Z")),
    ],
)
def test_a_moment_is_now_an_lsn_or_a_time_to_the_millisecond(text: str, moment: Lsn | Time | None) -> None:
    assert parse_moment(text) == moment


@pytest.mark.parametrize("text", ["yesterday", "2026-11-21", "2026-11-21T14:30:00", "2026-02-30T00:00:00Z", "12,", "12,x", "12:340"])
def test_an_invalid_moment_is_refused_with_the_text_and_the_form(text: str) -> None:
    with pytest.raises(ValueError, match=f"'{text}' is not .*expected .*LEDGER,ENTRY"):
        parse_moment(text)


@pytest.mark.parametrize(
    ("millis", "text"),
    [(0, "1970-01-01T00:00:00.000Z"), (1700000000123, "2023-11-14T22:13:20.123Z"), (2**62, "9999-12-31T23:59:59.999Z")],
)
def test_a_stamp_is_printed_in_utc_to_the_millisecond(millis: int, text: str) -> None:
    assert stamp(millis) == text
    assert parse_moment(text) == Time(min(millis, 253402300799999), text)
