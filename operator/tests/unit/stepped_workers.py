"""Workers of a queue that run one at a time, each as far as the test lets it: until it waits, has a key, or gave one back."""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from herdkeeper.engine import queue as module
from herdkeeper.engine.queue import KeyQueue

MOST_STEPS = 10_000


class Worker:
    """`until` is when its wait ends by itself; `has` is its key; `fails`: how it gives the key back."""

    def __init__(self, workers: SteppedWorkers) -> None:
        self.waits_on: Condition | None = None
        self.until = math.inf
        self.has: str | None = None
        self.fails = False
        self.ended = False
        self._workers = workers
        self._error: BaseException | None = None
        self._go, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    @property
    def runs(self) -> bool:
        """Whether it is in `take`, and does not wait any more."""
        return not self.ended and self.has is None and (self.waits_on is None or self.until <= self._workers.seconds)

    def step(self) -> None:
        """Lets it run: it looks for a key, or gives its own back. Raises what it raised."""
        self.waits_on = None
        self._go.release()
        assert self._back.acquire(timeout=120)
        if self._error is not None:
            raise self._error

    def wait(self, condition: Condition, timeout: float | None) -> None:
        """Called by the queue, in its thread."""
        self.waits_on, self.until = condition, math.inf if timeout is None else self._workers.seconds + timeout
        self._pause()
        self._workers.wake_ups += 1

    def _pause(self) -> None:
        self._back.release()
        self._go.acquire()

    def _work(self) -> None:
        self._go.acquire()
        queue = self._workers.queue
        try:
            while (key := queue.take()) is not None:
                self.has = key
                self._pause()
                self.has = None
                (queue.failed if self.fails else queue.done)(key)
                self._pause()
        except BaseException as error:
            self._error = error
        self.ended = True
        self._back.release()


class Condition:
    """What the queue has for threading.Condition."""

    def __init__(self, workers: SteppedWorkers) -> None:
        self._workers = workers

    def __enter__(self) -> None:
        """Nobody else runs."""

    def __exit__(self, *_: object) -> None:
        """See above."""

    def wait(self, timeout: float | None = None) -> None:
        next(each for each in self._workers.all if each.thread is threading.current_thread()).wait(self, timeout)

    def notify(self, most: int = 1) -> None:
        for each in [worker for worker in self._workers.all if worker.waits_on is self][:most]:
            each.waits_on = None

    def notify_all(self) -> None:
        self.notify(len(self._workers.all))


class SteppedWorkers:
    """`queue` and its workers. `seconds` is the time. `wake_ups` counts waits that ended."""

    def __init__(self, patch: pytest.MonkeyPatch, count: int, **options: Any) -> None:
        patch.setattr(module, "threading", SimpleNamespace(RLock=nullcontext, Condition=lambda *_: Condition(self)))
        self.seconds = 0.0
        self.wake_ups = 0
        self.queue: KeyQueue[str] = KeyQueue(lambda: self.seconds, **options)
        self.all = [Worker(self) for _ in range(count)]

    @property
    def runnable(self) -> list[Worker]:
        return [each for each in self.all if each.runs]

    @property
    def busy(self) -> list[Worker]:
        return [each for each in self.all if each.has is not None]

    @property
    def waiting(self) -> list[Worker]:
        return [each for each in self.all if each.waits_on is not None and not each.runs]

    def settle(self) -> None:
        """Lets them run until each waits, or has a key."""
        for _ in range(MOST_STEPS):
            if not (runnable := self.runnable):
                return
            runnable[0].step()
        raise AssertionError("the workers look for keys again and again, and find none")

    def overlooked(self) -> str | None:
        """Returns what the workers that wait miss; None if one runs, or looks in time."""
        if self.runnable or not self.waiting:
            return None
        looker = copy.copy(self.queue)
        for name in ("_due", "_heap", "_working", "_begun", "_slow_shares"):
            setattr(looker, name, copy.copy(getattr(looker, name)))
        key, moment = looker._next()
        if key is not None:
            return f"{key} is due, and nobody takes it"
        first = min(each.until for each in self.waiting)
        return f"a key may be due at {moment}, and nobody looks before {first}" if first > moment else None

    def end(self) -> None:
        """Lets all of them end."""
        self.queue.close()
        for each in self.all:
            while not each.ended:
                each.step()
            each.thread.join(120)


@contextmanager
def stepped_workers(count: int, **options: Any) -> Iterator[SteppedWorkers]:
    """So many workers of a queue with these options."""
    with pytest.MonkeyPatch.context() as patch:
        workers = SteppedWorkers(patch, count, **options)
        try:
            yield workers
        finally:
            workers.end()
