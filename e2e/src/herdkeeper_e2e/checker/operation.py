"""What a client tried, when, and the outcome. Pure.

Times are seconds of the machine's monotonic clock. They compare clients in different pods, which run on one kernel in the test cluster.
There, Java's `System.nanoTime` and Python's `time.monotonic` read the same clock (CLOCK_MONOTONIC).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """What the client knows about the result."""

    OK = "ok"
    """It was acknowledged and took effect."""
    FAIL = "fail"
    """It certainly never takes effect: refused, rolled back, or never sent."""
    UNKNOWN = "unknown"
    """The answer was lost: it took effect, will later, or never."""


@dataclass(frozen=True)
class Add:
    """Rows inserted into the set as a whole: by one statement, or by several in a transaction."""

    rows: tuple[int, ...]


@dataclass(frozen=True)
class Write:
    """A register gets a value. Each register has one writer, whose values grow."""

    register: int
    value: int


@dataclass(frozen=True)
class Read:
    """All registers in one SELECT, with the result; empty until known."""

    values: Mapping[int, int]


@dataclass(frozen=True)
class Fault:
    """A fault of the nemesis."""

    name: str


Content = Add | Write | Read | Fault


@dataclass(frozen=True)
class Operation:
    """One operation, identified by `process` and `number`.

    `ended` is None if its end was not recorded; `leader` is the SQL node that answered, or empty. `ledger` is one in which this node had
    written an entry before a Write was sent, or while a Read was answered; None if unknown.
    """

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
        """`process/number`, which the rows of an Add contain."""
        return f"{self.process}/{self.number}"

    def __str__(self) -> str:
        ended = "?" if self.ended is None else f"{self.ended:.3f}"
        where = f" at {self.leader}" if self.leader else ""
        error = f" ({self.error})" if self.error else ""
        return f"{self.name} {self.content} {self.begun:.3f}..{ended} {self.outcome.value}{where}{error}"
