"""A moment of a log as a user names it: now, an LSN, or a time."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from herdkeeper_jobs.wal.lsn import Lsn

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MILLISECOND = datetime.timedelta(milliseconds=1)
_FIRST_MILLIS = (datetime.datetime.min.replace(tzinfo=datetime.UTC) - _EPOCH) // _MILLISECOND
_LAST_MILLIS = (datetime.datetime.max.replace(tzinfo=datetime.UTC) - _EPOCH) // _MILLISECOND


@dataclass(frozen=True, slots=True)
class Time:
    """A time in milliseconds since the epoch, like HerdDB's stamps; `text` as written."""

    millis: int
    text: str


def parse_moment(text: str) -> Lsn | Time | None:
    """Parses `now` (None), `LEDGER,ENTRY`, or a time of RFC 3339 with its offset; parts of a millisecond are dropped.

    Raises ValueError, naming the text and the forms.
    """
    if text == "now":
        return None
    if "," in text:
        return Lsn.parse(text)
    try:
        time = datetime.datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None or "T" not in text:
        raise ValueError(
            f"{text!r} is not a moment: expected now, LEDGER,ENTRY, or a time with its offset, for example 2026-11-21T14:30:00Z"
        )
    return Time((time - _EPOCH) // _MILLISECOND, text)


def stamp(millis: int) -> str:
    """Formats a time of the log in UTC, to the millisecond (RFC 3339), limited to the years 1 to 9999."""
    within = min(max(millis, _FIRST_MILLIS), _LAST_MILLIS)
    return (_EPOCH + within * _MILLISECOND).isoformat(timespec="milliseconds").replace("+00:00", "Z")
