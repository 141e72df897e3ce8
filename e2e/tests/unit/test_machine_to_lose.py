"""The machine that a benchmark loses has a leader, one bookie at most, and neither the operator nor the writer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from herdkeeper_e2e.machine_to_lose import Placement, Refused, who_shall_lead

SEEN = Placement(
    leader="db-0",
    replicas={"db-0": "one", "db-1": "two"},
    bookies=["one", "two", "three", "three"],
    observers={"the operator": "three", "the writer": "three"},
)


@pytest.mark.parametrize(
    ("situation", "seen", "leads"),
    [
        ("the leader's machine may be lost", SEEN, "db-0"),
        ("the other one leads, and its machine may be lost as well", replace(SEEN, leader="db-1"), "db-1"),
        ("the leader's machine has no bookie", replace(SEEN, bookies=["two", "two", "three", "three"]), "db-0"),
        ("the leader is beside two bookies", replace(SEEN, bookies=["one", "one", "two", "three"]), "db-1"),
        ("the leader is beside the operator", replace(SEEN, observers={"the operator": "one", "the writer": "three"}), "db-1"),
        ("the leader is beside the writer", replace(SEEN, observers={"the operator": "three", "the writer": "one"}), "db-1"),
    ],
)
def test_who_leads_when_a_machine_is_lost(situation, seen, leads):
    assert who_shall_lead(seen) == leads, situation


def test_no_machine_is_lost_without_which_nothing_could_be_measured():
    seen = replace(SEEN, bookies=["two", "two", "one", "three"], observers={"the operator": "one", "the writer": "one"})
    assert who_shall_lead(seen) == Refused(
        "no machine with a replica may be lost (db-0 on one: it has the operator and the writer; db-1 on two: it has 2 of 4 bookies, "
        "without which nothing could be written): move what stands there, or make the cluster anew"
    )
