"""What one client tried, when, and what became of it. Pure.

Times are seconds of the machine's monotonic clock. Clients in different pods are compared by them, so all pods run on one kernel, as
they do on the test cluster; Java's `System.nanoTime` and Python's `time.monotonic` read the same clock there (CLOCK_MONOTONIC).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """What the client knows afterwards."""

    OK = "ok"
    """Answered with success: it took effect."""
    FAIL = "fail"
    """It certainly had no effect, and never will: refused, rolled back, or never sent."""
    UNKNOWN = "unknown"
    """The answer was lost: it took effect, will do so later, or never will."""


@dataclass(frozen=True)
class Add:
    """Rows of the set, inserted as a whole: one statement, or one transaction of several."""

    rows: tuple[int, ...]


@dataclass(frozen=True)
class Write:
    """A register gets a value. Each register has one writer, whose values grow."""

    register: int
    value: int


@dataclass(frozen=True)
class Read:
    """All registers in one SELECT; what was found, empty while it is not known."""

    values: Mapping[int, int]


@dataclass(frozen=True)
class Fault:
    """What the nemesis did."""

    name: str


Content = Add | Write | Read | Fault


@dataclass(frozen=True)
class Operation:
    """One operation. `process` and `number` identify it; `ended` is None when its end was not recorded; `leader` is the SQL node that
    answered, empty where the client can't tell. `ledger` is one in which this node had written an entry of its log before a Write was
    sent, or while a Read was answered; None where the client can't tell."""

    process: str
    number: int
    content: Content
    begun: float
    ended: float | None
    outcome: Outcome
    leader: str = ""
    error: str = ""
    ledger: int | None = None

    @property
    def name(self) -> str:
        """`process/number`, which the rows of an Add carry."""
        return f"{self.process}/{self.number}"

    def __str__(self) -> str:
        ended = "?" if self.ended is None else f"{self.ended:.3f}"
        where = f" at {self.leader}" if self.leader else ""
        error = f" ({self.error})" if self.error else ""
        return f"{self.name} {self.content} {self.begun:.3f}..{ended} {self.outcome.value}{where}{error}"
