"""Stops a program inside a pod: by a line of its standard input, or its end."""

from __future__ import annotations

import os
import threading


def stop_order() -> threading.Event:
    """Returns an event that is set once the program is told to stop."""
    stop = threading.Event()
    threading.Thread(target=_stop_when_told, args=(stop,), daemon=True).start()
    return stop


def _stop_when_told(stop: threading.Event) -> None:
    # not sys.stdin: a thread that holds its lock aborts the interpreter at its end
    while (piece := os.read(0, 4096)) and b"stop" not in piece:
        pass
    stop.set()
