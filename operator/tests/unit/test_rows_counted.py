"""What nodes tell of their rows: other numbers than the leader's at one LSN are a verdict. And what they can't apply is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from situations import quickstart, readable, with_status
from test_known_to_differ import document
from test_replica_verdicts import FIRST, LEADER, RECORD, SECOND, checkpoint, copy
from test_replica_verdicts import SEEN as SETTLED

from herdkeeper.api import Tablespace
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.herddb.leadership.decision import Node, Refused, Situation, decide
from herdkeeper.herddb.observe.address import NodeAddress
from herdkeeper.herddb.observe.nodes import read_node
from herdkeeper.herddb.state.cluster import Counts, NodeTablespace, Unreplayable, VersionedRecord
from herdkeeper.herddb.tablespace.judged_nodes import judged_nodes
from herdkeeper.herddb.tablespace.plan import plan_tablespace
from herdkeeper.herddb.tablespace.status import summarize_tablespace
from herdkeeper.herddb.tablespace.verdicts import verdicts_in_force
from herdkeeper.planning.actions import BarPromotion, ChangeTablespaceRecord
from herdkeeper.shared.conditions import LOG_REPLAYABLE, REPLICAS_VERIFIED
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

TABLESPACE = with_status(quickstart("Tablespace"), uuid="a-uuid")
SEEN = replace(SETTLED, tablespace=TABLESPACE)
AT = (4, 20)


def counted(role: str, lsn: tuple[int, int] | None = AT, **tables: int) -> tuple[NodeTablespace, ...]:
    return (replace(copy(role), recoverable=True, counts=Counts(lsn, tables) if lsn is not None else None),)


@pytest.mark.parametrize(
    ("situation", "leader", "follower", "different"),
    [
        ("equal", counted("leader", t=11), counted("follower", t=11), None),
        ("rows lack", counted("leader", t=11, u=5), counted("follower", t=1, u=5), ("t",)),
        ("a table lacks", counted("leader", t=11, u=5), counted("follower", t=11), ("u",)),
        (
            "a table that an open transaction makes is told by a follower that has booted since",
            counted("leader", t=11),
            counted("follower", t=11, made=0),
            None,
        ),
        ("at another LSN nothing follows", counted("leader", t=11), counted("follower", (4, 19), t=1), None),
        ("the leader applied something meanwhile", counted("leader", None), counted("follower", t=1), None),
        ("the leader is silent", Unknown("silence"), counted("follower", t=1), None),
    ],
)
def test_other_numbers_of_rows_at_one_lsn_are_a_verdict(situation, leader, follower, different):
    verdict = verdicts_in_force(TABLESPACE, "a-uuid", (checkpoint("c", 9),), {LEADER: leader, FIRST: follower})[FIRST]
    assert (None if verdict.equal else verdict.different_tables) == different, situation


def test_while_two_nodes_say_that_they_lead_nothing_follows_from_their_numbers_of_rows():
    """One of them does not know yet that it leads no more."""
    nodes = {LEADER: counted("leader", t=11), SECOND: counted("leader", t=7), FIRST: counted("follower", t=11)}
    for told in (nodes, dict(reversed(nodes.items()))):
        assert verdicts_in_force(TABLESPACE, "a-uuid", (), told) == {}


@pytest.mark.parametrize("known_by", ["a Checkpoint", "its own node"])
def test_other_numbers_of_rows_than_a_leader_that_is_known_to_differ_bar_no_copy_that_was_equal(known_by):
    found = [checkpoint("good", 9)] + ([checkpoint("wrong", 9, "t", node=LEADER)] if known_by == "a Checkpoint" else [])
    leader = (replace(counted("leader", t=1)[0], barred=known_by == "its own node"),)
    verdicts = verdicts_in_force(TABLESPACE, "a-uuid", found, {LEADER: leader, FIRST: counted("follower", t=11)})
    assert (verdicts[FIRST].equal, verdicts[LEADER].equal) == (True, False)


def test_nobody_is_switched_over_to_a_follower_that_has_other_numbers_of_rows():
    seen = {LEADER: counted("leader", t=11), FIRST: counted("follower", t=1)}
    views = judged_nodes(seen, readable(TABLESPACE), ())
    nodes = {node: Node(copy=view[0]) for node, view in views.items() if not isinstance(view, Unknown)}
    record = replace(RECORD, replicas=(LEADER, FIRST))
    decision = decide(Situation(record, nodes, None, changed_at=1000.0, now=2000.0, requested=FIRST))
    assert decision == Refused(f"{FIRST} can't lead now: it had other rows than the leader at LSN 4,20 in t")


def test_the_condition_names_the_tables():
    seen = replace(SEEN, nodes={**SEEN.nodes, LEADER: counted("leader", t=11), FIRST: counted("follower", t=1)})
    found = summarize_tablespace(seen).conditions[REPLICAS_VERIFIED]
    assert (found.reason, "in t" in found.message) == (Reason.DIFFERS_FROM_LEADER, True)
    assert "verify: Follower" in found.message


MISCOUNTED = replace(
    SEEN,
    record=VersionedRecord(
        replace(
            RECORD, replicas=(LEADER, FIRST), max_leader_inactivity_millis=TABLESPACE.spec.failover.max_leader_inactivity_seconds * 1000
        ),
        4,
    ),
    nodes={**SEEN.nodes, LEADER: counted("leader", t=11), FIRST: (replace(counted("follower", t=1)[0], barred=False),)},
)


def test_a_follower_with_other_numbers_of_rows_than_the_leader_can_t_lead_and_is_kept():
    """The leader may be the one that lacks rows: what the followers have is not given away for its word."""
    actions = plan_tablespace(MISCOUNTED, "an-image").actions
    assert [type(action) for action in actions] == [BarPromotion]


def remembering(fields: dict[str, Any]) -> Tablespace:
    """The tablespace, whose status was written."""
    return Tablespace.model_validate({**document(TABLESPACE), "status": {"uuid": "a-uuid", "replicas": fields["replicas"]}})


def test_numbers_of_rows_that_differed_once_remove_nothing_later_either():
    tablespace = remembering(summarize_tablespace(MISCOUNTED).fields)
    seen = replace(MISCOUNTED, nodes={**SEEN.nodes, FIRST: (replace(copy("follower"), barred=True),)})
    assert plan_tablespace(replace(seen, tablespace=tablespace), "an-image").actions == ()
    found = summarize_tablespace(replace(seen, tablespace=tablespace)).conditions[REPLICAS_VERIFIED]
    assert (found.reason, "other rows than the leader" in found.message) == (Reason.DIFFERS_FROM_LEADER, True)


def test_numbers_of_rows_that_still_differ_are_neither_noted_nor_written_anew_with_each_entry():
    (bar,) = plan_tablespace(MISCOUNTED, "an-image").actions
    assert isinstance(bar, BarPromotion)
    fields = summarize_tablespace(MISCOUNTED).fields
    follower = replace(counted("follower", (4, 25), t=1)[0], barred=True, barred_until=bar.until)
    later = replace(MISCOUNTED, nodes={**SEEN.nodes, LEADER: counted("leader", (4, 25), t=11), FIRST: (follower,)})
    assert plan_tablespace(replace(later, tablespace=remembering(fields)), "an-image").actions == ()
    assert summarize_tablespace(replace(later, tablespace=remembering(fields))).fields["replicas"] == fields["replicas"]
    equal_between = replace(later, checkpoints=(checkpoint("c", 22),))
    (again,) = plan_tablespace(replace(equal_between, tablespace=remembering(fields)), "an-image").actions
    assert isinstance(again, BarPromotion)
    assert (again.barred, again.until) == (True, (4, 24)), "what still differs after a Checkpoint found it equal is news"


def test_a_checkpoint_decides_what_numbers_of_rows_leave_open():
    tablespace = remembering(summarize_tablespace(MISCOUNTED).fields)
    different = replace(MISCOUNTED, checkpoints=(checkpoint("c", 21, "t"),))
    actions = plan_tablespace(replace(different, tablespace=tablespace), "an-image").actions
    assert any(isinstance(action, ChangeTablespaceRecord) for action in actions)
    (bar,) = plan_tablespace(MISCOUNTED, "an-image").actions
    assert isinstance(bar, BarPromotion)
    assert bar.until == (4, 19), "at one LSN the log outweighs the leader's rows"
    barred = {**SEEN.nodes, FIRST: (replace(copy("follower"), barred=True, barred_until=bar.until),)}
    equal = replace(MISCOUNTED, nodes=barred, checkpoints=(checkpoint("c", 20),))
    (unbar,) = plan_tablespace(replace(equal, tablespace=tablespace), "an-image").actions
    assert isinstance(unbar, BarPromotion)
    assert not unbar.barred


def test_numbers_of_rows_never_keep_a_copy_that_differs_from_the_log_from_being_made_anew():
    tablespace = remembering(summarize_tablespace(replace(MISCOUNTED, checkpoints=(checkpoint("c", 5, "t"),))).fields)
    actions = plan_tablespace(replace(MISCOUNTED, tablespace=tablespace), "an-image").actions
    assert any(isinstance(action, ChangeTablespaceRecord) for action in actions)


STUCK = Unreplayable((7, 41), "TRUNCATE", "t", "a transaction is on the table")


def test_an_entry_that_can_t_be_applied_is_told_with_the_way_out():
    stuck = replace(copy("booting"), ready=False, unreplayable=STUCK)
    message = summarize_tablespace(replace(SEEN, nodes={**SEEN.nodes, FIRST: (stuck,)})).conditions[LOG_REPLAYABLE].message
    for part in (FIRST, "LSN 7,41", "flights", "TRUNCATE of t", "a transaction is on the table", "the moment before", "spec.bootstrap"):
        assert part in message
    assert LOG_REPLAYABLE not in summarize_tablespace(SEEN).conditions


def test_an_entry_that_another_follower_is_past_may_tell_of_a_bad_copy_and_not_of_a_bad_log():
    stuck = replace(copy("booting"), ready=False, unreplayable=STUCK)
    past = replace(copy("follower"), lsn=STUCK.lsn)
    seen = replace(SEEN, nodes={**SEEN.nodes, FIRST: (stuck,), "db-herddb-9": (past,)})
    message = summarize_tablespace(seen).conditions[LOG_REPLAYABLE].message
    assert "db-herddb-9 is past it" in message
    assert f"delete the volume claim and the pod of {FIRST}" in message
    assert "Nobody can lead" not in message


def test_an_entry_that_a_full_disk_refuses_is_no_fault_of_the_log_and_asks_for_no_restore():
    full = replace(copy("booting"), ready=False, unreplayable=replace(STUCK, message="No space left on device", disk=True))
    health = summarize_tablespace(replace(SEEN, nodes={**SEEN.nodes, FIRST: (full,)})).conditions[LOG_REPLAYABLE]
    assert health.reason is Reason.DISK_REFUSES_REPLAY
    assert f"grow its volume claim (kubectl edit pvc data-{FIRST}; spec.storage can't change)" in health.message
    assert f"damaged, and if no tablespace has its only replica there, delete the volume claim and the pod of {FIRST}" in health.message
    assert "bootstrap" not in health.message
    stuck = replace(full, unreplayable=STUCK)
    both = replace(SEEN, nodes={**SEEN.nodes, FIRST: (full,), "db-herddb-9": (stuck,)})
    health = summarize_tablespace(both).conditions[LOG_REPLAYABLE]
    assert health.reason is Reason.LOG_UNREPLAYABLE
    assert health.message.startswith("db-herddb-9 can't apply")


def test_a_listed_ledger_of_another_log_is_told_and_asks_for_the_log_s_own_cluster_and_no_restore():
    why = "ledger 7 is listed for the tablespace a-uuid, and its metadata names the tablespace b-uuid"
    foreign = replace(copy("booting"), ready=False, unreplayable=Unreplayable((7, -1), "FOREIGN_LEDGER", None, why))
    stuck = replace(copy("booting"), ready=False, unreplayable=STUCK)
    seen = replace(SEEN, nodes={**SEEN.nodes, FIRST: (foreign,), "db-herddb-9": (stuck,)})
    health = summarize_tablespace(seen).conditions[LOG_REPLAYABLE]
    assert health.reason is Reason.LOG_UNREPLAYABLE
    assert health.message.startswith(f"{FIRST} can't replay the log of flights: {why}")
    assert "the BookKeeperCluster that has the log" in health.message
    assert "bootstrap" not in health.message
    assert "delete the volume" not in health.message


@pytest.mark.parametrize(
    ("ledger", "why"),
    [
        (7, "ledger 7 is listed, and gone from BookKeeper"),
        (-1, "the list of its ledgers in ZooKeeper is empty or gone, though db-0 has led"),
    ],
)
def test_a_lost_ledger_or_list_is_told_and_asks_for_a_backup_of_zookeeper_or_the_newest_checkpoint(ledger, why):
    lost = replace(copy("booting"), ready=False, unreplayable=Unreplayable((ledger, -1), "LOST_LEDGER", None, why))
    health = summarize_tablespace(replace(SEEN, nodes={**SEEN.nodes, FIRST: (lost,)})).conditions[LOG_REPLAYABLE]
    assert health.reason is Reason.LOG_UNREPLAYABLE
    assert health.message.startswith(f"{FIRST} can't replay the log of flights: {why}. Put it back from a backup of ZooKeeper")
    assert "the newest Checkpoint (spec.bootstrap)" in health.message
    assert "the moment before" not in health.message
    assert "delete the volume" not in health.message


class Answers:
    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def get(self, _url: str, _trust: None) -> list[dict[str, Any]]:
        return [{"name": "flights", "uuid": "a-uuid", "role": "follower", "ready": True, **self.fields}]


def test_what_a_node_tells_is_read():
    counts = {"exact": True, "position": {"ledgerId": 4, "entryId": 20}, "tables": {"t": 52}}
    entry = {"ledgerId": 7, "offset": 41, "entryType": "TRUNCATE", "table": "t", "message": "a transaction is on the table"}
    (told,) = read_node(ClusterReader(None, None, Answers(counts=counts, unreplayable=entry)), NodeAddress("node", None))
    assert (told.counts, told.unreplayable) == (Counts(AT, {"t": 52}), STUCK)
    (full,) = read_node(ClusterReader(None, None, Answers(unreplayable={**entry, "disk": True})), NodeAddress("node", None))
    assert full.unreplayable == replace(STUCK, disk=True)
    (moving,) = read_node(
        ClusterReader(None, None, Answers(counts={**counts, "exact": False}, unreplayable=None)), NodeAddress("node", None)
    )
    assert (moving.counts, moving.unreplayable) == (None, None)
    (older,) = read_node(ClusterReader(None, None, Answers()), NodeAddress("node", None))
    assert (older.counts, older.unreplayable) == (None, None)
