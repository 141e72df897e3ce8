"""What signals do while a command has something to take back."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType

TO_END = [signal.Signals[name] for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]  # Windows has no SIGHUP


@contextmanager
def handled(handler: Callable[[int, FrameType | None], object], numbers: Iterable[signal.Signals]) -> Iterator[None]:
    """Handles these signals meanwhile."""
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def ending_like_ctrl_c() -> AbstractContextManager[None]:
    """Lets signals to end, such as that of a closed terminal, end a command like Ctrl-C. By default the process ends at once."""
    return handled(signal.default_int_handler, TO_END)
