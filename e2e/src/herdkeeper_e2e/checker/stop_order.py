"""How a program inside a pod is told to stop: by a line of its standard input, or the end of that."""

from __future__ import annotations

import os
import threading


def stop_when_told(stop: threading.Event) -> None:
    """Comes back once `stop` is set; for a thread of its own."""
    # not sys.stdin: a thread that holds its lock aborts the interpreter at its end
    while (piece := os.read(0, 4096)) and b"stop" not in piece:
        pass
    stop.set()
