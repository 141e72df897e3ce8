"""The time limit of an observation: untrusted servers may answer a little at a time.

A worker starts the limit, and reads in many steps check it. It applies to the worker's own thread.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LONGEST_LOOK_SECONDS = 240.0
"""Below the time after which a worker counts as hanging (process/workers.py)."""

_ends_at: ContextVar[float | None] = ContextVar("look_ends_at", default=None)


@contextmanager
def look(seconds: float = LONGEST_LOOK_SECONDS) -> Iterator[None]:
    """Limits all reads within it to so many seconds in total."""
    before = _ends_at.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _ends_at.reset(before)


def require_time() -> None:
    """Raises TimeoutError after the limit."""
    ends_at = _ends_at.get()
    if ends_at is not None and time.monotonic() > ends_at:
        raise TimeoutError("this observation took too long: the servers answer too slowly")
