"""Resources that were deleted under deletionPolicy Delete before their finalizer was there.

A user who sets the policy and deletes at once is faster than the operator, and Kubernetes then keeps nothing of the resource. The watch
event has its last state. Only the process remembers it: when the process ends first, data stays.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from herdkeeper.shared.objects import Json


@dataclass(frozen=True)
class DeletedResource:
    """The resource as it was last, and for how many seconds it has been gone."""

    document: Json
    seconds: float


class DeletedResources:
    """By the key of the resource. Any thread may use it."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._found: dict[Hashable, tuple[float, Json]] = {}
        self._lock = threading.Lock()

    def add(self, key: Hashable, document: Json) -> None:
        """A resource was deleted, and its data must be deleted too."""
        with self._lock:
            self._found[key] = (self._now(), document)

    def get(self, key: Hashable) -> DeletedResource | None:
        """The deleted resource; None when there is none."""
        with self._lock:
            found = self._found.get(key)
        return None if found is None else DeletedResource(found[1], self._now() - found[0])

    def forget(self, key: Hashable) -> None:
        """Its data is deleted, or another resource has the name now and owns the data."""
        with self._lock:
            self._found.pop(key, None)
