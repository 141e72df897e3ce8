"""Reasons are classified one by one."""

from __future__ import annotations

import pytest

from herdkeeper.shared.reason import Reason


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_says_what_it_means_for_the_declared_state(reason: Reason):
    """A KeyError: put the reason into the table in shared/reason.py. Tools that wait for a resource depend on it."""
    assert reason.bearing.value
