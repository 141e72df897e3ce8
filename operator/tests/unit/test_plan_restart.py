"""SQL nodes are restarted one at a time: followers first, leaders last and relieved before."""

from __future__ import annotations

from dataclasses import replace

import pytest
from both_controllers import plan_both
from situations import live, objects, pods, readable, with_spec
from test_plan_herddb import CLUSTER, LOG, PODS, SETTLED
from test_plan_leaders import CALM, FOLLOWING, LEADER, RECORD, TABLESPACE

from herdkeeper.herddb.build import build_herddb
from herdkeeper.herddb.leadership.plan import plan_leadership
from herdkeeper.herddb.state.cluster import Unreplayable, VersionedRecord
from herdkeeper.planning.actions import Apply, ChangeTablespaceRecord, Delete, WakeNodes
from herdkeeper.shared.node import Node, NodeDown
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

OLD, NEW = "db-herddb-old", "db-herddb-new"
BUILT = build_herddb(CLUSTER, LOG, "db-herddb-credentials")
DELETED = [Delete("v1", "Pod", pod, f"uid-{pod}", Reason.ROLLING) for pod in PODS]


def rolled(*revisions: str | None, unready: tuple[str, ...] = (), generation: int = 2, seen_generation: int = 2):
    """The nodes with pods of these revisions, out of a StatefulSet whose present one is NEW."""
    made = live(BUILT)
    stateful_set = made["StatefulSet", "db-herddb"]
    stateful_set["metadata"]["generation"] = generation
    stateful_set["status"] = {"observedGeneration": seen_generation, "updateRevision": NEW}
    found = {}
    for name, revision in zip(PODS, revisions, strict=True):
        (item,) = pods([name], **({"conditions": []} if name in unready else {})).values()
        labels = {"controller-revision-hash": revision} if revision else {}
        found["Pod", name] = {**item, "metadata": {**item["metadata"], "labels": labels}}
    return replace(CALM, objects=objects(made, FOLLOWING, found))


def test_a_node_that_leads_nothing_is_restarted_first():
    assert plan_both(rolled(OLD, OLD)).actions == (DELETED[1],)


def test_of_nodes_that_all_lead_the_one_that_leads_the_default_tablespace_alone_goes_first():
    herd = VersionedRecord(replace(RECORD, name="herd", leader=PODS[1]), 4, 1000.0)
    settled = replace(LEADER, name="herd")
    nodes = {
        node: (*copies, replace(settled, role=role))
        for (node, copies), role in zip(CALM.nodes.items(), ("follower", "leader"), strict=True)
    }
    seen = replace(rolled(OLD, OLD), records={**CALM.records, "herd": herd}, nodes=nodes)
    actions = plan_both(seen).actions
    assert [each.record for each in actions if isinstance(each, ChangeTablespaceRecord)] == [replace(herd.record, leader=PODS[0])]
    assert WakeNodes("db", (PODS[0],)) in actions


def test_a_leader_is_relieved_before_it_is_restarted():
    change, wake, _ = plan_both(rolled(OLD, NEW)).actions
    assert isinstance(change, ChangeTablespaceRecord)
    assert change.record == replace(RECORD, leader=PODS[1])
    assert change.why == f"led by {PODS[1]}, since {PODS[0]} must not lead any more (it is restarted with its new template)"
    assert wake == WakeNodes("db", (PODS[1],))


def test_a_preferred_node_leads_again_once_it_is_restarted_since_it_would_be_relieved_before():
    preferring = readable(with_spec(TABLESPACE, preferred_leader=PODS[1], failback="WhenHealthy"))
    moved = [
        any(isinstance(each, ChangeTablespaceRecord) for each in plan_leadership(replace(seen, declared=preferring)).actions)
        for seen in (rolled(NEW, OLD), rolled(NEW, NEW), rolled(OLD, NEW))
    ]
    assert moved == [False, True, True]


@pytest.mark.parametrize("stranger", ["*", "db-herddb-77", "another"])
def test_a_replica_that_a_sql_user_named_on_no_node_of_this_cluster_holds_up_no_restart(stranger):
    other = VersionedRecord(replace(RECORD, name="other", uuid="other-uuid", replicas=(PODS[0], stranger)), 4, 1000.0)
    led = replace(LEADER, name="other", uuid="other-uuid")
    alone = replace(rolled(OLD, NEW), records={"other": other}, nodes={PODS[0]: (led,), PODS[1]: ()}, declared=())
    assert plan_both(alone).actions == (DELETED[0],)
    follower_first = replace(rolled(OLD, OLD), records={**CALM.records, "other": other}, nodes={**CALM.nodes, PODS[0]: (LEADER, led)})
    assert plan_both(follower_first).actions == (DELETED[1],)


@pytest.mark.parametrize("entry", [Unreplayable((7, 3), "INSERT", "t", "no such page"), None])
def test_a_replica_that_can_not_apply_its_log_holds_up_no_restart_since_waiting_does_not_help(entry):
    booting = replace(LEADER, role="booting", ready=False, unreplayable=entry)
    seen = replace(rolled(NEW, OLD), nodes={**CALM.nodes, PODS[1]: (booting,)})
    assert plan_both(seen).actions == ((DELETED[1],) if entry is not None else ())


def guarded(fleet):
    """The same, and no node of it may be evicted."""
    budget = ("PodDisruptionBudget", "db-herddb")
    held = live(build_herddb(CLUSTER, LOG, "db-herddb-credentials", most_away=0))
    return replace(fleet, objects=objects({**fleet.objects.items, budget: held[budget]}))


LOST = replace(LEADER, role="booting", ready=False, unreplayable=Unreplayable((-1, -1), "LOST_LEDGER", None, "the list is gone"))


@pytest.mark.parametrize(("role", "leader"), [("leader", PODS[0]), ("follower", PODS[1])])
def test_the_last_node_that_runs_a_tablespace_whose_log_is_lost_is_not_restarted(role, leader):
    records = {"flights": VersionedRecord(replace(RECORD, leader=leader), 5, 1990.0)}
    running = replace(LEADER, role=role)
    plan = plan_both(replace(guarded(rolled(OLD, NEW)), records=records, nodes={PODS[0]: (running,), PODS[1]: (LOST,)}, declared=()))
    assert not [each for each in plan.actions if isinstance(each, Delete)]
    assert plan.wait is not None
    assert f"{PODS[1]} can't replay the log of flights, which is lost: {PODS[0]} may have the last rows" in plan.wait.message


def test_a_tablespace_whose_log_is_lost_and_that_nobody_runs_holds_up_no_restart():
    records = {"flights": VersionedRecord(replace(RECORD, leader=PODS[1]), 5, 1990.0)}
    seen = replace(rolled(OLD, NEW), records=records, nodes=dict.fromkeys(PODS, (LOST,)), declared=())
    assert [each for each in plan_both(seen).actions if isinstance(each, Delete)] == [DELETED[0]]


NO_SECRET = Problem(Reason.WAITING_FOR_SECRET, "the Secret does not exist")


def budgets(plan) -> list[object]:
    applied = [action.manifest for action in plan.actions if isinstance(action, Apply)]
    return [manifest["spec"]["maxUnavailable"] for manifest in applied if manifest["kind"] == "PodDisruptionBudget"]


def test_no_node_may_be_evicted_while_others_run_a_tablespace_whose_log_is_lost_since_the_node_that_lost_it_is_ready():
    records = {"flights": VersionedRecord(RECORD, 5, 1990.0)}
    seen = replace(rolled(NEW, NEW), records=records, nodes={PODS[0]: (LEADER,), PODS[1]: (LOST,)}, declared=())
    assert budgets(plan_both(seen)) == [0]
    silent = replace(seen, nodes={PODS[0]: Unknown("it does not answer"), PODS[1]: (LOST,)})
    assert budgets(plan_both(silent)) == [0]
    for nobody_runs_it in (dict.fromkeys(PODS, (LOST,)), CALM.nodes):
        assert budgets(plan_both(replace(seen, nodes=nobody_runs_it))) == []


@pytest.mark.parametrize("waits_for", [{"credentials": NO_SECRET}, {"tls": NO_SECRET}, {"root_parent": Unknown("no member answers")}])
def test_evictions_are_forbidden_whatever_else_the_cluster_waits_for(waits_for):
    records = {"flights": VersionedRecord(RECORD, 5, 1990.0)}
    seen = replace(rolled(NEW, NEW), records=records, nodes={PODS[0]: (LEADER,), PODS[1]: (LOST,)}, declared=(), **waits_for)
    assert budgets(plan_both(seen)) == [0]


def test_evictions_are_forbidden_while_the_leader_of_another_tablespace_is_to_be_moved():
    other = VersionedRecord(replace(RECORD, name="other", uuid="other-uuid", leader=PODS[1]), 4, 1000.0)
    failed = replace(LEADER, name="other", uuid="other-uuid", role="failed", ready=False)
    follower = replace(failed, role="follower", ready=True)
    records = {"flights": VersionedRecord(RECORD, 5, 1990.0), "other": other}
    seen = replace(rolled(NEW, NEW), records=records, nodes={PODS[0]: (LEADER, follower), PODS[1]: (LOST, failed)}, declared=())
    assert any(isinstance(each, ChangeTablespaceRecord) for each in plan_leadership(seen).moves)
    assert budgets(plan_both(seen)) == [0]


@pytest.mark.parametrize(
    "untold",
    [Unknown("the operator has just started"), (replace(LOST, unreplayable=None),)],
    ids=["it is not heard yet", "it boots again, and has not failed yet"],
)
def test_no_node_may_be_evicted_before_the_one_that_lost_the_log_says_that_it_has_it_back(untold):
    records = {"flights": VersionedRecord(RECORD, 5, 1990.0)}
    seen = replace(rolled(NEW, NEW), records=records, nodes={PODS[0]: (LEADER,), PODS[1]: untold}, declared=())
    assert budgets(plan_both(guarded(seen))) == [], "none may be evicted still"
    assert budgets(plan_both(replace(guarded(seen), nodes=CALM.nodes))) == [1]


def test_whether_nodes_may_be_evicted_stays_while_zookeeper_can_not_be_read():
    away = replace(rolled(NEW, NEW), records=Unknown("no member answers"))
    assert budgets(plan_both(away)) == budgets(plan_both(guarded(away))) == []


def test_a_leader_that_was_relieved_is_restarted():
    moved = VersionedRecord(replace(RECORD, leader=PODS[1]), 5, 1990.0)
    nodes = {PODS[0]: (replace(LEADER, role="follower"),), PODS[1]: (LEADER,)}
    seen = replace(rolled(OLD, NEW), records={"flights": moved}, nodes=nodes, declared=())
    assert plan_both(seen).actions == (DELETED[0],)


def test_a_leader_that_was_relieved_is_not_restarted_before_the_new_one_says_that_it_leads():
    moved = VersionedRecord(replace(RECORD, leader=PODS[1]), 5, 1999.5)
    seen = replace(following(), records={"flights": moved}, declared=())
    plan = plan_both(seen)
    assert plan.actions == ()
    assert plan.wait is not None
    assert f"{PODS[1]} does not lead flights yet" in plan.wait.message


def test_what_nobody_else_holds_does_not_keep_its_node_from_being_restarted():
    alone = VersionedRecord(replace(RECORD, replicas=(PODS[0],)), 4, 1000.0)
    assert plan_both(replace(rolled(OLD, NEW), records={"flights": alone})).actions == (DELETED[0],)


BOOTING = (replace(LEADER, role="booting", ready=False),)


def test_a_node_that_does_not_serve_is_restarted_at_once():
    seen = replace(rolled(OLD, OLD, unready=(PODS[0],)), nodes={**CALM.nodes, PODS[0]: BOOTING})
    assert plan_both(seen).actions == (DELETED[0],)


def test_a_node_that_leads_serves_though_it_is_not_ready_and_is_relieved_before_it_is_restarted():
    change, *_ = plan_both(rolled(OLD, NEW, unready=(PODS[0],))).actions
    assert isinstance(change, ChangeTablespaceRecord)
    assert change.record.leader == PODS[1]


def test_of_nodes_that_do_not_serve_the_next_one_waits_until_the_last_one_is_made_anew():
    both = replace(rolled(OLD, OLD, unready=PODS), nodes=dict.fromkeys(PODS, BOOTING))
    assert plan_both(both).actions == (DELETED[0],)
    kept = {key: item for key, item in both.objects.items.items() if key != ("Pod", PODS[0])}
    assert [each for each in plan_both(replace(both, objects=objects(kept))).actions if isinstance(each, Delete)] == []


def test_a_silent_node_of_which_zookeeper_hears_may_lead_and_is_not_restarted():
    silent = replace(
        rolled(OLD, NEW, unready=(PODS[0],)),
        nodes={**CALM.nodes, PODS[0]: Unknown("silence")},
        heartbeats={"flights": {PODS[0]: 1999.0}},
        zookeeper=replace(CALM.zookeeper, now=2000.0),
    )
    assert [each for each in plan_both(silent).actions if isinstance(each, Delete)] == []


def test_a_node_without_a_copy_on_a_machine_that_is_down_is_waited_for():
    """Its pod is left alone, and it may hold none since it is away."""
    alone = VersionedRecord(replace(RECORD, replicas=(PODS[0],)), 4, 1000.0)
    seen = replace(rolled(OLD, OLD, unready=(PODS[1],)), records={"flights": alone}, nodes={PODS[0]: (LEADER,)}, declared=())
    seen.objects.items["Pod", PODS[1]]["spec"] = {"nodeName": "machine"}
    down = Node("machine", {}, NodeDown("does not report", "2026-01-01T00:00:00Z", out_of_service=False))
    plan = plan_both(replace(seen, machines={"machine": down}))
    assert plan.actions == ()
    assert plan.wait is not None
    assert f"{PODS[1]} is not Ready" in plan.wait.message


def following(leader_lsn=LEADER.lsn, **fields: object):
    """The first node is due and leads; the second one follows, and says these things of its copy."""
    leader = replace(LEADER, lsn=leader_lsn)
    follower = replace(LEADER, role="follower", **fields)  # type: ignore[arg-type] - fields of NodeTablespace
    return replace(rolled(OLD, NEW), nodes={PODS[0]: (leader,), PODS[1]: (follower,)})


@pytest.mark.parametrize(
    ("situation", "seen", "why"),
    [
        ("the other one boots", rolled(OLD, NEW, unready=(PODS[1],)), f"{PODS[1]} is not Ready"),
        (
            "the other one has not caught up",
            replace(rolled(OLD, NEW), nodes={PODS[0]: (LEADER,), PODS[1]: (replace(LEADER, role="follower", ready=False),)}),
            f"{PODS[1]}'s replica of flights",
        ),
        (
            "the other one is far behind",
            following(lsn=(7, 9), leader_lsn=(7, 10_010)),
            f"{PODS[1]} follows flights, and it is 10001 entries behind",
        ),
        (
            "the other one is ledgers behind",
            following(lsn=(6, 9), leader_lsn=(7, 10_001)),
            f"{PODS[1]} follows flights, and it is at (6, 9) and the leader at (7, 10001)",
        ),
        (
            "nobody tells how far behind the other one is",
            following(lsn=None),
            f"{PODS[1]} follows flights, and its lag is unknown",
        ),
        (
            "the other one differs from the log",
            following(differs="had other rows than the log"),
            f"{PODS[1]} follows flights, and it had other rows than the log",
        ),
        ("the other one has a copy of an earlier tablespace of that name", following(uuid="older"), f"{PODS[1]}'s replica of"),
        ("the other one is silent", replace(rolled(OLD, NEW), nodes={PODS[0]: (LEADER,), PODS[1]: Unknown("silence")}), "silence"),
        ("ZooKeeper is silent", replace(rolled(OLD, NEW), records=Unknown("no quorum")), "no quorum"),
    ],
)
def test_no_node_that_serves_is_restarted_while(situation, seen, why):
    plan = plan_both(seen)
    assert plan.actions == (), situation
    assert plan.wait is not None
    assert why in plan.wait.message


@pytest.mark.parametrize("seen", [following(lsn=(7, 9), leader_lsn=(7, 10_009)), following(lsn=(6, 9), leader_lsn=(7, 10_000))])
def test_a_node_is_restarted_though_the_others_are_a_little_behind(seen):
    assert any(isinstance(action, ChangeTablespaceRecord) for action in plan_both(seen).actions)


def test_a_node_whose_own_rows_differ_is_not_restarted_since_it_may_forget_that():
    differs = following(differs="had other rows than the leader")
    assert plan_both(replace(differs, objects=rolled(NEW, OLD).objects)).actions == ()


@pytest.mark.parametrize(
    "seen",
    [rolled(NEW, NEW), rolled(None, None), rolled(OLD, OLD, generation=3)],
    ids=["all are new", "none tells", "the controller is late"],
)
def test_nothing_is_restarted_when(seen):
    assert plan_both(seen).actions == ()


def test_the_nodes_settle():
    assert plan_both(SETTLED).actions == ()
