"""Members of ZooKeeper are asked at the same time: machines that are gone are waited for once, while a whole stack waits for that. Whose
claims are an ensemble's own.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from situations import quickstart

from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.clients.kubernetes import KubernetesReader
from herdkeeper.shared import names
from herdkeeper.shared.names import ObjectKey, ZooKeeperNames
from herdkeeper.shared.objects import Json
from herdkeeper.shared.unknown import Unknown
from herdkeeper.zookeeper import observe as module
from herdkeeper.zookeeper.observe import _ask_members, _objects

NAMED = ZooKeeperNames(ObjectKey("demo", "zk"))
HOSTS = {number: NAMED.host(number) for number in range(3)}


@dataclass
class Members:
    """Those of these numbers answer only once all of them are asked; the others answer at once."""

    silent: tuple[int, ...]
    asked: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._all = threading.Barrier(len(self.silent), timeout=120) if self.silent else None

    def get(self, url: str) -> object:
        number = next(number for number in range(9) if f"//{NAMED.host(number)}:" in url)
        self.asked.append(number)
        if self._all is not None and number in self.silent:
            self._all.wait()
            return Unknown(f"{number} did not answer")
        return {"server_stats": {"server_state": "leader" if number == 1 else "follower", "last_processed_zxid": 7 + number}}


def test_members_that_do_not_answer_are_waited_for_at_the_same_time():
    members = Members(silent=(0, 2))
    found = _ask_members(ClusterReader(None, None, members), NAMED, HOSTS, NAMED.pod(1))
    assert found == {0: Unknown("0 did not answer"), 1: ("leader", 8), 2: Unknown("2 did not answer")}


def test_the_leader_has_answered_before_the_others_are_asked(monkeypatch):
    monkeypatch.setattr(module, "HEAD_START_SECONDS", 120)
    members = Members(silent=())
    _ask_members(ClusterReader(None, None, members), NAMED, HOSTS, NAMED.pod(1))
    assert members.asked[0] == 1


def test_a_leader_that_does_not_answer_keeps_nobody_waiting_for_long(monkeypatch):
    monkeypatch.setattr(module, "HEAD_START_SECONDS", 0.01)
    members = Members(silent=(0, 1, 2))
    assert set(_ask_members(ClusterReader(None, None, members), NAMED, HOSTS, NAMED.pod(1))) == {0, 1, 2}


def test_nobody_is_asked_where_nobody_serves():
    assert _ask_members(ClusterReader(None, None, Members(silent=())), NAMED, {}, None) == {}


@dataclass
class Stored:
    """A source of these objects."""

    items: list[Json]

    def get(self, _api_version: str, kind: str, key: ObjectKey) -> Json | None:
        return next((item for item in self.items if (item["kind"], item["metadata"]["name"]) == (kind, key.name)), None)

    def select(self, _api_version: str, kind: str, _namespace: str | None, labels: Mapping[str, str]) -> list[Json]:
        return [item for item in self.items if item["kind"] == kind and labels.items() <= item["metadata"]["labels"].items()]


SELECTOR = names.selector(names.ZOOKEEPER_COMPONENT, "zk")
CHARTS = {**SELECTOR, "app.kubernetes.io/component": "zookeeper"}
BEFORE, SINCE = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


@pytest.mark.parametrize(
    ("situation", "labels", "annotations", "created", "ours"),
    [
        ("one that a Helm chart left, of the same name", CHARTS, {}, BEFORE, False),
        ("one that the StatefulSet made", SELECTOR, {}, SINCE, True),
        ("the same, and the StatefulSet was made anew since", SELECTOR, {}, BEFORE, True),
        ("one that the StatefulSet made, which got a label from a policy", CHARTS, {}, SINCE, True),
        ("one that lost the operator's labels", CHARTS, {names.FOUNDED_ANNOTATION: "true"}, BEFORE, True),
    ],
)
def test_a_claim_of_another_zookeeper_is_not_taken_for_one_of_the_ensembles_own(situation, labels, annotations, created, ours):
    """It would be written to, and deleted under the ensemble's deletionPolicy."""
    metadata = {"name": NAMED.claim(0), "labels": labels, "annotations": annotations, "creationTimestamp": created}
    made = names.labels(names.ZOOKEEPER_COMPONENT, "ZooKeeperCluster", "zk")
    stateful_set = {"name": NAMED.stateful_set, "labels": made, "creationTimestamp": SINCE}
    stored = [{"kind": "PersistentVolumeClaim", "metadata": metadata}, {"kind": "StatefulSet", "metadata": stateful_set, "spec": {}}]
    reader = ClusterReader(KubernetesReader(Stored(stored)), None, None)
    assert (NAMED.claim(0) in _objects(quickstart("ZooKeeperCluster"), reader).claims) is ours, situation
