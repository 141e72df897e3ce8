"""The queues of the two controllers: one for all resources, and one for the leadership of HerdDBClusters."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.api import HerdDBCluster
from herdkeeper.engine.key import Key
from herdkeeper.engine.queue import KeyQueue


@dataclass(frozen=True)
class Queues:
    resources: KeyQueue[Key]
    leadership: KeyQueue[Key]

    def changed(self, key: Key) -> None:
        """Requeues a changed resource, for each controller that handles its kind."""
        for queue in self._of(key):
            queue.changed(key)

    def hurry(self, key: Key) -> None:
        """The same without a delay, since a server was lost."""
        for queue in self._of(key):
            queue.add(key, 0.0)

    def _of(self, key: Key) -> tuple[KeyQueue[Key], ...]:
        return (self.leadership, self.resources) if key.kind == HerdDBCluster.KIND else (self.resources,)

    def close(self) -> None:
        self.leadership.close()
        self.resources.close()
