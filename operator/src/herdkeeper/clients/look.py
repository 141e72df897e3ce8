"""The limits of an observation: untrusted servers may answer a little at a time, or a lot each time.

A worker starts the limits, and reads in many steps check them. They apply to the worker's own thread.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

LONGEST_LOOK_SECONDS = 240.0
"""Below the time after which a worker counts as hanging (process/workers.py)."""

MOST_LOOK_BYTES = 16 << 20
"""What one observation reads from ZooKeeper: several at once must fit into the operator's memory. A large cluster's takes a few MiB."""


@dataclass
class _Limits:
    ends_at: float
    most_bytes: int
    bytes_left: int


_limits: ContextVar[_Limits | None] = ContextVar("look_limits", default=None)


@contextmanager
def look(seconds: float = LONGEST_LOOK_SECONDS, most_bytes: int = MOST_LOOK_BYTES) -> Iterator[None]:
    """Limits all reads within it to so many seconds, and so many bytes, in total."""
    before = _limits.set(_Limits(time.monotonic() + seconds, most_bytes, most_bytes))
    try:
        yield
    finally:
        _limits.reset(before)


def require_time() -> None:
    """Raises TimeoutError after the limit."""
    limits = _limits.get()
    if limits is not None and time.monotonic() > limits.ends_at:
        raise TimeoutError("this observation took too long: the servers answer too slowly")


def require_room(read: int) -> None:
    """Counts bytes that were read. Raises OSError above the limit."""
    limits = _limits.get()
    if limits is None:
        return
    limits.bytes_left -= read
    if limits.bytes_left < 0:
        raise OSError(f"this observation was given up: it read more than {limits.most_bytes} bytes")


def make_room(dropped: int) -> None:
    """Takes back the count of bytes that were read and are no longer kept."""
    require_room(-dropped)
