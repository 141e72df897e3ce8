"""Whom a story names as leader: the operator would."""

from __future__ import annotations

from typing import Any

import pytest

from herdkeeper_e2e.fuzz.world import is_promotable

FOLLOWS: dict[str, Any] = {"role": "follower", "ready": True, "recoverable": True}


@pytest.mark.parametrize(
    ("other", "may"),
    [
        ({}, True),
        ({"role": "leader", "ready": False}, False),
        ({"role": "leader", "ready": True}, False),
        ({"role": "booting", "ready": False}, False),
        ({"recoverable": False}, False),
        ({"recoverable": None}, False),
    ],
)
def test_only_a_replica_that_follows_with_the_whole_log_is_named_as_leader(other: dict[str, Any], may: bool) -> None:
    assert is_promotable(FOLLOWS | other) is may


def test_a_node_that_tells_nothing_of_its_replica_is_not_named() -> None:
    assert not is_promotable({})
