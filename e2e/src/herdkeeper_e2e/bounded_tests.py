"""A plugin of pytest for runs that somebody waits for: `-p herdkeeper_e2e.bounded_tests --begin-within SECONDS`. What no longer had time is
counted as skipped, with the reason."""

from __future__ import annotations

import time

import pytest

REASON = "not begun within the time that was given: make unit-reached runs all that the change reaches"
_BEGAN = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option."""
    parser.addoption("--begin-within", type=float, required=True, metavar="SECONDS", help="begin no test later than this after the first")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leaves a test out, with its fixtures, when it is too late. The first one runs in any case."""
    now = time.monotonic()
    if now - item.config.stash.setdefault(_BEGAN, now) > item.config.getoption("--begin-within"):
        pytest.skip(REASON)
