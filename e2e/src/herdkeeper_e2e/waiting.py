"""Waiting for a condition, never for a time: a question is asked again until it has an answer or a limit is reached."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Pending:
    """Not yet; `reason` says what is still missing."""

    reason: str


class WaitError(RuntimeError):
    """The limit was reached; the message says what was waited for, how long, and what was still missing."""


@dataclass(frozen=True)
class Limit:
    """How long to ask, in seconds, and how often. The clock is replaceable for tests."""

    seconds: float
    interval: float = 1.0
    now: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep


def wait_for(what: str, question: Callable[[], Answer | Pending], limit: Limit, say: Callable[[str], None] | None = None) -> Answer:
    """Asks until the answer is not `Pending`, and returns it. `say` hears each new reason once.

    Raises:
        WaitError: not within the limit.
    """
    deadline = limit.now() + limit.seconds
    said = ""
    while True:
        answer = question()
        if not isinstance(answer, Pending):
            return answer
        if answer.reason != said:
            said = answer.reason
            if say is not None:
                say(said)
        if limit.now() >= deadline:
            raise WaitError(f"{what} did not happen within {limit.seconds:g} s: {answer.reason}")
        limit.pause(limit.interval)
