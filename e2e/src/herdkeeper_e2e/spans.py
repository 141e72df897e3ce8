"""Checks whether something happened during something else, so that a fault is *in the middle* of a job. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime


class NeverSaidError(LookupError):
    """A log lacks such a line. The message has the words."""


@dataclass(frozen=True)
class Span:
    """From `begin` to `end`, both with offsets, by synchronized clocks."""

    what: str
    begin: datetime
    end: datetime


def why_not_within(inner: Span, outer: Span) -> str | None:
    """Returns why a span is not within another one, or None."""
    if inner.begin < outer.begin:
        return f"{inner.what} began {(outer.begin - inner.begin).total_seconds():.1f} s before {outer.what}"
    if inner.end > outer.end:
        return f"{inner.what} ended {(inner.end - outer.end).total_seconds():.1f} s after {outer.what}"
    return None


def line_with(log: Iterable[str], words: str) -> str:
    """Returns the first line of a log with these words. Raises NeverSaidError."""
    for line in log:
        if words in line:
            return line
    raise NeverSaidError(f"the log has no line with {words!r}")


def said_at(line: str) -> datetime:
    """Returns the time of a line of `kubectl logs --timestamps`: RFC 3339 at its beginning."""
    return datetime.fromisoformat(line.split(maxsplit=1)[0])
