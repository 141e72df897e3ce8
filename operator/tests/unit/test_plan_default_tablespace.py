"""HerdDB's own tablespace gets a replica on each node, one after the other."""

from __future__ import annotations

from dataclasses import replace

from situations import objects, pods
from test_plan_herddb import LOG, PODS, SETTLED

from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.herddb.state.cluster import NodeTablespace, VersionedRecord
from herdkeeper.herddb.tablespace.default import plan_default_tablespace
from herdkeeper.planning.actions import ChangeTablespaceRecord
from herdkeeper.shared.unknown import Unknown

MADE_BY_HERDDB = TablespaceRecord("h-uuid", "herd", PODS[0], (PODS[0],), 1, 0)
COPY = NodeTablespace("herd", "h-uuid", "leader", True, (1, 1), None, (1, 0), True)


def planned(record: TablespaceRecord, **more):
    seen = replace(SETTLED, records={"herd": VersionedRecord(record, 3)}, nodes={PODS[0]: (COPY,), PODS[1]: ()})
    return plan_default_tablespace(replace(seen, **more), LOG)


def test_it_is_made_able_to_fail_over_and_then_copied():
    (first,) = planned(MADE_BY_HERDDB)
    able = replace(MADE_BY_HERDDB, max_leader_inactivity_millis=60_000)
    assert (first.path, first.version, first.record) == ("/demo/db/herd/tableSpaces/herd", 3, able)
    (second,) = planned(able)
    assert second.record == replace(able, replicas=(PODS[0], PODS[1]))
    assert planned(second.record) == ()


def test_it_is_not_copied_to_a_node_that_is_not_there_or_while_a_copy_is_not_settled():
    able = replace(MADE_BY_HERDDB, max_leader_inactivity_millis=60_000)
    assert planned(able, objects=objects(pods([PODS[0]]))) == ()
    assert planned(able, nodes={PODS[0]: (replace(COPY, ready=False),), PODS[1]: ()}) == ()
    assert planned(able, nodes={PODS[0]: Unknown("silence"), PODS[1]: ()}) == ()
    assert planned(able, nodes={PODS[0]: (COPY,), PODS[1]: Unknown("silence")}) == (), "it is Ready, and does not answer"


def test_nothing_is_changed_that_could_not_be_read():
    assert plan_default_tablespace(replace(SETTLED, records=Unknown("silence")), LOG) == ()
    assert plan_default_tablespace(SETTLED, LOG) == ()
    assert all(isinstance(change, ChangeTablespaceRecord) for change in planned(MADE_BY_HERDDB))
