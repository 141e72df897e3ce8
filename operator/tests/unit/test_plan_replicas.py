"""A tablespace's replica list changes by one copy at a time, and loses none that is still needed."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.herddb.leadership.decision import FAR_BEHIND
from herdkeeper.herddb.state.cluster import NodeTablespace, Place
from herdkeeper.herddb.tablespace.replicas import AddReplica, RemoveReplica, ReplicaState, SetAside, next_replica
from herdkeeper.herddb.tablespace.verdicts import Verdict
from herdkeeper.planning.actions import Wait
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

LEADER = NodeTablespace("flights", "a-uuid", "leader", True, (7, 90_000), None, (7, 0), True)
FOLLOWER = replace(LEADER, role="follower")
BOOTING = replace(FOLLOWER, role="booting", ready=False)
SILENT = Unknown("silence")


def copies(leader: str, wanted: int = 2, leaving: tuple[str, ...] = (), free: tuple[str, ...] = (), **views) -> ReplicaState:
    """A tablespace that `leader` leads; `views` are what the nodes of its list say of it."""
    record = TablespaceRecord("a-uuid", "flights", leader, tuple(views), 1, 10_000)
    return ReplicaState(record, wanted, frozenset(leaving), views, free)


@pytest.mark.parametrize(
    ("situation", "seen", "expected"),
    [
        ("as declared", copies("n0", n0=LEADER, n1=FOLLOWER), None),
        ("as declared, though one is silent", copies("n0", n0=LEADER, n1=SILENT), None),
        ("one is missing", copies("n0", free=("n2", "n1"), n0=LEADER), AddReplica("n2")),
        ("a follower leaves: first another one", copies("n0", leaving=("n2",), free=("n1",), n0=LEADER, n2=FOLLOWER), AddReplica("n1")),
        ("a dead follower leaves: as well", copies("n0", leaving=("n2",), free=("n1",), n0=LEADER, n2=SILENT), AddReplica("n1")),
        ("the only copy leaves: first another one", copies("n2", 1, ("n2",), ("n0", "n1"), n2=LEADER), AddReplica("n0")),
        ("both leave: one after the other", copies("n3", leaving=("n2", "n3"), free=("n0",), n2=FOLLOWER, n3=LEADER), AddReplica("n0")),
        (
            "the others are as many and as good",
            copies("n0", leaving=("n2",), n0=LEADER, n1=FOLLOWER, n2=FOLLOWER),
            RemoveReplica("n2", "it leaves"),
        ),
        ("a dead one leaves", copies("n0", leaving=("n2",), n0=LEADER, n1=FOLLOWER, n2=SILENT), RemoveReplica("n2", "it leaves")),
        (
            "of those that leave, not the leader",
            copies("n3", leaving=("n2", "n3"), n0=FOLLOWER, n1=FOLLOWER, n2=FOLLOWER, n3=LEADER),
            RemoveReplica("n2", "it leaves"),
        ),
        ("one too many: the highest", copies("n0", n0=LEADER, n1=FOLLOWER, n2=FOLLOWER), RemoveReplica("n2", "2 replicas are declared")),
        ("one too many: not the leader", copies("n2", n0=FOLLOWER, n1=FOLLOWER, n2=LEADER), RemoveReplica("n1", "2 replicas are declared")),
        (
            "one too many: one that is no good",
            copies("n0", n0=LEADER, n1=BOOTING, n2=FOLLOWER),
            RemoveReplica("n1", "2 replicas are declared"),
        ),
        (
            "one too many: numbers are no words",
            copies("db-2", 2, **{"db-2": LEADER, "db-10": FOLLOWER, "db-9": FOLLOWER}),
            RemoveReplica("db-10", "2 replicas are declared"),
        ),
        (
            "one too many: not the preferred",
            replace(copies("n0", n0=LEADER, n1=FOLLOWER, n2=FOLLOWER), preferred="n2"),
            RemoveReplica("n1", "2 replicas are declared"),
        ),
    ],
)
def test_one_copy_at_a_time(situation, seen, expected):
    assert next_replica(seen) == expected, situation


@pytest.mark.parametrize(
    ("situation", "seen", "reason", "words"),
    [
        ("no node is free", copies("n0", n0=LEADER), Reason.WAITING_FOR_HERDDB, "no further SQL node"),
        ("the leader boots", copies("n0", free=("n1",), n0=BOOTING), Reason.WAITING_FOR_FOLLOWER, "n0"),
        ("a copy that stays boots", copies("n0", 3, free=("n2",), n0=LEADER, n1=BOOTING), Reason.WAITING_FOR_FOLLOWER, "n1"),
        (
            "the leader leaves",
            copies("n2", leaving=("n2",), n0=FOLLOWER, n1=FOLLOWER, n2=LEADER),
            Reason.WAITING_FOR_OTHERS,
            "n2 is removed: its leadership moves to another node first",
        ),
        (
            "the new copy boots",
            copies("n0", leaving=("n2",), n0=LEADER, n1=BOOTING, n2=FOLLOWER),
            Reason.WAITING_FOR_FOLLOWER,
            "n1: it is booting",
        ),
        (
            "the new copy has not caught up",
            copies("n0", leaving=("n2",), n0=LEADER, n1=replace(FOLLOWER, lsn=(7, 90_000 - FAR_BEHIND - 1)), n2=FOLLOWER),
            Reason.WAITING_FOR_FOLLOWER,
            f"n1: it is {FAR_BEHIND + 1} entries behind",
        ),
        (
            "the new copy could not recover",
            copies("n0", leaving=("n2",), n0=LEADER, n1=replace(FOLLOWER, recoverable=False), n2=FOLLOWER),
            Reason.WAITING_FOR_FOLLOWER,
            "n1: the log no longer has entries that its disk lacks",
        ),
        (
            "the new copy has other rows",
            copies("n0", leaving=("n2",), n0=LEADER, n1=replace(FOLLOWER, differs="had other rows than the leader"), n2=FOLLOWER),
            Reason.WAITING_FOR_FOLLOWER,
            "n1: it had other rows than the leader",
        ),
        (
            "the new copy is silent",
            copies("n0", leaving=("n2",), n0=LEADER, n1=SILENT, n2=FOLLOWER),
            Reason.WAITING_FOR_FOLLOWER,
            "n1: it does not answer",
        ),
        (
            "the leader is silent",
            copies("n0", leaving=("n2",), n0=SILENT, n1=FOLLOWER, n2=FOLLOWER),
            Reason.WAITING_FOR_FOLLOWER,
            "n0: it does not lead yet",
        ),
        (
            "one too many, and one that shall stay boots",
            copies("n0", n0=LEADER, n1=BOOTING, n2=BOOTING),
            Reason.WAITING_FOR_FOLLOWER,
            "n1: it is booting",
        ),
    ],
)
def test_it_waits_and_says_why(situation, seen, reason, words):
    step = next_replica(seen)
    assert isinstance(step, Wait), situation
    assert step.reason is reason
    assert words in step.message


PLACES = {
    "n0": Place("m0", "a"),
    "n1": Place("m1", "a"),
    "n2": Place("m2", "b"),
    "n3": Place("m2", "b"),
    "n4": Place("m4"),
    "n5": Place("m0"),
}


@pytest.mark.parametrize(
    ("situation", "seen", "node"),
    [
        ("a zone without a copy", copies("n0", free=("n1", "n2"), n0=LEADER), "n2"),
        ("in each zone one: the least busy", copies("n0", 3, free=("n1", "n3"), n0=LEADER, n2=FOLLOWER), "n1"),
        ("the zone with fewer", copies("n0", 4, free=("n3", "n4"), n0=LEADER, n1=FOLLOWER, n2=FOLLOWER), "n4"),
        ("what leaves does not count", copies("n0", leaving=("n2",), free=("n1", "n3"), n0=LEADER, n2=FOLLOWER), "n3"),
        ("another machine where no zone is known", copies("n0", free=("n5", "n4"), n0=LEADER), "n4"),
        ("nothing is known: the least busy", copies("n9", free=("n8", "n7"), n9=LEADER), "n8"),
    ],
)
def test_a_new_copy_comes_to_where_none_is(situation, seen, node):
    assert next_replica(replace(seen, places=PLACES)) == AddReplica(node), situation


def test_of_copies_that_are_too_many_one_goes_that_shares_its_zone():
    seen = replace(copies("n0", n0=LEADER, n1=FOLLOWER, n2=FOLLOWER), places=PLACES)
    assert next_replica(seen) == RemoveReplica("n1", "2 replicas are declared")


BAD = {node: Verdict(node, (7, 10), False, ("t",), None, "c") for node in ("n0", "n1", "n2", "n3")}
AGAIN = {node: replace(verdict, made_anew=True) for node, verdict in BAD.items()}
SAYS = "it had other rows than the log at LSN 7,10 (Checkpoint c) in t"
DIFFERS = replace(FOLLOWER, differs=BAD["n1"].sentence)


def differing(seen: ReplicaState, *nodes: str, verdicts=BAD) -> ReplicaState:
    return replace(seen, different={node: verdicts[node] for node in nodes})


@pytest.mark.parametrize(
    ("situation", "seen", "expected"),
    [
        (
            "nobody else can take a copy: it goes, the leader's stays",
            differing(copies("n0", n0=LEADER, n1=DIFFERS), "n1"),
            RemoveReplica("n1", SAYS, differs=True),
        ),
        ("another node can: first that one", differing(copies("n0", free=("n2",), n0=LEADER, n1=DIFFERS), "n1"), AddReplica("n2")),
        (
            "another node has got one and is settled",
            differing(copies("n0", n0=LEADER, n1=DIFFERS, n2=FOLLOWER), "n1"),
            RemoveReplica("n1", SAYS, differs=True),
        ),
        (
            "it has stopped anyway",
            differing(copies("n0", n0=LEADER, n1=SILENT), "n1"),
            RemoveReplica("n1", SAYS, differs=True),
        ),
        (
            "it is off the list and its copy has stopped",
            differing(copies("n0", n0=LEADER), "n1"),
            Wait(
                Reason.WAITING_FOR_HERDDB,
                "no further SQL node for a replica answers; the files on n1 differ, and are set aside first, once the node answers",
            ),
        ),
        (
            "two differ: one after the other",
            differing(copies("n0", 3, n0=LEADER, n1=DIFFERS, n2=DIFFERS), "n1", "n2"),
            RemoveReplica("n1", SAYS, differs=True),
        ),
        (
            "the other one is on its way",
            differing(copies("n0", 2, n0=LEADER, n1=BOOTING, n2=DIFFERS), "n2"),
            Wait(Reason.REPLICA_DIFFERS, f"n2 remains a replica, although {SAYS}, until n1 is settled"),
        ),
        (
            "the leader is silent",
            differing(copies("n0", 1, n0=SILENT, n1=DIFFERS), "n1"),
            Wait(Reason.REPLICA_DIFFERS, f"n1 remains a replica, although {SAYS}, until n0 leads with all rows (it does not lead yet)"),
        ),
        (
            "the leader differs as well",
            differing(copies("n0", 1, n0=replace(LEADER, differs="had other rows"), n1=DIFFERS), "n0", "n1"),
            Wait(Reason.REPLICA_DIFFERS, f"n1 remains a replica, although {SAYS}, until n0 leads with all rows (it had other rows)"),
        ),
        (
            "the leader alone differs",
            differing(copies("n0", n0=replace(LEADER, differs="had other rows"), n1=FOLLOWER), "n0"),
            Wait(Reason.LEADER_DIFFERS, f"n0 leads until another replica can, although {SAYS}"),
        ),
        (
            "the leader differs and nobody else is there: one more is made from the log",
            differing(copies("n0", free=("n1",), n0=LEADER), "n0"),
            AddReplica("n1"),
        ),
        (
            "it was made anew before",
            differing(copies("n0", n0=LEADER, n1=DIFFERS), "n1", verdicts=AGAIN),
            Wait(Reason.REBUILT_IN_VAIN, f"n1 {SAYS.removeprefix('it ')}, after a rebuild"),
        ),
        (
            "it was made anew before, and is one too many",
            differing(copies("n0", n0=LEADER, n1=FOLLOWER, n2=DIFFERS), "n2", verdicts=AGAIN),
            RemoveReplica("n2", "2 replicas are declared"),
        ),
    ],
)
def test_a_copy_that_differs_is_made_anew(situation, seen, expected):
    assert next_replica(seen) == expected, situation


NOT_YET = Wait(Reason.REPLICA_DIFFERS, "the files on n1 differ: they are set aside once the node answers and runs no replica")


@pytest.mark.parametrize(
    ("said", "expected"),
    [(None, SetAside("n1", BAD["n1"])), (SILENT, NOT_YET), (replace(DIFFERS, role="stopped", ready=False), NOT_YET)],
    ids=["it runs no copy any more", "it does not answer", "it still runs one"],
)
def test_what_a_node_off_the_list_has_is_moved_aside_once_it_is_known_not_to_run(said, expected):
    seen = replace(differing(copies("n0", 1, n0=LEADER), "n1"), copies={"n0": LEADER, "n1": said})
    assert next_replica(seen) == expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            replace(DIFFERS, role="stopped", ready=False),
            Wait(Reason.REPLICA_DIFFERS, f"n2 remains a replica, although {SAYS}, until n1 has stopped its own"),
        ),
        (None, SetAside("n1", BAD["n1"])),
        (SILENT, RemoveReplica("n2", SAYS, differs=True)),
    ],
    ids=["it still stops its copy", "it has stopped", "it does not answer, perhaps never again"],
)
def test_of_two_that_differ_the_second_stays_until_the_first_has_stopped(said, expected):
    seen = differing(copies("n0", 3, n0=LEADER, n2=DIFFERS), "n1", "n2")
    assert next_replica(replace(seen, copies={**seen.copies, "n1": said})) == expected


def test_another_node_gets_a_copy_whether_or_not_one_off_the_list_can_be_moved_aside():
    """A node that can't move its copy aside, e.g. since its program is too old, would hold everything up."""
    seen = differing(copies("n0", n0=LEADER, free=("n2",)), "n1")
    assert next_replica(replace(seen, copies={**seen.copies, "n1": None})) == AddReplica("n2")


def test_no_situation_takes_a_copy_that_differs_away_unless_the_leader_leads_with_all_rows():
    views = (LEADER, FOLLOWER, DIFFERS, BOOTING, SILENT, None)
    removed = 0
    for n0, n1, n2, leader, wanted, free in product(views, views, views, ("n0", "n1", "n2"), (1, 2, 3), ((), ("n3",))):
        said = {"n0": n0, "n1": n1, "n2": n2}
        seen = differing(copies(leader, wanted, free=free, **said), *(node for node, copy in said.items() if copy is DIFFERS))
        step = next_replica(seen)
        assert not isinstance(step, SetAside)
        if isinstance(step, RemoveReplica) and step.differs:
            removed += 1
            assert step.node != leader
            assert said[leader] is LEADER
            assert said[step.node] is DIFFERS
    assert removed > 0


def test_no_situation_takes_away_a_leader_or_leaves_fewer_good_copies_than_declared():
    views = (LEADER, FOLLOWER, BOOTING, SILENT, None)
    removed = 0
    for n0, n1, n2, leader, leaving, wanted in product(views, views, views, ("n0", "n1", "n2"), ((), ("n2",), ("n1", "n2")), (1, 2, 3)):
        seen = copies(leader, wanted, leaving, n0=n0, n1=n1, n2=n2)
        step = next_replica(seen)
        if not isinstance(step, RemoveReplica):
            continue
        removed += 1
        left = [node for node in ("n0", "n1", "n2") if node != step.node]
        good = [node for node in left if node not in leaving and seen.copies[node] is (LEADER if node == leader else FOLLOWER)]
        assert step.node != leader
        assert len(good) >= wanted
    assert removed > 0
