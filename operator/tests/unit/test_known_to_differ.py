"""That a copy differs from the log is known from more than a status: nodes and Checkpoints remember it too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from situations import quickstart, with_metadata, with_status
from test_replica_verdicts import CHECKPOINT, FIRST, LEADER, RECORD, SEEN, checkpoint, copy, remembered

from herdkeeper.api import Checkpoint, Tablespace
from herdkeeper.api.checkpoint import Lsn
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.clients.kubernetes import KubernetesReader
from herdkeeper.codecs.herddb.ledgers import LedgerList
from herdkeeper.herddb.observe.cluster import declared_tablespaces
from herdkeeper.herddb.state.cluster import NodeTablespace, TableVerdict, VersionedRecord
from herdkeeper.herddb.tablespace.judged_nodes import judged_nodes
from herdkeeper.herddb.tablespace.plan import plan_tablespace
from herdkeeper.herddb.tablespace.status import summarize_tablespace
from herdkeeper.herddb.tablespace.verdicts import verdicts_in_force
from herdkeeper.planning.actions import Annotate, BarPromotion, ChangeTablespaceRecord, SetCopyAside
from herdkeeper.shared.conditions import REPLICAS_VERIFIED
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

TABLESPACE = quickstart("Tablespace")
CLUSTER = quickstart("HerdDBCluster")
NODES = {LEADER: (copy("leader"),), FIRST: (copy("follower"),)}
KNOWN = with_status(TABLESPACE, uuid="a-uuid", replicas=(remembered(9, "flights"),))


def document(resource: Any) -> dict[str, Any]:
    """As the API server lists it."""
    found: dict[str, Any] = resource.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {"apiVersion": "herdkeeper.io/v1alpha1", "kind": type(resource).KIND, **found}


class Listed(KubernetesReader):
    """Lists these documents."""

    def __init__(self, *documents: dict[str, Any]) -> None:
        super().__init__(None)
        self.listed = documents

    def documents(self, kind: Any, _namespace: str) -> tuple[dict[str, Any], ...]:
        return tuple(each for each in self.listed if each["kind"] == kind.KIND)


def follower(*documents: dict[str, Any]) -> NodeTablespace:
    """What is known of the follower's copy when the namespace has these resources."""
    reader = ClusterReader(Listed(*documents), None, None)
    found = reader.kubernetes.resources(Checkpoint, CLUSTER.metadata.namespace)
    nodes = judged_nodes(NODES, declared_tablespaces(CLUSTER.key, reader), found)
    view = nodes[FIRST]
    assert not isinstance(view, Unknown)
    return view[0]


def test_what_the_status_says_is_known():
    assert "had other rows than the log" in str(follower(document(KNOWN)).differs)
    assert follower(document(with_status(TABLESPACE, uuid="a-uuid"))).differs is None


@pytest.mark.parametrize(
    "tablespaces",
    [(), (document(TABLESPACE),), (document(with_metadata(TABLESPACE, deletion_timestamp="2026-01-01T00:00:00Z")),)],
    ids=["the Tablespace was deleted under Retain", "its status was lost", "its status was lost, and it is being deleted"],
)
def test_what_a_checkpoint_found_out_is_known_though_no_status_says_it(tablespaces):
    assert "had other rows" in str(follower(*tablespaces, document(checkpoint("c", 9, "flights"))).differs)
    assert follower(*tablespaces, document(checkpoint("c", 9))).differs is None
    assert follower(*tablespaces, document(CHECKPOINT)).differs is None


def test_what_a_checkpoint_has_just_found_out_is_known_before_the_status_says_it():
    older = with_status(TABLESPACE, uuid="a-uuid", replicas=(remembered(9),))
    assert "had other rows" in str(follower(document(older), document(checkpoint("c", 12, "flights"))).differs)


def test_a_status_without_the_uuid_hides_nothing_that_a_copy_made_anew_is_rid_of():
    anew = with_metadata(TABLESPACE, annotations={f"set-aside.herdkeeper.io/{FIRST}": "4,9 verified"})
    assert follower(document(anew), document(checkpoint("c", 9, "flights"))).differs is None


def test_a_tablespace_whose_spec_cant_be_read_still_tells_which_copies_differ():
    broken = document(KNOWN)
    broken["spec"] = {**broken["spec"], "replicas": "two"}
    assert "had other rows than the log" in str(follower(broken).differs)


@pytest.mark.parametrize("spec", [{}, {"replicas": "two"}], ids=["readable", "unreadable"])
def test_where_a_status_cant_be_read_it_is_not_known_whether_copies_differ(spec):
    broken = document(KNOWN)
    broken["status"] = {**broken["status"], "replicas": "all"}
    broken["spec"] = {**broken["spec"], **spec}
    differs = follower(broken).differs
    assert isinstance(differs, Unknown)
    assert "the status of the Tablespace flights can't be read" in differs.why
    assert "had other rows than the log" in str(follower(broken, document(checkpoint("c", 9, "flights"))).differs), "that stays known"


def test_a_status_that_cant_be_read_is_no_concern_where_another_resource_made_the_tablespace():
    twin = document(with_metadata(KNOWN, name="twin"))
    twin["spec"] = {**twin["spec"], "tablespaceName": "flights"}
    twin["status"] = {"replicas": "all"}
    assert follower(document(with_status(TABLESPACE, uuid="a-uuid")), twin).differs is None
    assert isinstance(follower(twin).differs, Unknown)


def test_a_status_of_another_database_s_tablespace_that_cant_be_read_is_nobody_else_s_concern():
    broken = document(KNOWN)
    broken["status"] = {**broken["status"], "replicas": "all"}
    broken["spec"] = {**broken["spec"], "herdDBRef": {"name": "another"}}
    assert follower(broken).differs is None


BARRED = replace(SEEN, nodes={**SEEN.nodes, FIRST: (replace(copy("follower"), barred=True),)})


def test_a_copy_that_its_node_alone_remembers_as_different_is_told_and_kept():
    tablespace = with_status(TABLESPACE, uuid="a-uuid")
    summary = summarize_tablespace(replace(BARRED, tablespace=tablespace))
    assert summary.conditions[REPLICAS_VERIFIED].reason is Reason.DIFFERS_FROM_LEADER
    assert "as its node has noted on its disk" in summary.conditions[REPLICAS_VERIFIED].message
    assert {"node": FIRST, "verdict": "Different"}.items() <= next(
        {key: entry[key] for key in ("node", "verdict")} for entry in summary.fields["replicas"] if entry["node"] == FIRST
    ).items()
    settings = replace(RECORD, max_leader_inactivity_millis=tablespace.spec.failover.max_leader_inactivity_seconds * 1000)
    plan = plan_tablespace(replace(BARRED, tablespace=tablespace, record=VersionedRecord(settings, 4)), "an-image")
    assert [action for action in plan.actions if isinstance(action, ChangeTablespaceRecord | SetCopyAside)] == []


def plan_of_bars(tablespace: Tablespace, follower: NodeTablespace, *checkpoints: Checkpoint) -> list[BarPromotion]:
    """The orders to nodes about promoting themselves."""
    settings = replace(RECORD, max_leader_inactivity_millis=tablespace.spec.failover.max_leader_inactivity_seconds * 1000)
    seen = replace(SEEN, nodes={**SEEN.nodes, FIRST: (follower,)}, record=VersionedRecord(settings, 4), checkpoints=checkpoints)
    return [
        action for action in plan_tablespace(replace(seen, tablespace=tablespace), "an-image").actions if isinstance(action, BarPromotion)
    ]


@pytest.mark.parametrize(
    ("until", "checked", "equal"),
    [
        ((4, 12), 9, False),
        ((4, 12), 12, False),
        ((4, 12), 13, True),
        (Unknown("the disk does not tell"), 9, False),
        (None, 9, True),
    ],
    ids=[
        "an older Checkpoint",
        "one at the same LSN",
        "a later one",
        "the node does not know the LSN, and applied more",
        "an older program notes no LSN",
    ],
)
def test_what_a_node_has_noted_falls_only_to_a_checkpoint_of_a_later_lsn(until, checked, equal):
    """The operator ended between its order to the node and the status; or the status is from a backup."""
    follower = replace(copy("follower"), barred=True, barred_until=until)
    tablespace = with_status(TABLESPACE, uuid="a-uuid", replicas=(remembered(checked),))
    assert verdicts_in_force(tablespace, "a-uuid", nodes={FIRST: (follower,)})[FIRST].equal is equal
    assert [order.barred for order in plan_of_bars(tablespace, follower) if not order.barred] == ([False] if equal else [])


BROUGHT_BACK = replace(copy("follower"), barred=True, barred_until=(4, 9))
"""Its node's volume is of a snapshot of before the rebuild."""
REBUILT = with_metadata(
    with_status(TABLESPACE, uuid="a-uuid", replicas=(remembered(20),)),
    annotations={f"set-aside.herdkeeper.io/{FIRST}": "4,9 until 4,12 verified of a-uuid"},
)


@pytest.mark.parametrize(
    "tablespace", [REBUILT, with_status(REBUILT, uuid="a-uuid", replicas=())], ids=["equal since", "not compared since"]
)
def test_what_is_known_of_a_rebuilt_copy_does_not_free_the_old_one_that_a_snapshot_brought_back(tablespace):
    assert not verdicts_in_force(tablespace, "a-uuid", nodes={FIRST: (BROUGHT_BACK,)})[FIRST].equal
    assert [(order.node, order.barred) for order in plan_of_bars(tablespace, BROUGHT_BACK)] == [(FIRST, True)]


def test_a_bar_of_which_the_disk_does_not_tell_the_lsn_stands_on_a_copy_that_was_rebuilt_before():
    untold = replace(BROUGHT_BACK, lsn=(4, 9), barred_until=Unknown("the disk does not show it"))
    assert not verdicts_in_force(REBUILT, "a-uuid", nodes={FIRST: (untold,)})[FIRST].equal


def test_a_copy_that_a_snapshot_brought_back_is_free_once_a_later_checkpoint_finds_it_equal():
    (order,) = plan_of_bars(REBUILT, BROUGHT_BACK)
    told = replace(BROUGHT_BACK, barred_until=order.until)
    assert plan_of_bars(REBUILT, told) == [], "it is told once"
    (lifted,) = plan_of_bars(REBUILT, told, checkpoint("c", 21))
    assert (lifted.barred, lifted.until) == (False, (4, 20))


def test_a_copy_that_a_snapshot_brought_back_is_rebuilt_once_a_later_checkpoint_finds_it_different():
    verdict = verdicts_in_force(REBUILT, "a-uuid", (checkpoint("c", 21, "flights"),), {FIRST: (BROUGHT_BACK,)})[FIRST]
    assert (verdict.equal, verdict.lsn, verdict.compared_with_log) == (False, (4, 21), True)


@pytest.mark.parametrize("leader", [(copy("leader"),), Unknown("it has just died")], ids=["led", "failing over"])
def test_an_equal_verdict_of_a_time_that_the_log_lost_hides_no_later_difference(leader):
    """The volumes were put back to older copies: the log is in ledger 4 again, where a Checkpoint of now finds the copy different."""
    lost = checkpoint("lost", 2)
    later = with_status(lost, comparison=lost.status.comparison.model_copy(update={"lsn": Lsn(ledger_id=9, entry_id=2)}))
    remembers = remembered(2).model_copy(update={"verified_lsn": Lsn(ledger_id=9, entry_id=2)})
    tablespace = with_status(TABLESPACE, uuid="a-uuid", replicas=(remembers,))
    nodes = {LEADER: leader, FIRST: (replace(copy("follower"), barred=True, barred_until=(4, 12)),)}
    found = verdicts_in_force(tablespace, "a-uuid", (later, checkpoint("now", 12, "flights")), nodes)
    assert (found[FIRST].equal, found[FIRST].lsn) == (False, (4, 12))
    assert not plan_of_bars(tablespace, nodes[FIRST][0], later), "its node's own mark stays, too"


def test_an_equal_verdict_of_a_time_that_the_log_lost_hides_no_later_difference_though_the_log_has_reached_its_lsn_again():
    lost, found_now = checkpoint("lost", 15), checkpoint("now", 12, "flights").status.comparison
    now = with_status(CHECKPOINT, completed_at="2026-01-02T00:00:00Z", comparison=found_now)
    tablespace = with_status(TABLESPACE, uuid="a-uuid", replicas=(remembered(15),))
    barred = replace(copy("follower"), barred=True, barred_until=(4, 12))
    found = verdicts_in_force(tablespace, "a-uuid", (lost, now), {**NODES, FIRST: (barred,)})
    assert (found[FIRST].equal, found[FIRST].lsn) == (False, (4, 12))
    assert not plan_of_bars(tablespace, barred, lost, now), "its node's own mark stays, too"
    before = with_status(CHECKPOINT, completed_at="2025-12-01T00:00:00Z", comparison=found_now)
    assert verdicts_in_force(tablespace, "a-uuid", (lost, before))[FIRST].equal, "it is equal since then"


PUT_BACK = 1_767_312_000  # a day after AT
ANEW = LedgerList((4, 9), (0, PUT_BACK * 1000), 4)
"""Volumes were put back to older copies, in which the log ended in ledger 4. Then it got another ledger 9."""


@pytest.mark.parametrize(
    ("ledgers", "hides"),
    [(ANEW, False), (replace(ANEW, active=(4, 10)), False), (replace(ANEW, added_millis=(0, 0)), True), (Unknown("silence"), True)],
    ids=["another ledger has that number", "none has it any more", "it is the one that was compared", "the list can't be read"],
)
def test_an_equal_verdict_of_a_time_that_the_log_lost_hides_no_failed_check_of_a_ledger_of_that_number(ledgers, hides):
    equal = remembered(2).model_copy(update={"verified_lsn": Lsn(ledger_id=9, entry_id=500)})
    tablespace = with_status(TABLESPACE, uuid="a-uuid", replicas=(equal,))
    failed = replace(copy("follower"), lsn=(9, 30), barred=False, checks=(TableVerdict("flights", False, (9, 3), LEADER),))
    nodes = {LEADER: (replace(copy("leader"), lsn=(9, 30)),), FIRST: (failed,)}
    found = verdicts_in_force(tablespace, "a-uuid", (), nodes, ledgers)
    assert found[FIRST].equal is hides
    settings = replace(RECORD, max_leader_inactivity_millis=tablespace.spec.failover.max_leader_inactivity_seconds * 1000)
    seen = replace(SEEN, nodes={**SEEN.nodes, **nodes}, record=VersionedRecord(settings, 4), tablespace=tablespace, ledgers=ledgers)
    bars = [action.barred for action in plan_tablespace(seen, "an-image").actions if isinstance(action, BarPromotion)]
    assert bars == ([] if hides else [True])
    (told,) = (each for each in summarize_tablespace(seen).fields["replicas"] if each["node"] == FIRST)
    assert told["verdict"] == ("Equal" if hides else "Different")


@pytest.mark.parametrize(("until", "hides"), [("9,800", False), ("4,15", True)])
def test_a_replica_that_was_rebuilt_in_a_time_that_the_log_lost_is_found_different_all_the_same(until, hides):
    marked = with_metadata(TABLESPACE, annotations={f"set-aside.herdkeeper.io/{FIRST}": f"4,9 until {until} of a-uuid"})
    lost = checkpoint("lost", 9, "flights")
    lost = with_status(lost, comparison=lost.status.comparison.model_copy(update={"lsn": Lsn(ledger_id=9, entry_id=700)}))
    found = verdicts_in_force(marked, "a-uuid", (lost, checkpoint("now", 12, "flights")), NODES, LedgerList((4, 5), (0, 0), 4))
    assert [verdict.lsn for verdict in found.values()] == ([] if hides else [(4, 12)])


@pytest.mark.parametrize(
    ("mark", "leader", "ledgers", "removed"),
    [
        ("9,800 of a-uuid", copy("leader"), (4, 5), True),
        ("9,800 verified of a-uuid", copy("leader"), (4, 5), True),
        ("9,800", copy("leader"), (4, 5), True),
        ("4,800 of a-uuid", copy("leader"), (4, 5), False),
        ("9,800 of another-uuid", copy("leader"), (4, 5), False),
        ("9,800 of a-uuid", replace(copy("leader"), lsn=(9, -1)), (4, 5), False),
        ("9,800 of a-uuid", replace(copy("leader"), role="booting", ready=False), (4, 5), False),
        ("9,800 of a-uuid", Unknown("silence"), (4, 5), False),
        ("9,800 of a-uuid", copy("leader"), (), False),
        ("9,800 of a-uuid", copy("leader"), None, False),
    ],
    ids=[
        "of the lost time",
        "of the lost time, and proven",
        "of an earlier version",
        "of this log",
        "of another tablespace",
        "the leader opens that ledger",
        "the leader boots",
        "the leader is silent",
        "nothing is listed",
        "the list can't be read",
    ],
)
def test_a_mark_of_a_time_that_the_log_lost_is_removed_before_the_log_has_that_number_again(mark, leader, ledgers, removed):
    """Only then is it known to be of that time."""
    marked = with_metadata(TABLESPACE, annotations={f"set-aside.herdkeeper.io/{FIRST}": f"4,9 until {mark}"})
    settings = replace(RECORD, max_leader_inactivity_millis=marked.spec.failover.max_leader_inactivity_seconds * 1000)
    listed = Unknown("silence") if ledgers is None else LedgerList(ledgers, (0,) * len(ledgers), 4)
    nodes = {**SEEN.nodes, LEADER: leader if isinstance(leader, Unknown) else (leader,)}
    seen = replace(SEEN, nodes=nodes, record=VersionedRecord(settings, 4), tablespace=marked, ledgers=listed)
    marks = [action.annotations for action in plan_tablespace(seen, "an-image").actions if isinstance(action, Annotate)]
    assert ({f"set-aside.herdkeeper.io/{FIRST}": None} in marks) is removed


def test_a_replica_that_was_found_different_while_a_clock_was_ahead_is_equal_once_a_later_checkpoint_says_so():
    ahead = with_status(CHECKPOINT, completed_at="2036-01-01T00:00:00Z", comparison=checkpoint("ahead", 12, "flights").status.comparison)
    tablespace = with_status(TABLESPACE, uuid="a-uuid", replicas=(remembered(15),))
    found = verdicts_in_force(tablespace, "a-uuid", (ahead, checkpoint("now", 15)), NODES, LedgerList((4,), (0,), 4))
    assert found[FIRST].equal


def test_a_node_that_notes_no_lsn_is_told_one_which_a_later_checkpoint_exceeds():
    undated = replace(copy("follower"), barred=True, barred_until=Unknown("the disk does not tell"))
    tablespace = with_status(TABLESPACE, uuid="a-uuid")
    (bar,) = plan_of_bars(tablespace, undated)
    assert (bar.barred, bar.until) == (True, (4, 20)), "what the replica has applied"
    (unbar,) = plan_of_bars(tablespace, replace(undated, barred_until=bar.until), checkpoint("c", 21))
    assert not unbar.barred


@pytest.mark.parametrize(("lsn", "shown"), [((5, -1), {"ledgerId": 5, "entryId": 0}), ((-1, -1), {"ledgerId": 0, "entryId": 0})])
def test_a_bar_without_an_lsn_on_a_node_that_has_applied_nothing_yet_is_written_to_the_status(lsn, shown):
    """A leader that has written nothing to its new ledger is before its first entry."""
    undated = replace(copy("follower"), lsn=lsn, barred=True, barred_until=Unknown("the disk does not tell"))
    fields = summarize_tablespace(replace(BARRED, nodes={**SEEN.nodes, FIRST: (undated,)})).fields
    assert [replica.get("verifiedLsn") for replica in fields["replicas"] if replica["node"] == FIRST] == [shown]
    (bar,) = plan_of_bars(TABLESPACE, undated)
    assert bar.until == (shown["ledgerId"], shown["entryId"])
