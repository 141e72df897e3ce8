"""Waits for a condition, never for a time: a question is repeated until it is answered or a limit is reached."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Pending:
    """Not yet; `reason` is what is missing."""

    reason: str


class WaitError(RuntimeError):
    """The limit was reached. The message has what was awaited, for how long, and what was missing."""


@dataclass(frozen=True)
class Limit:
    """How long to ask, in seconds, and how often. Tests can replace the clock."""

    seconds: float
    interval: float = 1.0
    now: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep


def wait_for(what: str, question: Callable[[], Answer | Pending], limit: Limit, say: Callable[[str], None] | None = None) -> Answer:
    """Ask until the answer is not `Pending`, and return it. `say` gets each new reason once.

    Raises WaitError at the limit, and TypeError for False, which would end the wait.
    """
    deadline = limit.now() + limit.seconds
    said = ""
    while True:
        answer = question()
        if answer is False:
            raise TypeError(f"{what}: False is an answer; return Pending with what is missing")
        if not isinstance(answer, Pending):
            return answer
        if answer.reason != said:
            said = answer.reason
            if say is not None:
                say(said)
        if limit.now() >= deadline:
            raise WaitError(f"{what} did not happen within {limit.seconds:g} s: {answer.reason}")
        limit.pause(limit.interval)
