"""A queue of keys to reconcile: debounced, delayed on request, and with one worker per key at a time."""

from __future__ import annotations

import heapq
import itertools
import math
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

KeyType = TypeVar("KeyType", bound=Hashable)

DEBOUNCE_SECONDS = 0.2
"""Events come in bursts, e.g. half a dozen for the start of a pod. A burst is reconciled once."""
BURST = 10
"""So many changes of one key in a row are each handled after DEBOUNCE_SECONDS."""
CHANGE_SECONDS = 1.0
"""Beyond a burst, a changing key is handled once in this time, so that a noisy resource leaves room for others."""
FIRST_RETRY_SECONDS = 1.0
LONGEST_RETRY_SECONDS = 60.0
SLOW_SECONDS = 0.5
"""A worker that has a key for longer probably waits for a server, and leaves its place to another one."""
SILENT_SECONDS = 2.0
"""A key that took so long had a silent server. Shorter ones may just have had a busy machine, and must not queue behind silent ones."""


@dataclass(frozen=True)
class Places:
    """How many workers may have a key at a time: one of a fast share, or one of a slow share."""

    fast: int
    slow: int


@dataclass
class KeyQueue(Generic[KeyType]):
    """A queue of keys. A key that is added again before its time keeps the earlier time.

    A key waits while a worker has it, or has a key with a common lock (`locks`). Locks may change: a taken key holds those that it had when
    it was taken, and those that it has now. A key never overtakes an earlier one with a common lock. Workers have at most `most_of_a_share`
    keys of one `share` at a time, so a share never occupies all workers.

    A share is slow while a worker has one of its keys for SLOW_SECONDS, and after one that took SILENT_SECONDS until one is done sooner.
    Its keys have their own `places`, so that many silent servers do not delay what others do.
    """

    now: Callable[[], float] = time.monotonic
    locks: Callable[[KeyType], frozenset[Hashable]] = lambda key: frozenset({key})
    share: Callable[[KeyType], Hashable] = lambda key: key
    most_of_a_share: int | None = None
    places: Places | None = None
    _due: dict[KeyType, float] = field(default_factory=dict)
    _heap: list[tuple[float, int, KeyType]] = field(default_factory=list)
    _working: dict[KeyType, frozenset[Hashable]] = field(default_factory=dict)
    _begun: dict[KeyType, float] = field(default_factory=dict)
    _slow_shares: set[Hashable] = field(default_factory=set)
    _failures: dict[KeyType, int] = field(default_factory=dict)
    _spent: dict[KeyType, float] = field(default_factory=dict)
    """Until when the handled changes of a key would last at one per CHANGE_SECONDS (the generic cell rate algorithm)."""
    _closed: bool = False

    def __post_init__(self) -> None:
        self._condition = threading.Condition()
        self._order = itertools.count()

    def __len__(self) -> int:
        with self._condition:
            return len(self._due)

    def __contains__(self, key: object) -> bool:
        with self._condition:
            return key in self._due

    def add(self, key: KeyType, delay_seconds: float = DEBOUNCE_SECONDS) -> None:
        """Queues a key for a time after the delay. An earlier time of a queued key stays."""
        with self._condition:
            moment = self.now() + delay_seconds
            if key in self._due and self._due[key] <= moment:
                self._condition.notify()
                return
            self._due[key] = moment
            heapq.heappush(self._heap, (moment, next(self._order), key))
            self._condition.notify()

    def changed(self, key: KeyType) -> None:
        """Queues a changed key: after the debounce, or later if it changes all the time."""
        with self._condition:
            now = self.now()
            spent = max(now, self._spent.get(key, now))
            moment = max(now + DEBOUNCE_SECONDS, spent - (BURST - 1) * CHANGE_SECONDS)
            if self._due.get(key, math.inf) > moment:
                self._spent[key] = spent + CHANGE_SECONDS
            self.add(key, moment - now)

    def forget(self, key: KeyType) -> None:
        """Forgets how often a key changed: its resource is deleted."""
        with self._condition:
            self._spent.pop(key, None)

    def take(self) -> KeyType | None:
        """Waits for the next due key that no worker has, and returns it. None once the queue is closed."""
        with self._condition:
            while not self._closed:
                key, wait_seconds = self._next()
                if key is not None:
                    self._working[key], self._begun[key] = self.locks(key), self.now()
                    return key
                self._condition.wait(wait_seconds)
            return None

    def done(self, key: KeyType) -> None:
        """Gives a key back after success."""
        with self._condition:
            self._given_back(key)
            self._failures.pop(key, None)
            self._condition.notify_all()

    def failed(self, key: KeyType) -> float:
        """Gives a key back after a failure, and queues it again. Returns the delay in seconds, which doubles each time."""
        with self._condition:
            self._given_back(key)
            count = self._failures.get(key, 0)
            self._failures[key] = count + 1
            self._condition.notify_all()
        delay = min(LONGEST_RETRY_SECONDS, FIRST_RETRY_SECONDS * float(2 ** min(count, 10)))
        self.add(key, delay)
        return delay

    def close(self) -> None:
        """Makes `take` return None for every worker."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def _next(self) -> tuple[KeyType | None, float | None]:
        """Returns a key, or None and the seconds until one may be due."""
        busy = []
        kept: set[Hashable] = set()
        found: KeyType | None = None
        wait_seconds: float | None = None
        full = self._full()
        no_place = False in full and (True in full or not self._slow_shares)
        while self._heap and not no_place:
            moment, order, key = self._heap[0]
            if self._due.get(key) != moment:
                heapq.heappop(self._heap)  # it was added again for an earlier time, or taken
            elif moment > self.now():
                wait_seconds = moment - self.now()
                break
            else:
                heapq.heappop(self._heap)
                if (self.share(key) in self._slow_shares) in full or not self._free(key) or not kept.isdisjoint(self.locks(key)):
                    busy.append((moment, order, key))
                    kept |= self.locks(key)
                    continue
                del self._due[key]
                found = key
                break
        for entry in busy:
            heapq.heappush(self._heap, entry)
        if self._heap and found is None and False in full:  # the first one that becomes slow makes place for a fast one
            fast = (begun for key, begun in self._begun.items() if self.share(key) not in self._slow_shares)
            becomes_slow = min(fast) + SLOW_SECONDS - self.now()
            wait_seconds = becomes_slow if wait_seconds is None else min(wait_seconds, becomes_slow)
        return found, wait_seconds

    def _full(self) -> frozenset[bool]:
        """Returns whether the places of slow keys (True) and of fast ones (False) are taken."""
        if self.places is None:
            return frozenset()
        late = self.now() - SLOW_SECONDS
        self._slow_shares.update(self.share(key) for key, begun in self._begun.items() if begun <= late)
        slow = sum(self.share(key) in self._slow_shares for key in self._working)
        taken = {True: slow >= self.places.slow, False: len(self._working) - slow >= self.places.fast}
        return frozenset(which for which, full in taken.items() if full)

    def _given_back(self, key: KeyType) -> None:
        if key in self._working:
            note = self._slow_shares.add if self.now() - self._begun[key] >= SILENT_SECONDS else self._slow_shares.discard
            note(self.share(key))
            del self._working[key], self._begun[key]

    def _free(self, key: KeyType) -> bool:
        if self.most_of_a_share is not None:
            mine = self.share(key)
            if sum(self.share(other) == mine for other in self._working) >= self.most_of_a_share:
                return False
        wanted = self.locks(key)
        return all(wanted.isdisjoint(taken | self.locks(other)) for other, taken in self._working.items())
