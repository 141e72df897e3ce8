"""Races replicas: asks the next bookie, too, if one does not answer soon, and takes the first answer.

A bookie whose process hangs or whose machine is gone does not refuse: it is silent until the timeout. So each part of an answer is received
in a thread of its own. If it is late, another bookie is asked from there on. The loser's connection is closed, which drops its late answer.
The next request uses a new one.
"""

from __future__ import annotations

import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from types import TracebackType
from typing import Any, Generic, TypeVar

from herdkeeper_jobs.bookkeeper.connection import BookieConnection, BookieUnreachableError
from herdkeeper_jobs.bookkeeper.rate_limit import RateLimit

_SLOW_SECONDS = 60.0
"""How long an overtaken bookie is asked last."""

Part = TypeVar("Part")
Reading = Callable[[BookieConnection], Iterator[Part]]
"""Requests something from a bookie; the answer comes in parts. Called and iterated in a thread."""


def in_thread(call: Callable[[], Part]) -> Future[Part]:
    """Calls it in a daemon thread, so that a silent bookie does not delay the end of the process."""
    future: Future[Part] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # the waiting caller must get any error
            future.set_exception(error)

    threading.Thread(target=run, name="bookie-read", daemon=True).start()
    return future


class NobodyAnsweredError(Exception):
    """None of the bookies answered."""

    def __init__(self, reasons: dict[str, str]) -> None:
        super().__init__("; ".join(reasons.values()))
        self.reasons = reasons
        """By bookie, in the given order."""


Connect = Callable[[str, RateLimit], BookieConnection]
"""Connects to a bookie, within its budget."""


class Asking(Generic[Part]):
    """A request to one bookie. Each part is only received when wanted."""

    asked_at: float
    part: Future[Part]

    def __init__(self, bookie: tuple[str, RateLimit], connect: Connect, idle: BookieConnection | None, reading: Reading[Part]) -> None:
        """`bookie`: its id, and its budget, which all connections to it share. `idle`: a connection to use; None: connect."""
        self.bookie_id, self.limit = bookie
        self.connection = idle
        self.part_bytes = 0
        """Bytes received with the newest part."""
        self._connect = connect
        self._reading = reading
        self._parts: Iterator[Part] | None = None
        self._lock = threading.Lock()
        self._receives = False
        self._left = False

    def want_next(self) -> None:
        """Starts to receive the next part; `part` is its future."""
        self._receives = True
        self.asked_at = time.monotonic()
        self.part = in_thread(self._receive)

    def late_at(self, patience_seconds: float) -> float:
        """When the part is late, by the monotonic clock. Time in which the budget is slept off does not count."""
        return max(self.asked_at, self.limit.free_at) + patience_seconds

    def leave(self) -> None:
        """Abandons the request: the connection is closed, by the thread that uses it."""
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
            connection = self._connected()
            if self._parts is None:
                self._parts = self._reading(connection)
            before = connection.bytes_received
            part = next(self._parts)
            self.part_bytes = connection.bytes_received - before
            return part
        finally:
            with self._lock:
                self._receives = False
                if self._left and self.connection is not None:
                    self.connection.close()

    def _connected(self) -> BookieConnection:
        if self.connection is None:
            connection = self._connect(self.bookie_id, self.limit)
            with self._lock:
                self.connection = connection
                if self._left:
                    raise BookieUnreachableError(self.bookie_id, "was closed during the connection attempt")
        assert self.connection is not None
        return self.connection


class Replicas:
    """The bookies of one task. A failed one is not asked again by this task; an overtaken one is asked last for a while."""

    def __init__(self, connect: Connect, bytes_per_second: float, patience_seconds: float) -> None:
        """`bytes_per_second`: the budget of each bookie. After `patience_seconds` another one is asked, too (infinity: never)."""
        self.patience_seconds = patience_seconds
        self._most_patience = 8 * patience_seconds
        self._connect = connect
        self.limits: defaultdict[str, RateLimit] = defaultdict(lambda: RateLimit(bytes_per_second))
        """By bookie."""
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

    def is_slow(self, bookie_id: str) -> bool:
        """Whether it was overtaken recently."""
        return time.monotonic() < self._slow_until.get(bookie_id, -math.inf)

    def next_part(self, current: Asking[Part] | None, bookies: Sequence[str], reading: Reading[Part]) -> tuple[Asking[Part], Part]:
        """Returns the next part and its request: the current bookie's, or that of another one that answered first.

        `bookies` are asked in order; `reading` requests what comes next. `current` may be None. All other requests are abandoned. Raises
        NobodyAnsweredError.
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
            self._abandon_others(first, racing)
            return first, part

    def finish(self, asking: Asking[Part]) -> None:
        """Ends a fully received request; its connection serves the next one."""
        self._asked.remove(asking)
        if asking.connection is not None:
            surplus = self._idle.pop(asking.bookie_id, None)
            if surplus is not None:
                surplus.close()
            self._idle[asking.bookie_id] = asking.connection

    def leave(self, asking: Asking[Part]) -> None:
        """Abandons a request with parts under way: its connection is closed."""
        self._asked.remove(asking)
        asking.leave()

    def _start(self, bookie_id: str, reading: Reading[Part]) -> Asking[Part]:
        asking = Asking((bookie_id, self.limits[bookie_id]), self._connect, self._idle.pop(bookie_id, None), reading)
        self._asked.append(asking)
        asking.want_next()
        return asking

    def _abandon_others(self, first: Asking[Part], racing: list[Asking[Part]]) -> None:
        """Abandons the losers. Their bookies read the part anyway, so it counts for their budgets."""
        for overtaken in racing[: racing.index(first)]:
            self._slow_until[overtaken.bookie_id] = time.monotonic() + _SLOW_SECONDS
        if len(racing) > 1 and first is racing[0]:
            # Several bookies are slow: asking more of them makes it worse.
            self.patience_seconds = min(2 * self.patience_seconds, self._most_patience)
        for other in racing:
            if other is not first:
                other.limit.owe(first.part_bytes)
                self.leave(other)


def _first_done(racing: list[Asking[Part]], patience_seconds: float) -> Asking[Part] | None:
    """Returns the first request with a part or an error, by the order of asking; None if the newest one is late."""
    while True:
        late_in = racing[-1].late_at(patience_seconds) - time.monotonic()
        wait([asking.part for asking in racing], None if math.isinf(late_in) else max(0.0, late_in), FIRST_COMPLETED)
        for asking in racing:
            if asking.part.done():
                return asking
        if racing[-1].late_at(patience_seconds) <= time.monotonic():
            return None
