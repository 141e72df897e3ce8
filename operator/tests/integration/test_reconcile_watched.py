"""Looks that rest on what the watches told: a settled resource costs no request, and late news destroys nothing."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kubernetes.dynamic import DynamicClient
from played_members import PlayedMembers
from stage import Stage, written
from test_reconcile_disturbed import Disturbance, DisturbedApi, DisturbedRun
from test_reconcile_killed import STORIES, Run

from herdkeeper.clients.object_cache import ObjectCache
from herdkeeper.engine.reconcile import UNWATCHED_SECONDS
from herdkeeper.engine.result import Result
from herdkeeper_e2e.control_plane import ControlPlane


@pytest.fixture(scope="module")
def operator(control_plane: ControlPlane) -> DynamicClient:
    """The operator's client, whose calls are counted."""
    plain = control_plane.api_client()
    return DynamicClient(DisturbedApi(plain.configuration), cache_file=str(control_plane.folder / "discovery-watched.json"))


@pytest.fixture
def asked(operator: DynamicClient) -> Iterator[list[str]]:
    """What the operator asks the API server for in a test."""
    found: list[str] = []

    class Noted(Disturbance):
        def call(self, method: str, path: str, query: str, forward: Callable[[], Any]) -> Any:
            found.append(f"{method} {path}")
            return forward()

    operator.client.disturbance = Noted()
    yield found
    operator.client.disturbance = Disturbance()


@pytest.fixture
def stage(dynamic: DynamicClient, operator: DynamicClient, namespace: str) -> Stage:
    """A ZooKeeperCluster zk that serves and is settled."""
    stage = Stage(dynamic, namespace, operator=operator)
    stage.declare("ZooKeeperCluster", "zk", {"replicas": 3})
    for _ in range(2):
        stage.settle("ZooKeeperCluster", "zk")
        PlayedMembers(stage, "zk", leader=1).turn()
    stage.settle("ZooKeeperCluster", "zk")
    return stage


def test_a_settled_resource_is_looked_at_without_a_request(stage: Stage, asked: list[str]) -> None:
    stage.cache = stage.watched()
    asked.clear()
    stage.reconcile("ZooKeeperCluster", "zk")
    assert asked == []


def test_nothing_is_done_by_what_is_no_longer_so(stage: Stage, asked: list[str]) -> None:
    stage.cache = stage.watched()
    stage.patch("ConfigMap", "zk-zookeeper", {"data": {"founding": "perhaps"}})
    stage.cache.put(stage.found("ConfigMap", "zk-zookeeper"))
    stage.patch("ConfigMap", "zk-zookeeper", {"data": {"founding": "false"}})
    before = written()
    asked.clear()
    stage.reconcile("ZooKeeperCluster", "zk")
    assert written() == before
    assert asked, "what only the watch told was looked at anew"


def test_what_it_wrote_itself_is_known_at_once(stage: Stage, asked: list[str]) -> None:
    stage.cache = stage.watched()
    stage.patch("ZooKeeperCluster", "zk", {"spec": {"config": {"maxClientCnxns": "70"}}})
    stage.cache.put({**stage.found("ZooKeeperCluster", "zk"), "kind": "ZooKeeperCluster"})
    for _ in range(5):
        asked.clear()
        stage.reconcile("ZooKeeperCluster", "zk")
        if not asked:
            break
    assert asked == [], "no watch told of what was written, and yet nothing is left to do"


def test_what_no_watch_tells_of_is_looked_at_each_minute(stage: Stage, asked: list[str]) -> None:
    stage.cache = stage.watched()
    stage.cache.set_complete("PodDisruptionBudget", False)
    asked.clear()
    result = stage.reconcile("ZooKeeperCluster", "zk")
    assert result.requeue_after_seconds == UNWATCHED_SECONDS
    assert [each.rpartition("/")[2] for each in asked] == ["poddisruptionbudgets"]


class LateRun(DisturbedRun):
    """A story whose watches are late: each look rests on what was there some looks ago, until nothing seems to be left to do; then on what
    is there. Between two looks news may come twice, and the older one later, which changes nothing in the cache."""

    def __init__(self, dynamic: DynamicClient, operator: DynamicClient, looks: int) -> None:
        super().__init__(dynamic, operator, Disturbance())
        self.looks = looks
        self.seen: list[ObjectCache] = []

    def _reconcile(self, kind: str, name: str, now: datetime.datetime | None) -> Result:
        self.seen.append(self.stage.watched())
        self.stage.cache = self.seen[max(0, len(self.seen) - 1 - self.looks)]
        before = written()
        result = super()._reconcile(kind, name, now)
        if written() == before:
            self.stage.cache = self.stage.watched()
            result = super()._reconcile(kind, name, now)
        return result


@pytest.mark.parametrize("story", [story for story, _ in STORIES], ids=[story.__name__ for story, _ in STORIES])
@pytest.mark.parametrize("looks", [0, 2])
def test_whatever_the_watches_told_the_end_is_the_same_and_nothing_else_is_deleted(
    dynamic: DynamicClient, operator: DynamicClient, story: Callable[[Run], None], looks: int
) -> None:
    clean = DisturbedRun(dynamic, operator, Disturbance())
    story(clean)
    late = LateRun(dynamic, operator, looks)
    story(late)
    assert late.ended == clean.ended
    assert late.removed <= clean.removed
