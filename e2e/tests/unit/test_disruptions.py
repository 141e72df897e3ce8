"""When servers were away, and which of them at the same time."""

from __future__ import annotations

import pytest

from herdkeeper_e2e.disruptions import Absence, Sight, absences, sight, together


def event(kind: str, ready: str, **metadata: str):
    status = {"conditions": [{"type": "Ready", "status": ready}]}
    return {"type": kind, "object": {"metadata": {"name": "a", **metadata}, "status": status}}


@pytest.mark.parametrize(
    ("told", "why_away"),
    [
        (event("MODIFIED", "True"), None),
        (event("ADDED", "False"), "not Ready"),
        (event("MODIFIED", "True", deletionTimestamp="2026-01-01T00:00:00Z"), "told to stop"),
        (event("DELETED", "True"), "gone"),
        ({"type": "ADDED", "object": {"metadata": {"name": "a"}}}, "not Ready"),
    ],
)
def test_a_pod_is_away_unless_it_is_ready_and_stays(told, why_away):
    assert sight(1.0, told) == Sight(1.0, "a", why_away)


def test_a_server_is_away_from_its_order_to_stop_until_a_pod_of_its_name_is_ready():
    seen = [Sight(1, "a", None), Sight(2, "a", "told to stop"), Sight(3, "a", "gone"), Sight(4, "a", "not Ready"), Sight(6, "a", None)]
    assert absences(seen) == [Absence("a", 2, 6, "told to stop")]
    assert absences(seen[:-1]) == [Absence("a", 2, None, "told to stop")]


def test_a_server_that_is_stopped_while_it_is_not_ready_was_stopped():
    seen = [Sight(1, "a", None), Sight(2, "a", "not Ready"), Sight(3, "a", "told to stop"), Sight(4, "a", "not Ready")]
    assert absences(seen) == [Absence("a", 2, None, "told to stop")]


def test_a_server_that_has_yet_to_come_is_not_away():
    assert absences([Sight(1, "a", "not Ready"), Sight(2, "a", "not Ready")]) == []


@pytest.mark.parametrize(
    ("situation", "found", "pairs"),
    [
        ("one after the other", [Absence("a", 1, 2, ""), Absence("b", 2, 3, "")], 0),
        ("the second begins before the first is back", [Absence("a", 1, 3, ""), Absence("b", 2, 5, "")], 1),
        ("the first never comes back", [Absence("a", 1, None, ""), Absence("b", 2, 5, "")], 1),
        ("the same one twice", [Absence("a", 1, 3, ""), Absence("a", 4, 5, "")], 0),
        ("a long one beside two", [Absence("a", 1, 9, ""), Absence("b", 2, 3, ""), Absence("c", 4, 5, "")], 2),
        ("a member waits for an election", [Absence("zk-zookeeper-2", 1, 9, "gone"), Absence("zk-zookeeper-0", 2, 3, "not Ready")], 0),
        ("a member is stopped in it", [Absence("zk-zookeeper-2", 1, 9, "gone"), Absence("zk-zookeeper-0", 2, 3, "told to stop")], 1),
        ("a member beside another server", [Absence("bk-bookie-2-0", 1, 9, "gone"), Absence("zk-zookeeper-0", 2, 3, "not Ready")], 1),
        ("of another ensemble", [Absence("a-zookeeper-2", 1, 9, "gone"), Absence("b-zookeeper-0", 2, 3, "not Ready")], 1),
    ],
)
def test_two_that_are_away_at_the_same_time_are_found(situation, found, pairs):
    assert len(list(together(found))) == pairs, situation
