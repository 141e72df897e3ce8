"""Threads that take keys from the queue and reconcile them."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field, replace

import structlog

from herdkeeper.clients.counters import QUEUED, RECONCILE_SECONDS, RECONCILES
from herdkeeper.clients.object_cache import ObjectCache
from herdkeeper.engine.execute import Hands
from herdkeeper.engine.queue import KeyQueue
from herdkeeper.engine.reconcile import Key, Outcome, Result, Steps, reconcile, steps_by_kind
from herdkeeper.settings import Settings

THREADS = 4
LONGEST_RECONCILE_SECONDS = 600.0
"""No call waits this long: a worker that does hangs, and the process is to be started anew."""
STOP_SECONDS = 15.0
"""Half of the pod's grace period."""

logger = structlog.get_logger()


@dataclass(frozen=True, eq=False)
class _Wake:
    """Has a resource looked at. Those of one resource are equal, so that ZooKeeper's client keeps one of them for each znode."""

    queue: KeyQueue[Key]
    key: Key

    def __call__(self, _: object) -> None:
        self.queue.add(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Wake) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass
class Workers:
    """`THREADS` workers on one queue."""

    settings: Settings
    hands: Hands
    queue: KeyQueue[Key]
    cache: ObjectCache
    _begun: dict[str, float] = field(default_factory=dict)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Begin to work."""
        steps = steps_by_kind(self.settings)
        for number in range(THREADS):
            thread = threading.Thread(target=self._work, args=(steps,), name=f"worker-{number}", daemon=True)
            thread.start()
            self._threads.append(thread)  # a probe that came between would take it for one that ended

    def stop(self) -> bool:
        """Take no further key, and wait a moment for those being worked on; whether all of them ended."""
        self.queue.close()
        deadline = time.monotonic() + STOP_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def trouble(self) -> str | None:
        """Why the process is not alive; None when it is."""
        dead = [thread.name for thread in self._threads if not thread.is_alive()]
        if dead:
            return f"ended: {', '.join(dead)}"
        longest = max((time.monotonic() - begun for begun in list(self._begun.values())), default=0.0)
        return f"a reconcile takes {longest:.0f} s" if longest > LONGEST_RECONCILE_SECONDS else None

    def _work(self, steps: dict[str, Steps]) -> None:
        name = threading.current_thread().name
        while (key := self.queue.take()) is not None:
            QUEUED.set(len(self.queue))
            self._begun[name] = time.monotonic()
            with structlog.contextvars.bound_contextvars(key=str(key)):
                self._reconcile(key, steps[key.kind])
            RECONCILE_SECONDS.labels(key.kind).observe(time.monotonic() - self._begun.pop(name))

    def _reconcile(self, key: Key, steps: Steps) -> None:
        begun = time.monotonic()
        try:
            world = replace(self.hands.world, wake=_Wake(self.queue, key.whole))
            result = reconcile(key, steps, replace(self.hands, world=world), self.cache)
        except Exception as error:  # the worker must outlive whatever one resource brings up
            delay = self.queue.failed(key)
            RECONCILES.labels(key.kind, Outcome.FAILED.value).inc()
            logger.exception("reconcile failed", error=str(error)[:500], again_in_seconds=delay)
            return
        RECONCILES.labels(key.kind, result.outcome.value).inc()
        if result.outcome is Outcome.FAILED:
            delay = self.queue.failed(key)
            if result.look_again_seconds is not None:
                delay = min(delay, self._delay(result, begun))
                self.queue.add(key, delay)
            logger.info("action to be tried again", again_in_seconds=delay)
            return
        self.queue.done(key)
        if key.only_leaders and (result.look_again_seconds is None or not self.queue.is_late(key.whole)):
            return  # the whole key comes by itself, and does this with the rest
        if result.outcome is not Outcome.GONE:
            self.queue.add(key, self._delay(result, begun))

    def _delay(self, result: Result, begun: float) -> float:
        """Until the next look: what was asked for, at the latest the resync, which is spread so that not all come at once.

        It was asked for by what was true when the last one began: how long that took is taken off, half of it at most, so that one which
        takes longer than it waits leaves the others room.
        """
        resync = self.settings.resync_seconds * random.uniform(0.8, 1.2)  # noqa: S311 - not for secrets
        asked = result.look_again_seconds
        return resync if asked is None else min(resync, max(asked / 2, asked - (time.monotonic() - begun)))
