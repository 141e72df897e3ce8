"""Asks several bookies for the same: the next one as well when one does not answer soon, and takes the answer that comes first.

A bookie that hangs, and whose machine is gone, does not refuse: it is silent until the timeout. So each part of an answer is waited for
in a thread of its own, while the caller does nothing else, and when it is late another bookie is asked from there on. Whoever answers
later has its connection closed: its late answer is dropped with it, and the next question goes over a new one.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, TypeVar

from herdkeeper_jobs.bookkeeper.connection import BookieConnection, BookieUnreachableError
from herdkeeper_jobs.bookkeeper.rate_limit import RateLimit

_SLOW_SECONDS = 60.0
"""How long a bookie that was overtaken is asked last."""

Part = TypeVar("Part")
Reading = Callable[[BookieConnection], Iterator[Part]]
"""What is asked of a bookie; its answer comes in parts. It is called, and gone through, in a thread."""


def in_thread(call: Callable[[], Part]) -> Future[Part]:
    """Calls it in a thread that the end of the process does not wait for: a bookie may be silent longer than anybody cares."""
    future: Future[Part] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # who waits must hear of whatever it was
            future.set_exception(error)

    threading.Thread(target=run, name="bookie-read", daemon=True).start()
    return future


class NobodyAnsweredError(Exception):
    """None of the bookies answered."""

    def __init__(self, reasons: dict[str, str]) -> None:
        super().__init__("; ".join(reasons.values()))
        self.reasons = reasons
        """By bookie, in the order in which they were given."""


@dataclass(frozen=True, slots=True)
class BookieAccess:
    """How a bookie is reached, and its budget, which all connections to it share."""

    bookie_id: str
    connect: Callable[[str, RateLimit], BookieConnection]
    limit: RateLimit


class Asking(Generic[Part]):
    """One bookie that is being asked for something. Each part is received when it is wanted, and at no other time."""

    asked_at: float
    part: Future[Part]

    def __init__(self, access: BookieAccess, connection: BookieConnection | None, reading: Reading[Part]) -> None:
        self.bookie_id = access.bookie_id
        self.limit = access.limit
        self.connection = connection
        self.part_bytes = 0
        """Received with the newest part."""
        self._access = access
        self._reading = reading
        self._parts: Iterator[Part] | None = None
        self._lock = threading.Lock()
        self._receives = False
        self._left = False

    def want_next(self) -> None:
        """Begins to receive the next part; `part` is what becomes of it."""
        self._receives = True
        self.asked_at = time.monotonic()
        self.part = in_thread(self._receive)

    def late_at(self, patience_seconds: float) -> float:
        """From when on (monotonic clock) the part is late. While the bookie's budget is slept off it is not the bookie that is slow."""
        return max(self.asked_at, self.limit.free_at) + patience_seconds

    def leave(self) -> None:
        """Nothing more is wanted of it: its connection is closed, by whoever uses it now."""
        with self._lock:
            self._left = True
            if self.connection is None:
                return
            if self._receives:
                self.connection.interrupt()
            else:
                self.connection.close()

    def _receive(self) -> Part:
        try:
            if self._parts is None:
                self._parts = self._reading(self._connected())
            before = self.connection.bytes_received if self.connection is not None else 0
            part = next(self._parts)
            self.part_bytes = self.connection.bytes_received - before if self.connection is not None else 0
            return part
        finally:
            with self._lock:
                self._receives = False
                if self._left and self.connection is not None:
                    self.connection.close()

    def _connected(self) -> BookieConnection:
        if self.connection is None:
            connection = self._access.connect(self.bookie_id, self.limit)
            with self._lock:
                self.connection = connection
                if self._left:
                    raise BookieUnreachableError(self.bookie_id, "was left while it was connected to")
        assert self.connection is not None
        return self.connection


class Replicas:
    """The bookies of one task. One that failed is not asked again by this task; one that was overtaken is asked last for a while."""

    def __init__(self, connect: Callable[[str, RateLimit], BookieConnection], bytes_per_second: float, patience_seconds: float) -> None:
        """`bytes_per_second` is the budget of each bookie; after `patience_seconds` another one is asked as well (infinity: never)."""
        self.patience_seconds = patience_seconds
        self._most_patience = 8 * patience_seconds
        self._connect = connect
        self._bytes_per_second = bytes_per_second
        self._access: dict[str, BookieAccess] = {}
        self._idle: dict[str, BookieConnection] = {}
        self._asked: list[Asking[Any]] = []
        self._failed: dict[str, BookieUnreachableError] = {}
        self._slow_until: dict[str, float] = {}

    def __enter__(self) -> Replicas:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for asking in self._asked:
            asking.leave()
        for connection in self._idle.values():
            connection.close()

    def access(self, bookie_id: str) -> BookieAccess:
        """How a bookie is reached; the same each time."""
        if bookie_id not in self._access:
            self._access[bookie_id] = BookieAccess(bookie_id, self._connect, RateLimit(self._bytes_per_second))
        return self._access[bookie_id]

    def is_slow(self, bookie_id: str) -> bool:
        """Whether it was overtaken a while ago."""
        return time.monotonic() < self._slow_until.get(bookie_id, -math.inf)

    def next_part(self, current: Asking[Part] | None, bookies: Sequence[str], reading: Reading[Part]) -> tuple[Asking[Part], Part]:
        """The next part of an answer, and who gave it: the bookie that is asked already, or another one whose answer came first.

        `bookies` are asked in their order, and give by `reading` what comes next. Who is asked already may be None. Whoever is not given
        back is left. Raises NobodyAnsweredError.
        """
        racing = [] if current is None else [current]
        for asking in racing:
            asking.want_next()
        out_of_question = {*self._failed, *(asking.bookie_id for asking in racing)}
        untried = [bookie_id for bookie_id in bookies if bookie_id not in out_of_question]
        while True:
            if not racing and not untried:
                raise NobodyAnsweredError({bookie_id: str(self._failed[bookie_id]) for bookie_id in bookies if bookie_id in self._failed})
            if not racing:
                racing.append(self._start(untried.pop(0), reading))
            first = _first_done(racing, self.patience_seconds if untried else math.inf)
            if first is None:
                racing.append(self._start(untried.pop(0), reading))
                continue
            try:
                part = first.part.result()
            except BookieUnreachableError as error:
                self._failed[error.bookie_id] = error
                self._asked.remove(first)
                racing.remove(first)
                continue
            self._settle(first, racing)
            return first, part

    def finish(self, asking: Asking[Part]) -> None:
        """All that was asked for was received: its connection serves the next question."""
        self._asked.remove(asking)
        if asking.connection is not None:
            surplus = self._idle.pop(asking.bookie_id, None)
            if surplus is not None:
                surplus.close()
            self._idle[asking.bookie_id] = asking.connection

    def leave(self, asking: Asking[Part]) -> None:
        """More is under way, but it is not wanted: its connection is closed."""
        self._asked.remove(asking)
        asking.leave()

    def _start(self, bookie_id: str, reading: Reading[Part]) -> Asking[Part]:
        asking = Asking(self.access(bookie_id), self._idle.pop(bookie_id, None), reading)
        self._asked.append(asking)
        asking.want_next()
        return asking

    def _settle(self, first: Asking[Part], racing: list[Asking[Part]]) -> None:
        """The others are left. What they were asked for they have read, or will: it counts for their budgets, though nobody hears it."""
        for overtaken in racing[: racing.index(first)]:
            self._slow_until[overtaken.bookie_id] = time.monotonic() + _SLOW_SECONDS
        if len(racing) > 1 and first is racing[0]:
            # It is not this bookie alone that is slow: to ask more of them makes it worse.
            self.patience_seconds = min(2 * self.patience_seconds, self._most_patience)
        for other in racing:
            if other is not first:
                other.limit.owe(first.part_bytes)
                self.leave(other)


def _first_done(racing: list[Asking[Part]], patience_seconds: float) -> Asking[Part] | None:
    """The first that has its part, or an error; None when the newest one is late. Of several the one that was asked first."""
    while True:
        late_in = racing[-1].late_at(patience_seconds) - time.monotonic()
        wait([asking.part for asking in racing], None if math.isinf(late_in) else max(0.0, late_in), FIRST_COMPLETED)
        for asking in racing:
            if asking.part.done():
                return asking
        if racing[-1].late_at(patience_seconds) <= time.monotonic():
            return None
