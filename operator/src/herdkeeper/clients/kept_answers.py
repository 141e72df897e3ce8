"""Answers that took long to find, kept for whoever only waits. Nothing is done by an answer that was kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Kept:
    """A question, its answer, and how many seconds ago it was found."""

    question: Any
    answer: Any
    age_seconds: float


class KeptAnswers:
    """The last answer of each place. Any thread may use it."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._kept: dict[str, tuple[float, Any, Any]] = {}
        self._lock = threading.Lock()

    def keep(self, place: str, question: Any, answer: Any) -> None:
        """Replaces what was kept of this place."""
        with self._lock:
            self._kept[place] = (self._now(), question, answer)

    def forget(self, place: str) -> None:
        """Nothing is known of this place any more."""
        with self._lock:
            self._kept.pop(place, None)

    def of(self, place: str) -> Kept | None:
        """What was kept of a place."""
        with self._lock:
            found = self._kept.get(place)
        return None if found is None else Kept(found[1], found[2], self._now() - found[0])
