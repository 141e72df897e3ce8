"""Keeps the bytes that a reader takes from a bookie below a budget."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class RateLimit:
    """Spending puts a debt in time; the caller sleeps it off before going on. Idle time is not saved up, so there are no bursts.

    Several threads may spend from the same.
    """

    bytes_per_second: float
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    free_at: float = field(default=0.0, init=False)
    """From when on, by the clock, the budget allows more."""
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    def spend(self, count: int) -> None:
        """Accounts `count` bytes and waits until the budget allows the next ones."""
        now = self.clock()
        free_at = self.owe(count)
        if free_at > now:
            self.sleep(free_at - now)

    def owe(self, count: int) -> float:
        """Accounts `count` bytes without waiting: who spends next waits for these as well. From when on the budget allows more."""
        with self._lock:
            self.free_at = max(self.free_at, self.clock()) + count / self.bytes_per_second
            return self.free_at


def unlimited() -> RateLimit:
    """A limit that never waits."""
    return RateLimit(float("inf"))
