"""Times as Kubernetes writes them."""

from __future__ import annotations

import datetime


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
