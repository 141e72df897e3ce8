"""Long reads, page by page, beside the reconciles that ask for them.

A few threads read the pages of all reads. So no reconcile waits for a long read. Next comes the read that has held a thread for the
shortest time: a slow ensemble delays another one's read by a page, not by a page for each of its pages. A page that failed is read again:
the pages before it count, also after the loss of a session.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import structlog

from herdkeeper.clients.look import look
from herdkeeper.clients.zookeeper import EnsembleError
from herdkeeper.clients.zookeeper_member import Wake
from herdkeeper.shared.unknown import Unknown

THREADS = 2
"""A silent ensemble holds one of them for some seconds a page."""
WAIT_SECONDS = 1.0
"""How long whoever begins a read waits for its end: most clusters have so few ledgers that it is there at once."""
PAGE_SECONDS = 60.0
AGAIN_SECONDS = 5.0
"""After this time a page that failed is read again."""
FORGOTTEN_SECONDS = 900.0
"""A read that nobody asked for since then is given up, and an answer so old is dropped: the cluster is probably gone."""
LONGEST_USE_SECONDS = 60.0
"""How old an answer may be that is acted by."""

logger = structlog.get_logger()


class PagedRead(Protocol):
    """A read that goes on where it stopped."""

    @property
    def progress(self) -> str:
        """What was read so far, as text."""

    def read_page(self) -> Any:
        """Reads the next page. Returns the answer after the last one, else None. After an EnsembleError the page is still to be read."""


@dataclass(frozen=True)
class Question:
    """`what` is to be read. `seen` is what was observed just before: the answer is good to act by while that still holds."""

    what: Any
    seen: Any


@dataclass(frozen=True)
class PagedAnswer:
    """What a read returned, how long it took, and how long ago it ended."""

    question: Question
    answer: Any
    seconds: float
    age_seconds: float


@dataclass(eq=False)
class _Running:
    place: str
    question: Question
    read: PagedRead
    began: float
    asked_at: float
    due: float
    held_seconds: float = 0.0
    at_work: bool = False
    trouble: str = ""
    wakes: set[Wake] = field(default_factory=set)


@dataclass
class _Ended:
    question: Question
    answer: Any
    began: float
    ended: float
    taken: bool = False

    def told(self, now: float) -> PagedAnswer:
        return PagedAnswer(self.question, self.answer, self.ended - self.began, now - self.ended)


class PagedReads:
    """One read a place, and the last answer of each. Thread-safe."""

    def __init__(self, now: Callable[[], float] = time.monotonic, wait_seconds: float = WAIT_SECONDS) -> None:
        self._now = now
        self._wait_seconds = wait_seconds
        self._changed = threading.Condition()
        self._running: dict[str, _Running] = {}
        self._ended: dict[str, _Ended] = {}
        self._threads = 0

    def ask(self, place: str, question: Question, begin: Callable[[], PagedRead], wake: Wake | None = None) -> str | None:
        """Begins a read, unless it is under way. Returns None if it ended in a moment, else how far it is; its end calls `wake`."""
        with self._changed:
            now = self._now()
            running = self._running.get(place)
            if running is None or running.question.what != question.what:
                running = self._running[place] = _Running(place, question, begin(), now, now, now)
                self._have_it_read()
                self._changed.wait_for(lambda: self._running.get(place) is not running, self._wait_seconds)
            running.asked_at = self._now()
            if self._running.get(place) is not running:
                return None
            if wake is not None:
                running.wakes.add(wake)
            return f"{running.read.progress}{running.trouble and f'; {running.trouble}'}"

    def last(self, place: str) -> PagedAnswer | None:
        """Returns the last answer of a place, for whoever only waits by it."""
        with self._changed:
            found = self._ended.get(place)
            return None if found is None else found.told(self._now())

    def take(self, place: str, question: Question) -> PagedAnswer | None:
        """Returns the answer to exactly this question, to act by it. It is taken once, and soon: what is done changes the next one."""
        with self._changed:
            found, now = self._ended.get(place), self._now()
            if found is None or found.taken or found.question != question or now - found.ended > LONGEST_USE_SECONDS:
                return None
            found.taken = True
            return found.told(now)

    def stop(self) -> None:
        """Give up all reads."""
        with self._changed:
            self._running.clear()
            self._changed.notify_all()

    def _have_it_read(self) -> None:
        self._changed.notify_all()
        if self._threads < THREADS:
            self._threads += 1
            threading.Thread(target=self._work, name="paged-read", daemon=True).start()

    def _work(self) -> None:
        while (running := self._next()) is not None:
            self._read(running)

    def _next(self) -> _Running | None:
        """Returns the due read that has held a thread for the shortest time. None if there is none for this thread: it ends."""
        with self._changed:
            while True:
                now = self._now()
                for place in [place for place, each in self._running.items() if now - each.asked_at > FORGOTTEN_SECONDS]:
                    del self._running[place]
                self._ended = {place: each for place, each in self._ended.items() if now - each.ended <= FORGOTTEN_SECONDS}
                waiting = [each for each in self._running.values() if not each.at_work]
                if not waiting:
                    self._threads -= 1
                    return None
                if due := [each for each in waiting if each.due <= now]:
                    first = min(due, key=lambda each: each.held_seconds)
                    first.at_work = True
                    return first
                self._changed.wait(min(each.due for each in waiting) - now)

    def _read(self, running: _Running) -> None:
        answer, trouble, began = None, "", self._now()
        try:
            with look(PAGE_SECONDS):
                answer = running.read.read_page()
        except EnsembleError as error:
            trouble = str(error)
        except Exception as error:  # an error of one read must not end the thread
            logger.exception("a read of many pages failed", place=running.place)
            answer = Unknown(f"{type(error).__name__}: {error}")
        with self._changed:
            running.at_work, running.trouble = False, trouble
            running.held_seconds += self._now() - began
            running.due = self._now() + (AGAIN_SECONDS if trouble else 0.0)
            if answer is None or self._running.get(running.place) is not running:
                return
            del self._running[running.place]
            self._ended[running.place] = _Ended(running.question, answer, running.began, self._now())
            self._changed.notify_all()
        for wake in running.wakes:
            try:
                wake(None)
            except Exception:  # the others wait, too
                logger.exception("the end of a read could not be told", place=running.place)
