"""Resources that were deleted with deletionPolicy Delete before they had their finalizer.

If a user sets the policy and deletes at once, Kubernetes keeps nothing of the resource. The watch event has its last state. Only this
process remembers it: if it ends first, data remains.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from herdkeeper.shared.objects import Json


@dataclass(frozen=True)
class DeletedResource:
    """The last state of the resource, and for how many seconds it has been gone."""

    document: Json
    seconds: float


class DeletedResources:
    """By the key of the resource. Thread-safe."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._found: dict[Hashable, tuple[float, Json]] = {}
        self._lock = threading.Lock()

    def add(self, key: Hashable, document: Json) -> None:
        """Add a deleted resource whose data must be deleted, too."""
        with self._lock:
            self._found[key] = (self._now(), document)

    def get(self, key: Hashable) -> DeletedResource | None:
        with self._lock:
            found = self._found.get(key)
        return None if found is None else DeletedResource(found[1], self._now() - found[0])

    def forget(self, key: Hashable, found: DeletedResource) -> None:
        """Forget it: its data is deleted, or belongs to a new resource of that name. One that was deleted since is remembered."""
        with self._lock:
            if key in self._found and self._found[key][1] is found.document:
                del self._found[key]
