"""The queues of the two controllers: each resource has a key in the first, a HerdDBCluster also one in that of leadership."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.api import HerdDBCluster
from herdkeeper.engine.queue import DEBOUNCE_SECONDS, KeyQueue
from herdkeeper.engine.reconcile import Key


@dataclass(frozen=True)
class Queues:
    """Both of them."""

    resources: KeyQueue[Key]
    leadership: KeyQueue[Key]

    def add(self, key: Key, delay_seconds: float = DEBOUNCE_SECONDS) -> None:
        """Have a resource looked at by whoever has to do with it."""
        if key.kind == HerdDBCluster.KIND:
            self.leadership.add(key, delay_seconds)
        self.resources.add(key, delay_seconds)

    def close(self) -> None:
        """Nobody gets another key."""
        self.leadership.close()
        self.resources.close()
