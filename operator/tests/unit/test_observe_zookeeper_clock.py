"""Times of ZooKeeper are compared with others of ZooKeeper only: the clocks of the operator and of kubelets may differ from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from both_controllers import plan_both
from test_plan_herddb import PODS
from test_plan_leaders import CALM, LOST, RECORD

from herdkeeper.clients.zookeeper import Znode
from herdkeeper.herddb.observe.cluster import read_times
from herdkeeper.herddb.state.cluster import VersionedRecord, ZooKeeperTimes
from herdkeeper.planning.actions import ChangeTablespaceRecord


@dataclass(frozen=True)
class Znodes:
    """Znodes with the time of their last change, in the order of these changes."""

    changed: dict[str, float]

    def changed_many(self, paths: Sequence[str]) -> tuple[Znode | None, ...]:
        number = {path: number for number, path in enumerate(self.changed)}
        return tuple(Znode(b"", 0, self.changed[path], number[path]) if path in self.changed else None for path in paths)


BEATS = {f"/herd/replicas/a-uuid/{PODS[0]}": 50.0, f"/herd/replicas/a-uuid/{PODS[1]}": 51.0, f"/herd/replicas/b-uuid/{PODS[1]}": 53.0}
STARTS = {f"/herd/nodes/{PODS[0]}": 7.0}
RECORDS = {name: VersionedRecord(replace(RECORD, name=name, uuid=f"{name}-uuid", replicas=PODS), 1, 40.0) for name in ("a", "b")}


@pytest.mark.parametrize(
    ("situation", "changed", "times"),
    [
        ("the last heartbeat of any copy tells the time", {**BEATS, **STARTS}, ZooKeeperTimes(53.0, {PODS[0]: 7.0})),
        (
            "a dead copy's heartbeat is of a member whose clock was fast",
            {f"/herd/replicas/b-uuid/{PODS[0]}": 3650.0, **BEATS, **STARTS},
            ZooKeeperTimes(53.0, {PODS[0]: 7.0}),
        ),
        ("no heartbeat is there", STARTS, ZooKeeperTimes(None, {PODS[0]: 7.0})),
        ("nothing is there", {}, ZooKeeperTimes()),
    ],
)
def test_the_time(situation, changed, times):
    assert read_times(Znodes(changed), "/herd", RECORDS)[0] == times, situation


def test_the_heartbeats_are_told_by_tablespace_and_node():
    assert read_times(Znodes(BEATS), "/herd", RECORDS)[1] == {"a": {PODS[0]: 50.0, PODS[1]: 51.0}, "b": {PODS[1]: 53.0}}


def test_the_heartbeats_of_a_tablespace_with_capital_letters_are_told_by_its_own_name_and_not_that_of_its_znode():
    named = {"a": VersionedRecord(replace(RECORDS["a"].record, name="A"), 1, 40.0)}
    assert read_times(Znodes(BEATS), "/herd", named)[1] == {"A": {PODS[0]: 50.0, PODS[1]: 51.0}}


def moved(seen) -> bool:
    return any(isinstance(action, ChangeTablespaceRecord) for action in plan_both(seen).actions)


HOUR = 3600.0


@pytest.mark.parametrize("skew", [-HOUR, -30.0, 0.0, 30.0, HOUR], ids=lambda skew: f"ZooKeeper's clock is {skew:+.0f} s")
@pytest.mark.parametrize(("since", "held_back"), [(0.5, True), (4.5, True), (5.5, False), (HOUR, False)])
def test_a_leader_is_not_moved_again_within_five_seconds_however_clocks_differ(skew, since, held_back):
    records = {"flights": VersionedRecord(RECORD, 4, LOST.now + skew - since)}
    seen = replace(LOST, records=records, zookeeper=ZooKeeperTimes(LOST.now + skew))
    assert moved(seen) is not held_back


@pytest.mark.parametrize("skew", [-HOUR, 0.0, HOUR])
@pytest.mark.parametrize(("started", "anew"), [(10.0, True), (-10.0, False)])
def test_a_leader_that_boots_counts_as_lost_when_its_process_is_younger_than_its_leadership_by_one_clock(skew, started, anew):
    changed_at = CALM.now + skew - 60.0
    leader = replace(CALM.nodes[PODS[0]][0], role="booting", ready=False)
    seen = replace(
        CALM,
        nodes={**CALM.nodes, PODS[0]: (leader,)},
        records={"flights": VersionedRecord(RECORD, 4, changed_at)},
        zookeeper=ZooKeeperTimes(CALM.now + skew, {PODS[0]: changed_at + started}),
    )
    assert moved(seen) is anew
