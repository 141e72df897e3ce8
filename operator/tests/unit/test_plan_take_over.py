"""A node that was given a leadership and does not lead is given no other one without need, and tried again later each time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from both_controllers import plan_both, plan_refused
from situations import bookkeeper_serving, objects, pods, readable, with_metadata, with_spec, with_status
from test_plan_hand_over import BOOTING, LED, USERS, database, deleted, moved
from test_plan_herddb import CLUSTER, PODS
from test_plan_leaders import CALM, FOLLOWING, LEADER, RECORD, TABLESPACE, asking
from test_plan_leadership import DEAD, FAILED, TOO_FEW, WELL, A, B, C, situation
from test_plan_restart import NEW, OLD, rolled

from herdkeeper.api.resource import API_VERSION
from herdkeeper.herddb.leadership.decision import Move, decide
from herdkeeper.herddb.leadership.take_over import LONGEST_PAUSE_SECONDS, MissedTakeOver, read_marks
from herdkeeper.herddb.state.cluster import VersionedRecord
from herdkeeper.planning.actions import Annotate, ChangeTablespaceRecord, Plan
from herdkeeper.shared.names import DID_NOT_LEAD_PREFIX
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import NotListening

TARGET = PODS[1]


def marks(plan: Plan) -> list[tuple[str | None, Reason]]:
    """What is said of TARGET."""
    found = [each for each in plan.actions if isinstance(each, Annotate)]
    for each in found:
        assert (each.kind, each.api_version, list(each.annotations)) == (CLUSTER.KIND, API_VERSION, [DID_NOT_LEAD_PREFIX + TARGET])
    return [(each.annotations[DID_NOT_LEAD_PREFIX + TARGET], each.reason) for each in found]


def marked(mark: MissedTakeOver):
    return with_metadata(CLUSTER, annotations={DID_NOT_LEAD_PREFIX + TARGET: mark.text})


def preferring(*names: str):
    wanted = with_spec(TABLESPACE, preferred_leader=TARGET, failback="WhenHealthy")
    return tuple(with_metadata(with_spec(wanted, tablespace_name=name), name=name) for name in names)


@pytest.mark.parametrize(
    "mark", [MissedTakeOver("flights", 1999), MissedTakeOver("flights", 1_790_000_000, 17), MissedTakeOver("my\nlog at 5" * 20, 1999)]
)
def test_a_mark_is_read_as_it_was_written(mark):
    assert read_marks({DID_NOT_LEAD_PREFIX + "n1": mark.text, "herdkeeper.io/paused": "true"}) == {"n1": mark}


@pytest.mark.parametrize("text", ["", "true", "0 in a row, last flights at 5", "1 in a row, last flights at soon"])
def test_what_is_no_mark_says_nothing(text):
    assert read_marks({DID_NOT_LEAD_PREFIX + "n1": text}) == {}


def test_the_pause_is_twice_as_long_each_time_and_an_hour_at_most():
    assert [MissedTakeOver("app", 0, times).pause_seconds for times in (1, 2, 3, 5, 6, 400)] == [120, 240, 480, 1920, 3600, 3600]
    twice = MissedTakeOver("app", 1000, 2)
    assert twice.why_not(1239) == "it failed to take over app, 2 times in a row: no further attempt within 240 s"
    assert twice.why_not(1240) is None
    assert twice.why_not(700) is None, "a clock that went far back holds nobody up"


@pytest.mark.parametrize(
    ("situation", "role", "since", "said"),
    [
        ("it boots as long as boots take", "booting", 9.0, None),
        ("it does not lead it after ten seconds", "booting", 10.0, 1),
        ("its log failed, and the pause of the storage is not over", "failed", 12.0, 1),
        ("it leads it", "leader", 12.0, None),
        ("it led it for long: it is none that does not take over", "failed", 60.0, None),
        ("ZooKeeper's clock went back since it got it", "failed", -7200.0, None),
    ],
)
def test_who_does_not_lead_what_it_was_given_is_marked(situation, role, since, said):
    seen = replace(database({"app": ("follower", role)}, {"app": 2000.0 - since}), declared=())
    expected = [] if said is None else [(MissedTakeOver("app", int(2000 - since), said).text, Reason.DID_NOT_LEAD)]
    assert marks(plan_both(seen)) == expected, situation
    assert marks(plan_refused(seen)) == expected, "of a refused database, too"


def test_who_loses_a_leadership_right_after_it_got_it_is_marked_with_the_move_and_only_once():
    dead = replace(database({"app": LED}, {"app": 1994.0}), declared=())
    dead = replace(dead, nodes={**dead.nodes, TARGET: NotListening("refused")})
    plan = plan_both(dead)
    assert (moved(plan), marks(plan)) == (["app"], [(MissedTakeOver("app", 1994).text, Reason.DID_NOT_LEAD)])
    assert marks(plan_both(replace(dead, cluster=marked(MissedTakeOver("app", 1994))))) == []
    assert marks(plan_both(replace(dead, cluster=marked(MissedTakeOver("zoo", 1700))))) == [
        (MissedTakeOver("app", 1994, 2).text, Reason.DID_NOT_LEAD)
    ]


@pytest.mark.parametrize(
    ("situation", "few", "error"),
    [("too few bookies are writable", 2, None), ("its boot finds too few", 4, f"1970-01-01T00:33:14Z {TOO_FEW}")],
)
def test_a_node_that_can_not_lead_for_want_of_bookies_is_neither_marked_nor_left(situation, few, error):
    seen = replace(database({"app": BOOTING}, {"app": 1960.0}), declared=())
    boots = replace(LEADER, name="app", role="booting", ready=False, last_error=error)
    status = {**bookkeeper_serving().status.model_dump(), "ready_bookies": few}
    seen = replace(seen, nodes={**seen.nodes, TARGET: (boots,)}, bookkeeper=with_status(bookkeeper_serving(), **status))
    plan = plan_both(seen)
    assert (moved(plan), marks(plan)) == ([], []), situation


def test_a_node_that_ends_since_it_was_told_to_is_not_marked():
    seen = replace(database({"app": BOOTING}, {"app": 3540.1 - 12}), declared=())
    assert marks(plan_both(deleted(seen, seconds_ago=0.1, pod=TARGET))) == []


def test_a_mark_goes_once_the_node_leads_what_it_was_given_since():
    led = replace(database({"app": LED}, {"app": 1990.0}), declared=())
    assert marks(plan_both(replace(led, cluster=marked(MissedTakeOver("app", 1990))))) == [(None, Reason.LEADS_AGAIN)]
    assert marks(plan_both(replace(led, cluster=marked(MissedTakeOver("app", 1991))))) == []
    long_ago = replace(led, now=1991 + 2 * LONGEST_PAUSE_SECONDS + 1)
    assert marks(plan_both(replace(long_ago, cluster=marked(MissedTakeOver("app", 1991))))) == [(None, Reason.LEADS_AGAIN)]
    assert marks(plan_refused(replace(led, cluster=marked(MissedTakeOver("app", 1990))))) == []


@pytest.mark.parametrize("other", [1988.0, 1988.9, 1989.1, 1995.0])
def test_a_mark_stands_while_the_node_leads_only_another_one_that_it_got_with_it_or_later(other):
    seen = replace(database({"app": BOOTING, "flights": LED}, {"app": 1988.2, "flights": other}), declared=())
    mark = MissedTakeOver("app", 1988)
    assert marks(plan_both(seen)) == [(mark.text, Reason.DID_NOT_LEAD)]
    assert marks(plan_both(replace(seen, cluster=marked(mark)))) == [], "told once"


def test_a_mark_goes_once_the_node_leads_a_later_one_and_another_node_has_what_it_was_marked_for():
    led = replace(database({"flights": LED}, {"flights": 1989.0}), declared=())
    assert marks(plan_both(replace(led, cluster=marked(MissedTakeOver("app", 1988))))) == [(None, Reason.LEADS_AGAIN)]
    assert marks(plan_both(replace(led, cluster=marked(MissedTakeOver("app", 1989))))) == [], "of the same second"


def test_nothing_returns_to_a_preferred_node_that_did_not_take_over_until_its_pause_is_over():
    seen = replace(database({}), declared=readable(*preferring(*USERS)))
    assert moved(plan_both(seen)) == ["app"]
    assert moved(plan_both(replace(seen, cluster=marked(MissedTakeOver("flights", 1900))))) == []
    assert moved(plan_both(replace(seen, cluster=marked(MissedTakeOver("flights", 1880))))) == ["app"]
    assert moved(plan_both(replace(seen, cluster=marked(MissedTakeOver("flights", 1880, 2))))) == []


def test_no_further_tablespace_follows_one_that_its_preferred_node_does_not_lead():
    stuck = replace(database({"app": BOOTING}, {"app": 1990.5}), declared=readable(*preferring(*USERS)))
    assert moved(plan_both(stuck)) == []


def test_a_roll_stops_with_the_reason_where_nobody_takes_over():
    seen = database({})
    restarting = replace(rolled(OLD, NEW), records=seen.records, nodes=seen.nodes)
    assert moved(plan_both(restarting)) == ["app"]
    plan = plan_both(replace(restarting, cluster=marked(MissedTakeOver("app", 1990))))
    assert (moved(plan), plan.wait and plan.wait.reason) == ([], Reason.NO_LEADER)
    assert plan.wait is not None
    assert "it failed to take over app: no further attempt within 120 s" in plan.wait.message


def test_who_is_asked_for_gets_the_leadership_though_it_did_not_take_over_before():
    assert moved(plan_both(replace(asking(TARGET), cluster=marked(MissedTakeOver("app", 1999))))) == ["flights"]


LOST = replace(CALM, nodes={**CALM.nodes, PODS[0]: NotListening("refused")})


def test_a_lost_leader_and_one_that_ends_are_replaced_by_whoever_is_there():
    assert moved(plan_both(replace(LOST, cluster=marked(MissedTakeOver("app", 1999))))) == ["flights"]
    assert moved(plan_both(replace(deleted(CALM, seconds_ago=0.1), cluster=marked(MissedTakeOver("app", 3599))))) == ["flights"]


THIRD = "db-herddb-2"
OF_THREE = with_spec(CLUSTER, replicas=3)


def of_three(seen, roles: tuple[str, str, str] = ("leader", "follower", "follower")):
    """Three nodes with a copy of flights; the second one has the least to replay."""
    copies = [replace(LEADER, role=role, checkpoint=(7, 8 if number == 1 else 0)) for number, role in enumerate(roles)]
    nodes = dict(zip((*PODS, THIRD), ((copy,) for copy in copies), strict=True))
    records = {"flights": VersionedRecord(replace(RECORD, replicas=(*PODS, THIRD)), 4, 1000.0)}
    return replace(seen, nodes=nodes, records=records, objects=objects(seen.objects.items, pods([THIRD]), FOLLOWING))


def chosen(plan: Plan) -> list[str]:
    return [each.record.leader for each in plan.actions if isinstance(each, ChangeTablespaceRecord)]


def test_another_node_is_chosen_where_there_is_one():
    calm = of_three(CALM)
    lost = replace(calm, nodes={**calm.nodes, PODS[0]: NotListening("refused")})
    mark = with_metadata(OF_THREE, annotations={DID_NOT_LEAD_PREFIX + TARGET: MissedTakeOver("app", 1990).text})
    assert (chosen(plan_both(replace(lost, cluster=OF_THREE))), chosen(plan_both(replace(lost, cluster=mark)))) == ([TARGET], [THIRD])


@pytest.mark.parametrize(("third", "to"), [("follower", [THIRD]), ("leader", [])])
def test_a_node_that_does_not_know_yet_that_another_one_led_since_is_not_named_again(third, to):
    """It stood still, and would show its last state until it writes: it has to follow first."""
    seen = of_three(CALM, ("leader", "leader", third))
    assert chosen(plan_both(replace(seen, nodes={**seen.nodes, PODS[0]: NotListening("refused")}, cluster=OF_THREE))) == to


def test_another_node_is_chosen_while_one_does_not_lead_yet_what_it_got():
    calm = of_three(CALM)
    late = VersionedRecord(replace(RECORD, name="app", uuid="app-uuid", leader=TARGET), 1, 1995.0)
    ending = deleted(replace(calm, records={**calm.records, "app": late}), seconds_ago=0.1)
    clock = replace(ending.zookeeper, now=2000.0)
    assert chosen(plan_both(replace(ending, zookeeper=clock, cluster=OF_THREE)))[:1] == [THIRD]


@pytest.mark.parametrize(("third", "to"), [(DEAD, B), (WELL[C], C)], ids=["nobody else could lead", "somebody else can"])
def test_who_shall_lead_nothing_takes_a_leadership_back_when_its_successor_fails_and_nobody_else_can(third, to):
    leaves = replace(WELL[B], relieved="spec.replicas is 2")
    lost = f"{A} can't lead any more (it has failed: not enough bookies)"
    assert decide(situation(a=FAILED, b=leaves, c=third)) == Move(to, lost, leader_lost=True)
