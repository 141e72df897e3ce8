"""Times as Kubernetes writes them, and time zones."""

from __future__ import annotations

import datetime
from typing import Literal
from zoneinfo import ZoneInfo


class UnknownTimeZoneError(ValueError):
    """Raised for a time zone that does not exist."""


def time_zone_of(name: str) -> ZoneInfo:
    """Raises UnknownTimeZoneError."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # OSError: the name of a folder of the time zone database, e.g. `America`
        raise UnknownTimeZoneError(name) from error


def moment_of(text: str | None) -> datetime.datetime | None:
    """Parses a time (RFC 3339). Returns None if it is invalid."""
    try:
        found = datetime.datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return found if found.tzinfo is not None else None


def moment_of_millis(millis: int) -> datetime.datetime:
    """Returns a time in UTC from Unix milliseconds."""
    return datetime.datetime.fromtimestamp(millis / 1000, datetime.UTC)


def text_of_now() -> str:
    return text_of(datetime.datetime.now(datetime.UTC))


def text_of(moment: datetime.datetime, precision: Literal["seconds", "milliseconds"] = "seconds") -> str:
    """Formats a time in UTC; what is finer is cut off."""
    return moment.astimezone(datetime.UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def text_of_millis(millis: int) -> str:
    """Formats Unix milliseconds, in UTC."""
    return text_of(moment_of_millis(millis), "milliseconds")
