"""Waits for conditions, for all tests with real servers."""

from __future__ import annotations

from collections.abc import Callable

from herdkeeper_e2e.waiting import Limit, Pending, wait_for

_EACH_SECONDS = 0.2


def wait_until(what: str, true: Callable[[], bool], seconds: float, words: Callable[[], str] = lambda: "it is not so") -> None:
    """Polls a condition. Raises WaitError after these seconds, with `what` and the last `words`."""
    wait_for(what, lambda: true() or Pending(words()), Limit(seconds, _EACH_SECONDS))
