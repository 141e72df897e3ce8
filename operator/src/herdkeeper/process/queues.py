"""The queues of the two controllers: each resource has a key in the first, a HerdDBCluster also one in that of leadership."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.api import HerdDBCluster
from herdkeeper.engine.key import Key
from herdkeeper.engine.queue import KeyQueue


@dataclass(frozen=True)
class Queues:
    """Both of them."""

    resources: KeyQueue[Key]
    leadership: KeyQueue[Key]

    def changed(self, key: Key) -> None:
        """Something changed: have a resource looked at by whoever has to do with it."""
        for queue in self._of(key):
            queue.changed(key)

    def hurry(self, key: Key) -> None:
        """The same at once: a server was lost."""
        for queue in self._of(key):
            queue.add(key, 0.0)

    def _of(self, key: Key) -> tuple[KeyQueue[Key], ...]:
        return (self.leadership, self.resources) if key.kind == HerdDBCluster.KIND else (self.resources,)

    def close(self) -> None:
        """Nobody gets another key."""
        self.leadership.close()
        self.resources.close()
