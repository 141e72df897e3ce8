"""Leaders that are lost are replaced first, all of them before anything is waited for."""

from __future__ import annotations

from dataclasses import replace

from both_controllers import plan_both
from test_plan_herddb import CLUSTER, LOG, PODS
from test_plan_leaders import CALM, LEADER, LOST, RECORD, asking

from herdkeeper.herddb.leadership.decision import Move
from herdkeeper.herddb.leadership.moves import TablespaceMove, move_actions
from herdkeeper.herddb.leadership.plan import plan_leadership
from herdkeeper.herddb.state.cluster import VersionedRecord
from herdkeeper.planning.actions import ChangeTablespaceRecord, CheckpointFollower, WakeNodes

FOLLOWER = replace(LEADER, role="follower")
STALE = replace(FOLLOWER, checkpoint=(6, 0))


def holding(seen, leaders, followers=FOLLOWER):
    """The same with these tablespaces, each led by the node of this number, on both nodes, and no resource that declares any."""
    records = {name: VersionedRecord(replace(RECORD, name=name, leader=PODS[number]), 4, 1000.0) for name, number in leaders.items()}
    copies = {
        pod: tuple(replace(LEADER if PODS[number] == pod else followers, name=name) for name, number in leaders.items()) for pod in PODS
    }
    nodes = {pod: copies[pod] if isinstance(view, tuple) else view for pod, view in seen.nodes.items()}
    return replace(seen, records=records, nodes=nodes, declared=())


def told(actions):
    """Each action in a word or two."""
    for action in actions:
        match action:
            case ChangeTablespaceRecord():
                yield f"{action.record.name} to {PODS.index(action.record.leader)}"
            case CheckpointFollower():
                yield f"checkpoint of {action.tablespace}"
            case WakeNodes():
                yield f"wake {[PODS.index(node) for node in action.nodes]}"
            case _:
                yield type(action).__name__


def test_all_lost_leaders_are_replaced_before_a_node_is_woken():
    seen = holding(LOST, {"a": 0, "b": 0, "c": 0})
    assert list(told(plan_both(seen).actions)) == ["a to 1", "b to 1", "c to 1", "wake [1]"]


def test_a_lost_leader_comes_before_the_checkpoint_for_another_that_is_asked_for():
    seen = holding(CALM, {"flights": 0, "weather": 0}, STALE)
    failed = tuple(replace(copy, role="failed") if copy.name == "weather" else copy for copy in seen.nodes[PODS[0]])
    seen = replace(seen, nodes={**seen.nodes, PODS[0]: failed}, declared=asking(PODS[1]).declared)
    done = list(told(plan_both(seen).actions))
    assert done == ["weather to 1", "wake [1]", "checkpoint of flights", "flights to 1", "wake [1]", "Apply", "AnswerRequest"]


def test_of_leaders_that_serve_those_that_need_no_checkpoint_go_first():
    records = holding(CALM, {"a": 0, "b": 0}).records
    slow, fast = Move(PODS[1], "", checkpoint_first=True), Move(PODS[1], "")
    moves = [TablespaceMove(records["a"], slow), TablespaceMove(records["b"], fast)]
    done = list(told(move_actions(CLUSTER, LOG, moves)))
    assert done == ["b to 1", "wake [1]", "checkpoint of a", "a to 1", "wake [1]"]


def test_a_tablespace_whose_leader_stays_is_answered_though_the_move_of_another_one_fails():
    """Its Service follows its leader, too: it may have been moved just before, when that of the other one failed already."""
    moved = asking(PODS[1])
    record = replace(RECORD, leader=PODS[1])
    led = {PODS[0]: (replace(LEADER, role="follower"),), PODS[1]: (LEADER,)}
    seen = replace(moved, records={"flights": VersionedRecord(record, 5, 1000.0)}, nodes=led)
    lost = holding(seen, {"flights": 1, "weather": 0})
    broken = replace(LEADER, name="weather", role="failed")
    seen = replace(lost, nodes={PODS[0]: (*led[PODS[0]], broken), PODS[1]: lost.nodes[PODS[1]]}, declared=moved.declared)
    plan = plan_leadership(seen)
    assert list(told(plan.moves)) == ["weather to 1", "wake [1]"]
    assert [list(told(group)) for group in plan.beside] == [["Apply", "AnswerRequest"]]
    assert plan.after == ()


def test_each_service_waits_for_the_move_of_its_own_tablespace_alone():
    plan = plan_leadership(replace(holding(LOST, {"flights": 0, "weather": 0}), declared=LOST.declared))
    assert list(told(plan.moves)) == ["flights to 1", "weather to 1", "wake [1]"]
    assert [(name, list(told(actions))) for name, actions in plan.after] == [("flights", ["Apply"])]
