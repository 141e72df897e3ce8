"""What Checkpoints found out about a replica stays known, and says whether a tablespace's replicas are verified."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml
from situations import EXAMPLES, LOG_STORE, quickstart, ready, with_metadata, with_spec, with_status

from herdkeeper.api.checkpoint import ComparisonStatus, Lsn
from herdkeeper.api.tablespace import ReplicaStatus
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.herddb.log.seen import LogPin
from herdkeeper.herddb.state.cluster import NodeTablespace, VersionedRecord
from herdkeeper.herddb.tablespace.state import TablespaceObserved
from herdkeeper.herddb.tablespace.status import summarize_tablespace
from herdkeeper.herddb.tablespace.verdicts import Verdict, judged, verdicts_in_force
from herdkeeper.shared.conditions import REPLICAS_VERIFIED
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown
from herdkeeper_e2e.defaulting import stored

TABLESPACE = quickstart("Tablespace")
CHECKPOINT = next(
    stored(document, "demo")
    for document in yaml.safe_load_all((EXAMPLES / "checkpoint.yaml").read_text())
    if document["kind"] == "Checkpoint"
)
LEADER, FIRST, SECOND = (f"db-herddb-{number}" for number in range(3))
AT = "2026-01-01T00:00:00Z"


def checkpoint(name: str, entry: int, *tables: str, node: str = FIRST, uuid: str = "a-uuid"):
    """One that compared `node`, and found these tables different."""
    found = ComparisonStatus(
        node=node,
        tablespace_uuid=uuid,
        lsn=Lsn(ledger_id=4, entry_id=entry),
        result="Different" if tables else "Equal",
        different_tables=tables,
    )
    return with_status(with_metadata(CHECKPOINT, name=name), phase="Failed" if tables else "Succeeded", completed_at=AT, comparison=found)


def remembered(entry: int, *tables: str, node: str = FIRST) -> ReplicaStatus:
    return ReplicaStatus(
        node=node,
        role="follower",
        verdict="Different" if tables else "Equal",
        verified_lsn=Lsn(ledger_id=4, entry_id=entry),
        verified_at=AT,
        verified_by="earlier",
        different_tables=tables,
    )


EQUAL, DIFFERENT = Verdict(FIRST, (4, 9), True, (), AT, "c"), Verdict(FIRST, (4, 9), False, ("flights",), AT, "c")


@pytest.mark.parametrize(
    ("before", "checkpoints", "expected"),
    [
        ((), (), None),
        ((), (CHECKPOINT,), None),
        ((), (checkpoint("c", 9),), EQUAL),
        ((), (checkpoint("c", 9, "flights"),), DIFFERENT),
        ((), (checkpoint("c", 9, uuid="another"),), None),
        ((remembered(9),), (), replace(EQUAL, checkpoint="earlier")),
        ((remembered(8, "flights"),), (checkpoint("c", 9),), EQUAL),
        ((remembered(10),), (checkpoint("c", 9, "flights"),), replace(EQUAL, lsn=(4, 10), checkpoint="earlier")),
        ((), (checkpoint("b", 9), checkpoint("c", 9, "flights"), checkpoint("d", 9)), DIFFERENT),
        ((ReplicaStatus(node=FIRST, role="follower", verdict="NotChecked"),), (), None),
    ],
    ids=[
        "nothing is known",
        "a Checkpoint that has not ended",
        "equal",
        "different",
        "of a tablespace that had the name before",
        "its Checkpoint was deleted",
        "equal again",
        "different once, equal since",
        "at the same LSN, different counts",
        "not checked",
    ],
)
def test_the_newest_verdict_counts(before, checkpoints, expected):
    known = with_status(TABLESPACE, uuid="a-uuid", replicas=before)
    assert verdicts_in_force(known, "a-uuid", checkpoints).get(FIRST) == expected


@pytest.mark.parametrize(
    ("mark", "found", "expected"),
    [
        (None, checkpoint("c", 9, "flights"), DIFFERENT),
        ("4,9", checkpoint("c", 9, "flights"), None),
        ("4,9", checkpoint("c", 10, "flights"), replace(DIFFERENT, lsn=(4, 10), made_anew=True)),
        ("4,8 verified", checkpoint("c", 9, "flights"), DIFFERENT),
        ("4,9", checkpoint("c", 8), None),
        ("4,9 until 4,12", checkpoint("c", 12, "flights"), None),
        ("4,9 until 4,12", checkpoint("c", 13, "flights"), replace(DIFFERENT, lsn=(4, 13), made_anew=True)),
        ("4,9 until 4,12 verified", checkpoint("c", 13, "flights"), replace(DIFFERENT, lsn=(4, 13))),
        ("4,9 until 4,12", checkpoint("c", 9), EQUAL),
        ("4,9 until 4,12", checkpoint("c", 11), None),
        ("4,9 until 4,12", checkpoint("c", 12), replace(EQUAL, lsn=(4, 12))),
        ("4,20 until 4,30 of another-uuid", checkpoint("c", 9, "flights"), DIFFERENT),
        ("4,20 until 4,30 of a-uuid", checkpoint("c", 9, "flights"), None),
        ("whatever", checkpoint("c", 9, "flights"), DIFFERENT),
    ],
    ids=[
        "never moved aside",
        "moved aside for this",
        "different again",
        "different again, but equal meanwhile",
        "the old copy was equal once, before it differed",
        "another Checkpoint had compared the old copy, and ended later",
        "different again, after all that the old copy could have had",
        "the same, but equal meanwhile",
        "equal again, in a log without new entries",
        "the old copy was equal again before it was moved aside, as a Checkpoint tells that ended later",
        "equal again, after all that the old copy could have had",
        "another tablespace's copy was moved aside, as a manifest from a backup tells",
        "moved aside for what was found later",
        "a mark that can't be read is none",
    ],
)
def test_a_verdict_on_a_copy_that_was_moved_aside_counts_no_more(mark, found, expected):
    annotations = {f"set-aside.herdkeeper.io/{FIRST}": mark} if mark else {}
    tablespace = with_metadata(TABLESPACE, annotations=annotations)
    assert verdicts_in_force(tablespace, "a-uuid", (found,)).get(FIRST) == expected


def test_equal_at_the_lsn_of_the_mark_is_of_the_new_copy_though_the_old_verdict_is_still_known():
    marked = with_metadata(TABLESPACE, annotations={f"set-aside.herdkeeper.io/{FIRST}": "4,9"})
    tablespace = with_status(marked, replicas=(remembered(9, "flights"),))
    found = (checkpoint("b", 9, "flights"), checkpoint("c", 9))
    assert verdicts_in_force(tablespace, "a-uuid", found).get(FIRST) == EQUAL


def test_what_the_status_says_of_a_tablespace_that_had_the_name_before_counts_no_more():
    known = with_status(TABLESPACE, uuid="a-uuid", replicas=(remembered(9, "flights"),))
    assert verdicts_in_force(known, "another", ()) == {}
    nodes = {FIRST: (copy("follower"),), SECOND: (replace(copy("follower"), uuid="another"),)}
    marked = judged(nodes, "a-uuid", {FIRST: DIFFERENT, SECOND: replace(DIFFERENT, node=SECOND)})
    assert [view[0].differs is not None for view in marked.values()] == [True, False]


def test_a_copy_that_differs_is_remembered_off_the_list_until_it_was_moved_aside():
    off = replace(SEEN, record=VersionedRecord(replace(RECORD, replicas=(LEADER, SECOND)), 5), checkpoints=(checkpoint("c", 9, "flights"),))
    fields = summarize_tablespace(off).fields
    assert [(entry["node"], entry["role"], entry["verdict"]) for entry in fields["replicas"]][-1] == (FIRST, "removed", "Different")
    moved = with_metadata(TABLESPACE, annotations={f"set-aside.herdkeeper.io/{FIRST}": "4,9"})
    assert FIRST not in [entry["node"] for entry in summarize_tablespace(replace(off, tablespace=moved)).fields["replicas"]]


@pytest.mark.parametrize(("declared", "status"), [(2, "True"), (3, "False")])
def test_a_copy_that_differs_on_a_node_that_left_the_database_is_remembered_and_leaves_the_others_verified(declared, status):
    off = replace(
        SEEN,
        herddb=with_spec(SEEN.herddb, replicas=declared),
        record=VersionedRecord(replace(RECORD, replicas=(LEADER, FIRST)), 5),
        checkpoints=(checkpoint("b", 8), checkpoint("c", 9, "flights", node=SECOND)),
    )
    summary = summarize_tablespace(off)
    assert summary.conditions[REPLICAS_VERIFIED].status == status
    assert (SECOND, "removed") in [(entry["node"], entry["role"]) for entry in summary.fields["replicas"]]


def copy(role: str) -> NodeTablespace:
    return NodeTablespace("flights", "a-uuid", role, True, (4, 20), None)


RECORD = TablespaceRecord("a-uuid", "flights", LEADER, (LEADER, FIRST, SECOND), 1, 30_000)
SEEN = TablespaceObserved(
    tablespace=TABLESPACE,
    herddb=ready(quickstart("HerdDBCluster")),
    log=LOG_STORE,
    record=VersionedRecord(RECORD, 4),
    log_left=True,
    system_leader=LEADER,
    leaderships={},
    disk_pin=LogPin((1_000, 0), 0),
    nodes={LEADER: (copy("leader"),), FIRST: (copy("follower"),), SECOND: (copy("follower"),)},
)
BOTH_EQUAL = (checkpoint("a", 9), checkpoint("b", 12, node=SECOND))


@pytest.mark.parametrize(
    ("checkpoints", "status", "reason", "message"),
    [
        (
            BOTH_EQUAL,
            "True",
            Reason.VERIFIED,
            "db-herddb-1 was equal to the log at LSN 4,9 (Checkpoint a); db-herddb-2 was equal to the log at LSN 4,12 (Checkpoint b)",
        ),
        (
            BOTH_EQUAL[:1],
            "Unknown",
            Reason.NOT_VERIFIED,
            "db-herddb-2: not compared with the log yet; a Checkpoint with verify: Follower compares one of them",
        ),
        (
            (*BOTH_EQUAL, checkpoint("c", 15, "airports", "flights")),
            "False",
            Reason.REPLICA_DIFFERS,
            "db-herddb-1 had other rows than the log at LSN 4,15 (Checkpoint c) in airports, flights; it can't lead, and is rebuilt",
        ),
        (
            (checkpoint("c", 15, "flights", node=LEADER),),
            "False",
            Reason.LEADER_DIFFERS,
            "db-herddb-0 had other rows than the log at LSN 4,15 (Checkpoint c) in flights; it leads until another replica can: "
            "raise spec.replicas if there is none. A new replica is built from the log while that still has its beginning. "
            "Later it is built from this leader, with the same rows: then restore the last verified Checkpoint into a new Tablespace",
        ),
        (
            (checkpoint("c", 15, "flights", node=SECOND),),
            "False",
            Reason.REBUILT_IN_VAIN,
            "db-herddb-2 had other rows than the log at LSN 4,15 (Checkpoint c) in flights; db-herddb-2 was rebuilt before: "
            "investigate, then rebuild it once more with `kubectl annotate tablespace flights "
            "set-aside.herdkeeper.io/db-herddb-2- -n demo`",
        ),
    ],
    ids=["all equal", "one was not compared", "one differs", "the leader differs", "one differs again"],
)
def test_replicas_are_verified_once_each_follower_was_equal(checkpoints, status, reason, message):
    before = with_metadata(TABLESPACE, annotations={f"set-aside.herdkeeper.io/{SECOND}": "4,7"})
    health = summarize_tablespace(replace(SEEN, tablespace=before, checkpoints=checkpoints)).conditions[REPLICAS_VERIFIED]
    assert (health.status, health.reason, health.message) == (status, reason, message)


def test_without_a_follower_nothing_can_be_verified():
    alone = replace(SEEN, record=VersionedRecord(replace(RECORD, replicas=(LEADER,)), 4))
    assert summarize_tablespace(alone).conditions[REPLICAS_VERIFIED].reason is Reason.NOT_VERIFIED


def test_each_replica_has_its_verdict_in_the_status():
    fields = summarize_tablespace(replace(SEEN, checkpoints=(checkpoint("c", 9, "flights"),))).fields
    assert fields["replicas"] == [
        {"node": LEADER, "role": "leader", "verdict": "NotChecked"},
        {
            "node": FIRST,
            "role": "follower",
            "verdict": "Different",
            "verifiedLsn": {"ledgerId": 4, "entryId": 9},
            "verifiedAt": AT,
            "verifiedBy": "c",
            "differentTables": ["flights"],
        },
        {"node": SECOND, "role": "follower", "verdict": "NotChecked"},
    ]


def test_verdicts_are_kept_while_the_list_of_replicas_cant_be_read():
    """A Checkpoint that was deleted tells nobody again."""
    known = with_status(TABLESPACE, uuid="a-uuid", replicas=(remembered(9, "flights"),))
    summary = summarize_tablespace(replace(SEEN, tablespace=known, record=Unknown("ZooKeeper did not answer")))
    assert [(copy["verdict"], copy["role"]) for copy in summary.fields["replicas"]] == [("Different", "unknown")]
    assert summary.conditions[REPLICAS_VERIFIED].status == "Unknown"
    again = with_status(TABLESPACE, uuid="a-uuid", replicas=tuple(map(ReplicaStatus.model_validate, summary.fields["replicas"])))
    assert summarize_tablespace(replace(SEEN, tablespace=again)).conditions[REPLICAS_VERIFIED].reason is Reason.REPLICA_DIFFERS
