"""Whose turn it is: every situation, with who goes now and why the others wait."""

from __future__ import annotations

from dataclasses import replace

import pytest
from both_controllers import plan_both, plan_refused
from situations import objects, readable, with_metadata, with_spec
from test_plan_herddb import CLUSTER, PODS
from test_plan_leaders import CALM, FOLLOWING, LEADER, RECORD, TABLESPACE, followed
from test_plan_restart import NEW, OLD, rolled

from herdkeeper.herddb.leadership.hand_over import NO_DEADLINE, Deadline, HandOver, PendingTakeOver, serves_seconds, why_waiting
from herdkeeper.herddb.state.cluster import VersionedRecord
from herdkeeper.planning.actions import ChangeTablespaceRecord, CheckpointFollower, Plan
from herdkeeper.shared import names
from herdkeeper.shared.objects import stopping
from herdkeeper.shared.unknown import NotListening

A, B, C = "node-a", "node-b", "node-c"
FRESH, LATE = Deadline(asked=0.5, left=19.5), Deadline(asked=8.5, left=11.5)
BOOTS = f"{B} does not lead app yet"


def to(node: str, *tablespaces: str, deadline: Deadline = FRESH) -> list[HandOver]:
    return [HandOver(tablespace, node, deadline) for tablespace in tablespaces]


TABLE: list[tuple[str, list[HandOver], list[PendingTakeOver], dict[str, str]]] = [
    ("there is one", to(B, "app"), [], {}),
    ("the default one alone", to(B, "herd"), [], {}),
    ("the first by name goes", to(B, "zoo", "app"), [], {"zoo": BOOTS}),
    ("the default one goes last", to(B, "herd", "zoo"), [], {"herd": f"{B} does not lead zoo yet"}),
    ("the last one is not led yet", to(B, "zoo", "herd"), [PendingTakeOver("app", B, 3.9)], {"zoo": BOOTS, "herd": BOOTS}),
    ("it is not led after seconds: it may never be", to(B, "zoo"), [PendingTakeOver("app", B, 59.9)], {"zoo": BOOTS}),
    ("it is not led after a minute: it holds up nobody any longer", to(B, "zoo"), [PendingTakeOver("app", B, 60.0)], {}),
    ("ZooKeeper's clock is ahead", to(B, "zoo"), [PendingTakeOver("app", B, -1.0)], {"zoo": BOOTS}),
    ("ZooKeeper's clock is far ahead: nobody waits for it", to(B, "zoo"), [PendingTakeOver("app", B, -60.0)], {}),
    ("each node gets one", [*to(B, "app", "zoo"), *to(C, "bar")], [], {"zoo": BOOTS}),
    ("another node boots", to(C, "zoo"), [PendingTakeOver("app", B, 1.0)], {}),
    ("another node boots, and the default one waits for that", to(C, "herd"), [PendingTakeOver("app", B, 1.0)], {"herd": BOOTS}),
    ("nothing makes the leader stop", to(B, "app", "zoo", deadline=NO_DEADLINE), [], {"zoo": BOOTS}),
    ("the last turn that fits in", to(B, "app", "zoo", deadline=Deadline(asked=7.9, left=12.1)), [], {"zoo": BOOTS}),
    ("turns have taken long enough", to(B, "app", "zoo", "herd", deadline=LATE), [PendingTakeOver("bar", B, 1.0)], {}),
    ("the pod is killed soon", to(B, "app", "zoo", "herd", deadline=Deadline(asked=0.5, left=4.5)), [], {}),
    ("the operator's clock is behind", to(B, "app", "zoo", deadline=Deadline(asked=-1.1, left=21.1)), [], {}),
    ("it is no more behind than clocks are", to(B, "app", "zoo", deadline=Deadline(asked=-0.9, left=20.9)), [], {"zoo": BOOTS}),
    ("one leader hurries, the other one does not", [*to(B, "zoo"), *to(B, "app", deadline=LATE)], [], {"zoo": BOOTS}),
]


@pytest.mark.parametrize(("situation", "leaving", "pending", "waiting"), TABLE, ids=[name for name, *_ in TABLE])
def test_the_turns(situation, leaving, pending, waiting):
    assert why_waiting(leaving, pending) == waiting, situation
    assert why_waiting(leaving[::-1], pending) == waiting, "in whatever order they come"


@pytest.mark.parametrize("count", range(1, 40))
@pytest.mark.parametrize("led_after", [0.3, 3.0, 1000.0], ids=["boots are quick", "boots are slow", "nothing is ever led"])
def test_everything_has_left_a_node_long_before_it_stops_however_many_there_are(count, led_after):
    """Looked at twice a second, as the operator does it."""
    left_at: dict[str, float] = {}
    tablespaces = [*(f"t{number}" for number in range(count)), "herd"]
    for look in range(60):
        now = look / 2
        leaving = to(B, *(name for name in tablespaces if name not in left_at), deadline=Deadline(now, 20.0 - now))
        pending = [PendingTakeOver(name, B, now - since) for name, since in left_at.items() if now - since < led_after]
        waiting = why_waiting(leaving, pending)
        left_at.update((each.tablespace, now) for each in leaving if each.tablespace not in waiting)
        if len(left_at) == len(tablespaces):
            break
    assert max(left_at.values()) == left_at["herd"] <= 8.5


@pytest.mark.parametrize(
    ("config", "seconds"), [({}, 20.0), ({"herdkeeper.hand-over.seconds": "5"}, 5.0), ({"herdkeeper.hand-over.seconds": "60"}, 20.0)]
)
def test_a_node_serves_as_long_as_it_was_told_to_and_perhaps_no_longer_than_by_default(config, seconds):
    assert serves_seconds(with_spec(CLUSTER, config=config)) == seconds


def test_when_a_pod_was_asked_to_stop_follows_from_its_grace_period():
    deleted = {"metadata": {"deletionTimestamp": "1970-01-01T00:33:20Z", "deletionGracePeriodSeconds": 60}}
    found = stopping(deleted)
    assert found is not None
    assert (found.asked_at, found.killed_at) == (1940.0, 2000.0)
    assert stopping({"metadata": {}}) is stopping(None) is None


USERS = ("app", "flights", "zoo")
NAMES = (*USERS, "herd")


def database(roles: dict[str, tuple[str, str]], moved_at: dict[str, float] | None = None, **more):
    """A database of four tablespaces; `roles` of the two nodes where they differ from leader and follower. The record names the leader."""
    nodes = {
        node: tuple(replace(LEADER, name=name, role=roles.get(name, ("leader", "follower"))[number]) for name in NAMES)
        for number, node in enumerate(PODS)
    }
    changed = moved_at or {}
    patient = replace(RECORD, max_leader_inactivity_millis=60_000)  # as the default tablespace's record shall be
    records = {
        name: VersionedRecord(replace(patient, name=name, leader=PODS[1] if name in changed else PODS[0]), 4, changed.get(name, 1000.0))
        for name in NAMES
    }
    return replace(CALM, records=records, nodes=nodes, **more)


def deleted(seen, *, seconds_ago: float, grace: int = 60, pod: str = PODS[0]):
    """The same, with a pod that was deleted `seconds_ago`."""
    item = seen.objects.get("Pod", pod)
    metadata = {**item["metadata"], "deletionTimestamp": "1970-01-01T01:00:00Z", "deletionGracePeriodSeconds": grace}
    stopped = objects(seen.objects.items, FOLLOWING, {("Pod", pod): {**item, "metadata": metadata}})
    return replace(seen, objects=stopped, now=3600.0 - grace + seconds_ago)


def moved(plan: Plan) -> list[str]:
    return [each.record.name for each in plan.actions if isinstance(each, ChangeTablespaceRecord)]


BOOTING, LED = ("follower", "booting"), ("follower", "leader")


@pytest.mark.parametrize("plan_of", [plan_both, plan_refused])
def test_a_deleted_pod_s_tablespaces_leave_it_one_after_the_other_and_those_that_wait_keep_their_leader(plan_of):
    first = plan_of(deleted(database({}), seconds_ago=0.1))
    assert (moved(first), first.requeue_after_seconds) == (["app"], 0.5)
    assert followed(first) == [], "the Service of flights stays with the leader that serves"

    booting = plan_of(deleted(database({"app": BOOTING}, {"app": 3540.1}), seconds_ago=0.6))
    assert (moved(booting), booting.requeue_after_seconds) == ([], 0.5)

    led = plan_of(deleted(database({"app": LED}, {"app": 3540.1}), seconds_ago=1.1))
    assert (moved(led), followed(led)) == (["flights"], [("flights-leader", PODS[1])])

    others = {"app": 3540.1, "flights": 3541.1}
    assert moved(plan_of(deleted(database(dict.fromkeys(others, LED), others), seconds_ago=2.1))) == ["zoo"]
    users = dict.fromkeys(USERS, 3541.1)
    still = deleted(database({"app": LED, "flights": LED, "zoo": BOOTING}, users), seconds_ago=3.1)
    assert moved(plan_of(still)) == []
    last = plan_of(deleted(database(dict.fromkeys(users, LED), users), seconds_ago=3.6))
    assert (moved(last), last.requeue_after_seconds) == (["herd"], 1.0)


def test_while_a_tablespace_is_not_led_by_its_new_leader_the_others_stay_where_they_are_served_until_there_is_no_time_left():
    stuck = database({"app": BOOTING}, {"app": 3540.1})
    assert moved(plan_both(deleted(stuck, seconds_ago=7.9))) == []
    assert moved(plan_both(deleted(stuck, seconds_ago=8.1))) == ["flights", "zoo", "herd"]


@pytest.mark.parametrize(
    ("situation", "seconds_ago", "grace"),
    [("turns have taken eight seconds", 8.0, 60), ("the pod is killed in seconds", 0.1, 5), ("it is killed now", 0.0, 0)],
)
def test_all_that_is_left_leaves_at_once_when(situation, seconds_ago, grace):
    booting = database({"app": BOOTING}, {"app": 3600.0 - grace + seconds_ago - 1})
    assert moved(plan_both(deleted(booting, seconds_ago=seconds_ago, grace=grace))) == ["flights", "zoo", "herd"], situation


def test_a_node_that_was_told_to_serve_for_seconds_only_is_left_at_once():
    brief = with_spec(CLUSTER, config={"herdkeeper.hand-over.seconds": "5"})
    assert moved(plan_both(replace(deleted(database({}), seconds_ago=0.1), cluster=brief))) == list(NAMES)


def test_nobody_checkpoints_before_a_move_where_there_is_no_time_for_turns():
    far = {node: tuple(replace(copy, lsn=(9, 1)) for copy in copies) for node, copies in database({}).nodes.items()}

    def checkpoints(seconds_ago: float, grace: int) -> int:
        plan = plan_both(deleted(replace(database({}), nodes=far), seconds_ago=seconds_ago, grace=grace))
        return len([each for each in plan.actions if isinstance(each, CheckpointFollower)])

    assert (checkpoints(0.1, 60), checkpoints(0.1, 5), checkpoints(8.0, 60)) == (1, 0, 0)


def test_leaders_are_relieved_one_after_the_other_before_their_node_is_restarted():
    seen = database({})
    restarting = replace(rolled(OLD, NEW), records=seen.records, nodes=seen.nodes)
    first = plan_both(restarting)
    assert (moved(first), first.requeue_after_seconds) == (["app"], 0.5)
    assert first.later[0] == f"Moving the leadership of flights to {PODS[1]} later, since {PODS[1]} does not lead app yet"
    booting = database({"app": BOOTING}, {"app": 1999.9})
    assert plan_both(replace(restarting, records=booting.records, nodes=booting.nodes)).actions == ()
    led = database({"app": LED}, {"app": 1999.0})
    assert moved(plan_both(replace(restarting, records=led.records, nodes=led.nodes))) == ["flights"]


def test_what_prefers_a_node_returns_to_it_one_after_the_other_and_not_before_it_is_restarted():
    preferring = tuple(
        with_metadata(with_spec(TABLESPACE, preferred_leader=PODS[1], failback="WhenHealthy", tablespace_name=name), name=name)
        for name in USERS
    )
    seen = replace(database({}), declared=readable(*preferring))
    assert moved(plan_both(seen)) == ["app"]
    old = replace(rolled(NEW, OLD), records=seen.records, nodes=seen.nodes, declared=readable(*preferring))
    assert moved(plan_both(old)) == []


def test_a_request_waits_for_no_turn():
    asking = with_metadata(TABLESPACE, annotations={names.SWITCHOVER_ANNOTATION: PODS[1]}, resource_version="77")
    booting = database({"app": BOOTING}, {"app": 1999.9}, declared=readable(asking))
    assert moved(plan_both(booting)) == ["flights"]
    assert moved(plan_both(deleted(booting, seconds_ago=0.1))) == ["flights"]


def test_lost_leaders_are_all_replaced_at_once():
    seen = database({})
    assert moved(plan_both(replace(seen, nodes={**seen.nodes, PODS[0]: NotListening("refused")}))) == list(NAMES)


def test_a_lost_leader_is_replaced_at_once_while_others_wait_for_their_turn():
    failed = deleted(database({"app": BOOTING, "zoo": ("failed", "follower")}, {"app": 3540.1}), seconds_ago=0.6)
    assert moved(plan_both(failed)) == ["zoo"]
