"""Heartbeats are compared as they are read, one after the other: what lies between the reads must not make a leader look dead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from test_plan_herddb import LOG

from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.clients.zookeeper import EnsembleError, Znode
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.herddb.observe.cluster import _times
from herdkeeper.herddb.state.cluster import VersionedRecord


@dataclass
class SlowZnodes:
    """Each node has just sent its heartbeat whenever one is read, and ten seconds pass between two reads."""

    now: float = 0.0
    read: int = 0

    def at(self, _address: str, _identity: object = None) -> SlowZnodes:
        return self

    def changed_many(self, paths: Sequence[str]) -> tuple[Znode, ...]:
        self.read += len(paths)
        return tuple(self._next() for _ in paths)

    def _next(self) -> Znode:
        self.now += 10.0
        return Znode(b"", 0, self.now, int(self.now))


RECORDS = [
    {"flights": VersionedRecord(TablespaceRecord("u", "flights", "a", replicas, 1, 10_000), 1, 0.0)}
    for replicas in (("a", "b", "c"), ("b", "a", "c"), ("b", "c", "a"))
]


@pytest.mark.parametrize("records", RECORDS)
def test_a_stall_between_two_reads_makes_no_leader_look_late(records):
    found = _times(ClusterReader(None, SlowZnodes(), None), LOG, records, "/herd")[1]["flights"]
    assert set(found) == {"a", "b", "c"}
    assert max(found.values()) - found["a"] == 0.0


def test_each_heartbeat_is_read_once():
    znodes = SlowZnodes()
    _times(ClusterReader(None, znodes, None), LOG, RECORDS[0], "/herd")
    assert znodes.read == 6, "the heartbeats of three copies, and the registrations of their nodes"


class Silent:
    def at(self, address: str, identity: object = None) -> None:
        raise EnsembleError(f"{address} did not answer")


def test_from_heartbeats_that_cannot_be_read_nothing_follows():
    times, heartbeats = _times(ClusterReader(None, Silent(), None), LOG, RECORDS[0], "/herd")
    assert (times.now, heartbeats) == (None, {})
