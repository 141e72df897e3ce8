"""Stops a program inside a pod: by a line of its standard input, or its end."""

from __future__ import annotations

import os
import threading


def stop_when_told(stop: threading.Event) -> None:
    """Return once `stop` is set; for a thread of its own."""
    # not sys.stdin: a thread that holds its lock aborts the interpreter at its end
    while (piece := os.read(0, 4096)) and b"stop" not in piece:
        pass
    stop.set()
