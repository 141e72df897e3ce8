"""When the process of each SQL node was heard last, and what it said of itself.

Its stream writes it (process/node_streams.py), reconciles read it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from herdkeeper.protocol.self_report import SelfReport


class SignsOfLife:
    """By the uid of the node's pod. Any thread may use it."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._heard: dict[str, float] = {}
        self._said: dict[str, SelfReport] = {}
        self._lock = threading.Lock()

    def heard(self, uid: str, said: SelfReport | None = None) -> None:
        """A pod's process has just said that it lives, and what it knows of its connections."""
        with self._lock:
            self._heard[uid] = self._now()
            if said is None:
                self._said.pop(uid, None)
            else:
                self._said[uid] = said

    def forget(self, uid: str) -> None:
        """A pod's process is not silent: it has ended, or it was never heard."""
        with self._lock:
            self._heard.pop(uid, None)
            self._said.pop(uid, None)

    def silent_seconds(self, uid: str) -> float | None:
        """For how long a pod's process has said nothing; None when it was never heard, from which nothing follows."""
        with self._lock:
            heard = self._heard.get(uid)
        return None if heard is None else self._now() - heard

    def said(self, uid: str) -> SelfReport | None:
        """What a pod's process said last of its connections; None when it never did. It is as old as the process is silent."""
        with self._lock:
            return self._said.get(uid)
