"""Whether something happened while something else went on: what makes a fault one *in the middle* of a job. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime


class NeverSaidError(LookupError):
    """A log has no such line; the message names the words."""


@dataclass(frozen=True)
class Span:
    """From `begin` to `end`, both with their offsets, by clocks that tell the same time."""

    what: str
    begin: datetime
    end: datetime


def why_not_within(inner: Span, outer: Span) -> str | None:
    """Why a span does not lie within another one; None when it does."""
    if inner.begin < outer.begin:
        return f"{inner.what} began {(outer.begin - inner.begin).total_seconds():.1f} s before {outer.what}"
    if inner.end > outer.end:
        return f"{inner.what} ended {(inner.end - outer.end).total_seconds():.1f} s after {outer.what}"
    return None


def line_with(log: Iterable[str], words: str) -> str:
    """The first line of a log that has these words. Raises NeverSaidError."""
    for line in log:
        if words in line:
            return line
    raise NeverSaidError(f"the log has no line with {words!r}")


def said_at(line: str) -> datetime:
    """When a line was written, of a log that `kubectl logs --timestamps` printed: RFC 3339 at its beginning."""
    return datetime.fromisoformat(line.split(maxsplit=1)[0])
