"""A pytest plugin for interactive runs: `-p herdkeeper_e2e.bounded_tests --begin-within SECONDS`. Tests that get no time are skipped, with
the reason.
"""

from __future__ import annotations

import time

import pytest

REASON = "not begun within the time that was given: make unit-reached runs all that the change reaches"
_BEGAN = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--begin-within", type=float, required=True, metavar="SECONDS", help="begin no test later than this after the first")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test and its fixtures if it is too late. The first one always runs."""
    now = time.monotonic()
    if now - item.config.stash.setdefault(_BEGAN, now) > item.config.getoption("--begin-within"):
        pytest.skip(REASON)
