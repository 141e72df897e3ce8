"""A cache of slow answers, for callers that only wait. No action is based on a cached answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class CachedAnswer:
    """A request, its cached answer, and its age in seconds."""

    request: Any
    answer: Any
    age_seconds: float


class AnswerCache:
    """The last answer of each place. Thread-safe."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._kept: dict[str, tuple[float, Any, Any]] = {}
        self._lock = threading.Lock()

    def keep(self, place: str, request: Any, answer: Any) -> None:
        """Replaces the cached answer of this place."""
        with self._lock:
            self._kept[place] = (self._now(), request, answer)

    def forget(self, place: str) -> None:
        """Removes the answer of this place."""
        with self._lock:
            self._kept.pop(place, None)

    def of(self, place: str) -> CachedAnswer | None:
        """Returns the cached answer of a place."""
        with self._lock:
            found = self._kept.get(place)
        return None if found is None else CachedAnswer(found[1], found[2], self._now() - found[0])
