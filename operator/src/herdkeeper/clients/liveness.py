"""When each SQL node's process last reported, and its report.

process/node_streams.py writes it, reconciles read it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from herdkeeper.protocol.self_report import SelfReport


class NodeLiveness:
    """By the uid of the node's pod. Thread-safe."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._heard: dict[str, tuple[float, SelfReport | None]] = {}
        self._lock = threading.Lock()

    def heard(self, uid: str, report: SelfReport | None = None) -> None:
        """Record that a pod's process has just reported, perhaps with the state of its connections."""
        with self._lock:
            self._heard[uid] = self._now(), report

    def forget(self, uid: str) -> None:
        """Forget a pod: its process has ended, or was never heard from."""
        with self._lock:
            self._heard.pop(uid, None)

    def silent_seconds(self, uid: str) -> float | None:
        """Returns the seconds since a pod's process last reported. None if it never has, which means nothing."""
        with self._lock:
            heard = self._heard.get(uid)
        return None if heard is None else self._now() - heard[0]

    def last_report(self, uid: str) -> SelfReport | None:
        """Returns a process's last report about its connections, or None. Its age is `silent_seconds`."""
        with self._lock:
            return self._heard.get(uid, (0.0, None))[1]
