"""Resources that were deleted under deletionPolicy Delete before their finalizer was there.

Whoever sets the policy and deletes in the same moment is quicker than the operator, and Kubernetes then keeps nothing of the resource. The
watch tells what it was. This is remembered in the process alone: where that ends meanwhile, data stays.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from herdkeeper.shared.objects import Json


@dataclass(frozen=True)
class Departure:
    """The resource as it was last, and for how many seconds it has been gone."""

    document: Json
    seconds: float


class Departed:
    """By the key of the resource. Any thread may use it."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._found: dict[Hashable, tuple[float, Json]] = {}
        self._lock = threading.Lock()

    def add(self, key: Hashable, document: Json) -> None:
        """A resource is gone, and its data shall go too."""
        with self._lock:
            self._found[key] = (self._now(), document)

    def get(self, key: Hashable) -> Departure | None:
        """What is left to do; None when nothing is."""
        with self._lock:
            found = self._found.get(key)
        return None if found is None else Departure(found[1], self._now() - found[0])

    def forget(self, key: Hashable) -> None:
        """All is done, or another resource has the name by now: the data is that one's."""
        with self._lock:
            self._found.pop(key, None)
