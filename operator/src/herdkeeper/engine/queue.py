"""A queue of keys to reconcile: debounced, delayed on request, and with one worker per key at a time."""

from __future__ import annotations

import heapq
import itertools
import math
import threading
import time
from collections import Counter
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

    One of the waiting workers is the timekeeper: it alone waits until the next key is due. The others wait until they are woken. A worker
    that takes a key wakes one of them, which takes the next key or becomes the timekeeper. So a key that becomes due wakes two workers,
    however many wait. A worker that gives its key back takes the next one itself, so it wakes nobody.
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
        self._lock = threading.RLock()
        self._order = itertools.count()
        self._idle: list[threading.Condition] = []
        """Of the workers that wait until they are woken. The last one is woken first, so that those that are never needed use no memory."""
        self._timekeeper: threading.Condition | None = None
        self._looks_at = math.inf
        """When the timekeeper looks for a key; -inf once it was woken, inf if there is none."""

    def __len__(self) -> int:
        with self._lock:
            return len(self._due)

    def __contains__(self, key: object) -> bool:
        with self._lock:
            return key in self._due

    def add(self, key: KeyType, delay_seconds: float = DEBOUNCE_SECONDS) -> None:
        """Queues a key for a time after the delay. An earlier time of a queued key stays."""
        with self._lock:
            moment = self.now() + delay_seconds
            if self._due.get(key, math.inf) > moment:
                self._due[key] = moment
                heapq.heappush(self._heap, (moment, next(self._order), key))
            self._wake_by(self._due[key])

    def changed(self, key: KeyType) -> None:
        """Queues a changed key: after the debounce, or later if it changes all the time."""
        with self._lock:
            now = self.now()
            spent = max(now, self._spent.get(key, now))
            moment = max(now + DEBOUNCE_SECONDS, spent - (BURST - 1) * CHANGE_SECONDS)
            if self._due.get(key, math.inf) > moment:
                self._spent[key] = spent + CHANGE_SECONDS
            self.add(key, moment - now)

    def forget(self, key: KeyType) -> None:
        """Forgets how often a key changed: its resource is deleted."""
        with self._lock:
            self._spent.pop(key, None)

    def take(self) -> KeyType | None:
        """Waits for the next due key that no worker has, and returns it. None once the queue is closed."""
        mine = threading.Condition(self._lock)
        with self._lock:
            while not self._closed:
                key, moment = self._next()
                if key is not None:
                    self._working[key], self._begun[key] = self.locks(key), self.now()
                    if self._heap:
                        self._wake_by(self._heap[0][0])
                    return key
                self._wait(mine, moment)
            return None

    def done(self, key: KeyType) -> None:
        """Gives a key back after success."""
        with self._lock:
            self._given_back(key)
            self._failures.pop(key, None)

    def failed(self, key: KeyType) -> float:
        """Gives a key back after a failure, and queues it again. Returns the delay in seconds, which doubles each time."""
        with self._lock:
            self._given_back(key)
            count = self._failures.get(key, 0)
            self._failures[key] = count + 1
        delay = min(LONGEST_RETRY_SECONDS, FIRST_RETRY_SECONDS * float(2 ** min(count, 10)))
        self.add(key, delay)
        return delay

    def close(self) -> None:
        """Makes `take` return None for every worker."""
        with self._lock:
            self._closed = True
            for each in (*self._idle, self._timekeeper):
                if each is not None:
                    each.notify()

    def _wait(self, mine: threading.Condition, moment: float) -> None:
        """Waits until this worker is woken or, as the timekeeper, until the moment."""
        if moment < math.inf and self._timekeeper is None:
            self._timekeeper, self._looks_at = mine, moment
            mine.wait(moment - self.now())
        else:
            self._wake_by(moment)  # the timekeeper may have looked before a place was free, and wait for longer
            self._idle.append(mine)
            mine.wait()
        if self._timekeeper is mine:
            self._timekeeper, self._looks_at = None, math.inf

    def _wake_by(self, moment: float) -> None:
        """Wakes a waiting worker, if there is one and none looks for a key by this moment."""
        if moment >= self._looks_at:
            return
        if self._timekeeper is None:
            if not self._idle:
                return
            self._timekeeper = self._idle.pop()
        self._looks_at = -math.inf
        self._timekeeper.notify()

    def _next(self) -> tuple[KeyType | None, float]:
        """Returns a key, or None and the moment at which another look may find one; infinite if only a change brings one."""
        busy = []
        found: KeyType | None = None
        moment, now, full = math.inf, self.now(), self._full()
        no_place = False in full and (True in full or not self._slow_shares)
        kept = {lock for key, taken in self._working.items() for lock in taken | self.locks(key)}
        workers = Counter(map(self.share, self._working))
        while self._heap and found is None and not no_place:
            due, order, key = self._heap[0]
            if self._due.get(key) != due:
                heapq.heappop(self._heap)  # it was added again for an earlier time, or taken
                continue
            if due > now:
                moment = due
                break
            heapq.heappop(self._heap)
            share, locks = self.share(key), self.locks(key)
            share_is_full = self.most_of_a_share is not None and workers[share] >= self.most_of_a_share
            if (share in self._slow_shares) in full or share_is_full or not kept.isdisjoint(locks):
                busy.append((due, order, key))
                kept |= locks
            else:
                del self._due[key]
                found = key
        for entry in busy:
            heapq.heappush(self._heap, entry)
        if self._heap and found is None and False in full:  # the first one that becomes slow makes place for a fast one
            fast = (begun for key, begun in self._begun.items() if self.share(key) not in self._slow_shares)
            moment = min(moment, max(self._heap[0][0], min(fast) + SLOW_SECONDS))
        return found, moment

    def _full(self) -> frozenset[bool]:
        """Returns whether the places of slow keys (True) and of fast ones (False) are taken."""
        if self.places is None:
            return frozenset()
        now = self.now()
        self._slow_shares.update(self.share(key) for key, begun in self._begun.items() if begun + SLOW_SECONDS <= now)
        slow = sum(self.share(key) in self._slow_shares for key in self._working)
        taken = {True: slow >= self.places.slow, False: len(self._working) - slow >= self.places.fast}
        return frozenset(which for which, full in taken.items() if full)

    def _given_back(self, key: KeyType) -> None:
        if key in self._working:
            note = self._slow_shares.add if self.now() - self._begun[key] >= SILENT_SECONDS else self._slow_shares.discard
            note(self.share(key))
            del self._working[key], self._begun[key]
