"""Keeps the bytes that a reader takes from a bookie below a budget."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class RateLimit:
    """Spending puts a debt in time; the caller sleeps it off before going on. Idle time is not saved up, so there are no bursts."""

    bytes_per_second: float
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _free_at: float = field(default=0.0, init=False)

    def spend(self, count: int) -> None:
        """Accounts `count` bytes and waits until the budget allows the next ones."""
        now = self.clock()
        self._free_at = max(self._free_at, now) + count / self.bytes_per_second
        if self._free_at > now:
            self.sleep(self._free_at - now)


def unlimited() -> RateLimit:
    """A limit that never waits."""
    return RateLimit(float("inf"))
