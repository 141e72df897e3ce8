"""A leader on which statements hang makes its tablespace not Ready, and holds up nothing that cures it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from both_controllers import plan_both
from situations import quickstart, with_spec, with_status
from test_plan_herddb import PODS
from test_plan_leaders import CALM
from test_plan_leaders import LEADER as LED
from test_plan_leadership import CALM as KEPT
from test_plan_leadership import A, B, decide, situation
from test_plan_restart import NEW, OLD, rolled
from test_replica_verdicts import FIRST, LEADER, RECORD, SEEN, copy
from test_rows_counted import Answers

from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.herddb.leadership.decision import Keep, Move, Node
from herdkeeper.herddb.observe.address import NodeAddress
from herdkeeper.herddb.observe.nodes import read_node
from herdkeeper.herddb.state.cluster import VersionedRecord
from herdkeeper.herddb.tablespace.plan import plan_tablespace
from herdkeeper.herddb.tablespace.status import summarize_tablespace
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import ChangeTablespaceRecord, Plan, Wait
from herdkeeper.planning.status import status_document
from herdkeeper.shared.reason import Reason

TABLESPACE = with_spec(with_status(quickstart("Tablespace"), uuid="a-uuid"), replicas=2)
COPIED = replace(RECORD, replicas=(LEADER, FIRST))


def blocked(seconds: float | None, record: Any = COPIED):
    """A leader of two settled copies that tells this."""
    leader = replace(copy("leader"), blocked_seconds=seconds)
    nodes = {**SEEN.nodes, LEADER: (leader,), FIRST: (copy("follower"),)}
    return replace(SEEN, tablespace=TABLESPACE, record=VersionedRecord(record, 4), nodes=nodes)


@pytest.mark.parametrize(
    ("situation", "seconds", "reason"),
    [
        ("statements run", 0, Reason.READY),
        ("a checkpoint is written", 60, Reason.READY),
        ("an older node program does not tell", None, Reason.READY),
        ("statements have hung for long", 61, Reason.STATEMENTS_BLOCKED),
    ],
)
def test_a_tablespace_is_ready_unless_statements_hang_for_long(situation, seconds, reason):
    assert summarize_tablespace(blocked(seconds)).health.reason is reason, situation


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(61, "1 minute"), (119, "1 minute"), (300, "5 minutes"), (3599, "30 minutes"), (3600, "1 hour"), (200_000, "24 hours")],
)
def test_the_message_says_for_how_long_and_is_not_written_anew_each_second(seconds, shown):
    health = summarize_tablespace(blocked(seconds)).health
    assert (health.status, f"for over {shown} for the lock" in health.message) == ("False", True), health.message


def test_the_message_names_what_helps():
    message = summarize_tablespace(blocked(700)).health.message
    for part in (f"delete the pod {LEADER}", "another replica then leads", "no acknowledged write is lost", "CREATE INDEX"):
        assert part in message
    one = replace(blocked(700, replace(RECORD, replicas=(LEADER,))), tablespace=with_spec(TABLESPACE, replicas=1))
    alone = summarize_tablespace(one).health.message
    assert "it boots from the log and leads again" in alone
    assert "another replica" not in alone


def test_it_is_looked_at_again_for_as_long_as_statements_hang():
    declared = replace(COPIED, max_leader_inactivity_millis=TABLESPACE.spec.failover.max_leader_inactivity_seconds * 1000)
    stuck, *others = (plan_tablespace(blocked(seconds, declared), "an-image").requeue_after_seconds for seconds in (700, 0, None))
    assert stuck == requeue.BLOCKED
    assert all(each is None or each > requeue.BLOCKED for each in others)


@pytest.mark.parametrize(
    ("wait", "reason"),
    [
        (Wait(Reason.WAITING_FOR_FOLLOWER, "a copy is made"), "StatementsBlocked"),
        (Wait(Reason.DATA_LOST, "the tablespace is gone"), "DataLost"),
    ],
)
def test_what_a_plan_waits_for_hides_it_only_where_a_person_is_needed(wait, reason):
    document = status_document(TABLESPACE, summarize_tablespace(blocked(700)), Plan((), wait), None, "2026-11-24T21:00:00Z")
    assert document["conditions"][0]["reason"] == reason


def test_the_leader_is_not_replaced_for_it_and_can_be_left():
    stuck = Node(copy=replace(KEPT.nodes[A].copy, blocked_seconds=700.0))
    assert decide(situation(stuck)) == Keep(f"{A} leads")
    assert isinstance(decide(situation(stuck, requested=B)), Move)
    assert isinstance(decide(situation(replace(stuck, leaving="its pod is being deleted"))), Move)
    assert isinstance(decide(situation(replace(stuck, relieved="its node is restarted"))), Move)


def test_a_roll_relieves_a_leader_on_which_statements_hang():
    stuck = replace(rolled(OLD, NEW), nodes={**CALM.nodes, PODS[0]: (replace(LED, blocked_seconds=700.0),)})
    change, *_ = plan_both(stuck).actions
    assert isinstance(change, ChangeTablespaceRecord)
    assert change.record.leader == PODS[1]


@pytest.mark.parametrize(("told", "seconds"), [({"blockedSeconds": 75}, 75.0), ({}, None), ({"blockedSeconds": "long"}, None)])
def test_what_a_node_tells_is_read(told, seconds):
    (found,) = read_node(ClusterReader(None, None, Answers(**told)), NodeAddress("node", None))
    assert found.blocked_seconds == seconds
