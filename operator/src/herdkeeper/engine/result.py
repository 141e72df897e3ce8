"""How a reconcile ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Outcome(Enum):
    """How a reconcile ended."""

    OK = "ok"
    REFUSED = "refused"
    FAILED = "failed"
    GONE = "gone"


@dataclass(frozen=True)
class Result:
    """`requeue_after_seconds` is None when only an event or the resync shall bring the key back; after a failure, when only its back-off
    shall."""

    outcome: Outcome
    requeue_after_seconds: float | None = None
