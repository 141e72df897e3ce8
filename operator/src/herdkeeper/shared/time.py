"""Times as Kubernetes writes them, and time zones."""

from __future__ import annotations

import datetime
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


def text_of_now() -> str:
    """Formats the current time."""
    return text_of(datetime.datetime.now(datetime.UTC))


def text_of(moment: datetime.datetime) -> str:
    """Formats a time in UTC and whole seconds."""
    return moment.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
