"""Limits the bytes per second that a reader takes from a bookie."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class RateLimit:
    """A rate limit. Spending creates a debt in time, which the caller sleeps off. Idle time is not saved, so there are no bursts.

    Thread-safe.
    """

    bytes_per_second: float
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    free_at: float = field(default=0.0, init=False)
    """When the budget allows more, by the clock."""
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    def spend(self, count: int) -> None:
        """Accounts `count` bytes and waits until the budget allows more."""
        now = self.clock()
        free_at = self.owe(count)
        if free_at > now:
            self.sleep(free_at - now)

    def owe(self, count: int) -> float:
        """Accounts `count` bytes without waiting; the next caller of `spend` waits for them, too. Returns when the budget allows more."""
        with self._lock:
            self.free_at = max(self.free_at, self.clock()) + count / self.bytes_per_second
            return self.free_at
