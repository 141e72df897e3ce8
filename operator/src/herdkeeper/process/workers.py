"""Threads that take keys from a queue and reconcile them."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import structlog

from herdkeeper.clients.counters import QUEUED, RECONCILE_SECONDS, RECONCILES
from herdkeeper.clients.look import look
from herdkeeper.engine.execute import Clients
from herdkeeper.engine.key import Key
from herdkeeper.engine.queue import KeyQueue, Places
from herdkeeper.engine.result import Outcome, Result
from herdkeeper.settings import Settings

PLACES = Places(fast=4, slow=48)
"""Few reconciles compute at once, since they share one interpreter. More may wait for servers that are known to be slow.

A namespace has three of these at most (process/main.py), so 16 namespaces or more with silent servers are needed to take all the slow ones.
What is slow for another reason waits then. A thread that never ran takes 16 KiB of memory, one that ran 30 KiB or more. Both controllers
have 52, so the 36 more of each cost 1 to 3 MiB. Idle ones cost no CPU (engine/queue.py).
"""
THREADS = PLACES.fast + PLACES.slow
LONGEST_RECONCILE_SECONDS = 600.0
"""No call waits this long. A worker that does hangs, so the process must be restarted."""
STOP_SECONDS = 15.0
"""Half of the pod's grace period."""

logger = structlog.get_logger()


@dataclass(frozen=True, eq=False)
class _Wake:
    """Requeues a resource. Those of one resource are equal, so that ZooKeeper's client keeps one of them for each znode."""

    wake: Callable[[Key], None]
    key: Key

    def __call__(self, _: object) -> None:
        self.wake(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Wake) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


Reconcile = Callable[[Key, Clients], Result]


@dataclass
class Workers:
    """`threads` workers on one queue. `wake` is called with a resource if ZooKeeper's watches report a change. `controller` names the work
    in threads and metrics; if it is empty, metrics have the resource's kind.
    """

    settings: Settings
    clients: Clients
    queue: KeyQueue[Key]
    reconcile: Reconcile
    wake: Callable[[Key], None]
    controller: str = ""
    threads: int = THREADS
    _begun: dict[str, float] = field(default_factory=dict)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        for number in range(self.threads):
            thread = threading.Thread(target=self._work, name=f"{self.controller or 'worker'}-{number}", daemon=True)
            thread.start()
            self._threads.append(thread)  # only now, since a probe would take a thread that has not started for one that ended

    def stop(self) -> bool:
        """Take no further key, and wait a while for the running reconciles. Returns whether all of them ended."""
        self.queue.close()
        deadline = time.monotonic() + STOP_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def trouble(self) -> str | None:
        """Returns why the process is not alive, or None."""
        dead = [thread.name for thread in self._threads if not thread.is_alive()]
        if dead:
            return f"ended: {', '.join(dead)}"
        longest = max((time.monotonic() - begun for begun in list(self._begun.values())), default=0.0)
        return f"a reconcile takes {longest:.0f} s" if longest > LONGEST_RECONCILE_SECONDS else None

    def _work(self) -> None:
        name = threading.current_thread().name
        while (key := self.queue.take()) is not None:
            QUEUED.set(len(self.queue))
            self._begun[name] = time.monotonic()
            with structlog.contextvars.bound_contextvars(key=str(key)), look():
                self._reconcile(key)
            RECONCILE_SECONDS.labels(self.controller or key.kind).observe(time.monotonic() - self._begun.pop(name))

    def _reconcile(self, key: Key) -> None:
        begun = time.monotonic()
        try:
            reader = replace(self.clients.reader, wake=_Wake(self.wake, key))
            result = self.reconcile(key, replace(self.clients, reader=reader))
        except Exception as error:  # an error of one resource must not end the worker
            delay = self.queue.failed(key)
            RECONCILES.labels(self.controller or key.kind, Outcome.FAILED.value).inc()
            logger.exception("reconcile failed", error=str(error)[:500], again_in_seconds=delay)
            return
        RECONCILES.labels(self.controller or key.kind, result.outcome.value).inc()
        if result.outcome is Outcome.FAILED:
            delay = self.queue.failed(key)
            if result.requeue_after_seconds is not None:
                delay = min(delay, self._delay(result, begun))
                self.queue.add(key, delay)
            logger.info("a failed action will be retried", again_in_seconds=delay)
            return
        self.queue.done(key)
        if result.outcome is Outcome.GONE:
            self.queue.forget(key)
        else:
            self.queue.add(key, self._delay(result, begun))

    def _delay(self, result: Result, begun: float) -> float:
        """Returns the seconds until the next reconcile: the requested ones, at most the resync, which is jittered.

        The request counts from the begin of the last reconcile, so its duration is subtracted. At least half of the request remains, so
        that a slow reconcile leaves room for others.
        """
        resync = self.settings.resync_seconds * random.uniform(0.8, 1.2)  # noqa: S311 - not for secrets
        asked = result.requeue_after_seconds
        return resync if asked is None else min(resync, max(asked / 2, asked - (time.monotonic() - begun)))
