"""Heartbeats are compared as they are read, one after the other: what lies between the reads must not make a leader look dead."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from test_plan_herddb import LOG

from herdkeeper.domain.observed.tablespace_record import VersionedRecord
from herdkeeper.formats.herddb_tablespace import TablespaceRecord
from herdkeeper.observe.ensembles import Znode
from herdkeeper.observe.herddb import _heartbeats
from herdkeeper.observe.world import World


@dataclass
class SlowEnsemble:
    """Each node has just sent its heartbeat whenever one is read, and ten seconds pass between two reads."""

    now: float = 0.0

    def at(self, _address: str) -> SlowEnsemble:
        return self

    def read_changed(self, _path: str) -> Znode:
        self.now += 10.0
        return Znode(b"", 0, self.now)


@pytest.mark.parametrize("replicas", [("a", "b", "c"), ("b", "a", "c"), ("b", "c", "a")])
def test_a_stall_between_two_reads_makes_no_leader_look_late(replicas):
    records = {"flights": VersionedRecord(TablespaceRecord("u", "flights", "a", replicas, 1, 10_000), 1, 0.0)}
    found = _heartbeats(World(None, SlowEnsemble(), None), LOG, records, {"a": 9.0}, "/herd")["flights"]
    assert set(found) == {"a", "b", "c"}
    assert max(found.values()) - found["a"] == 0.0
