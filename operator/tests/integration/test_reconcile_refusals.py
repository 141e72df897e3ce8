"""What the operator does not do: act upon a resource that says what it must not say, or upon a paused one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kubernetes.dynamic.exceptions import ForbiddenError
from stage import ZOOKEEPER_ADDRESS, Stage, nothing_written

from herdkeeper.clients import kubernetes as reading
from herdkeeper.clients.kubernetes import parsed
from herdkeeper.engine.result import Outcome
from herdkeeper.settings import Settings

PAUSED = "herdkeeper.io/paused"
BOOKKEEPER = {"zooKeeperAddress": ZOOKEEPER_ADDRESS, "bookies": 3}
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("ZooKeeperCluster", {"config": {"dataDir": "/tmp"}}, "dataDir"),
    ("ZooKeeperCluster", {"config": {"server.4": "elsewhere:2888:3888"}}, "server.4"),
    ("BookKeeperCluster", {**BOOKKEEPER, "config": {"journalSyncData": "false"}}, "journalSyncData"),
    ("HerdDBCluster", {"bookKeeperRef": {"name": "bk"}, "config": {"requirefsync": "false"}}, "requirefsync"),
]
"""What the API server's own rules let pass: kind, spec, and what the refusal must name."""


@pytest.mark.parametrize(("kind", "spec", "named"), REFUSED, ids=[f"{kind}-{named}" for kind, _, named in REFUSED])
def test_of_an_invalid_resource_nothing_is_made_and_its_status_names_what_is_wrong(
    stage: Stage, kind: str, spec: dict[str, Any], named: str
) -> None:
    stage.declare(kind, "wrong", spec)
    assert stage.reconcile(kind, "wrong").outcome is Outcome.REFUSED
    assert (stage.made(), list(stage.ensemble.znodes)) == ({}, ["/"])
    assert stage.condition(kind, "wrong") == ("False", "InvalidSpec")
    assert stage.condition(kind, "wrong", "Progressing") == ("False", "InvalidSpec")
    assert named in stage.found(kind, "wrong")["status"]["message"]
    assert [(event["type"], event["reason"]) for event in stage.events("wrong")] == [("Warning", "InvalidSpec")]


def test_a_refusal_is_told_once(stage: Stage) -> None:
    stage.declare("ZooKeeperCluster", "wrong", {"config": {"dataDir": "/tmp"}})
    stage.reconcile("ZooKeeperCluster", "wrong")
    before = stage.found("ZooKeeperCluster", "wrong")
    with nothing_written(stage):
        stage.reconcile("ZooKeeperCluster", "wrong")
    assert stage.found("ZooKeeperCluster", "wrong") == before
    assert len(stage.events("wrong")) == 1


def test_a_resource_that_is_put_right_is_acted_upon(stage: Stage) -> None:
    stage.declare("ZooKeeperCluster", "zk", {"replicas": 1, "config": {"dataDir": "/tmp"}})
    stage.settle("ZooKeeperCluster", "zk")
    stage.patch("ZooKeeperCluster", "zk", {"spec": {"config": None}})
    stage.settle("ZooKeeperCluster", "zk")
    assert stage.live("StatefulSet", "zk-zookeeper") is not None
    assert stage.condition("ZooKeeperCluster", "zk") == ("False", "MembersNotReady")


def test_a_running_cluster_whose_spec_becomes_invalid_keeps_what_it_has(stage: Stage) -> None:
    stage.declare("ZooKeeperCluster", "zk", {"replicas": 1})
    stage.settle("ZooKeeperCluster", "zk")
    before = stage.versions()
    address = stage.found("ZooKeeperCluster", "zk")["status"]["address"]
    stage.patch("ZooKeeperCluster", "zk", {"spec": {"image": "example.com/new:2", "config": {"dataDir": "/tmp"}}})
    assert stage.reconcile("ZooKeeperCluster", "zk").outcome is Outcome.REFUSED
    assert stage.versions() == before
    assert stage.found("ZooKeeperCluster", "zk")["status"]["address"] == address


@pytest.mark.parametrize("paused", [False, True])
def test_of_a_refused_cluster_the_operator_changes_only_where_it_is_admitted_from(stage: Stage, paused: bool) -> None:
    """It moved to another namespace. Where policies are enforced it could not see this cluster's servers any more."""
    stage.declare("ZooKeeperCluster", "zk", {"replicas": 1, "clients": []})
    stage.settle("ZooKeeperCluster", "zk")
    policy = stage.found("NetworkPolicy", "zk-zookeeper")
    before = json.dumps(policy["spec"])
    moved = json.loads(before.replace(f'"{Settings().namespace}"', '"where-it-was"'))
    assert moved != policy["spec"]
    stage.patch("NetworkPolicy", "zk-zookeeper", {"spec": moved})
    stage.patch("ZooKeeperCluster", "zk", {"spec": {"clients": None, "config": {"dataDir": "/tmp"}}})
    if paused:
        stage.patch("ZooKeeperCluster", "zk", {"metadata": {"annotations": {PAUSED: "true"}}})
    versions = stage.versions()
    assert stage.reconcile("ZooKeeperCluster", "zk").outcome is Outcome.REFUSED
    assert stage.found("NetworkPolicy", "zk-zookeeper")["spec"] == (moved if paused else policy["spec"])
    changed = {name for name, version in stage.versions().items() if version != versions.get(name)}
    assert changed == (set() if paused else {("NetworkPolicy", "zk-zookeeper")})
    with nothing_written(stage):
        stage.reconcile("ZooKeeperCluster", "zk")


def test_more_copies_in_a_ledger_than_bookies_are_refused_before_anything_is_made(stage: Stage) -> None:
    stage.declare("BookKeeperCluster", "bk", {**BOOKKEEPER, "bookies": 2})
    stage.declare("HerdDBCluster", "db", {"bookKeeperRef": {"name": "bk"}})
    assert stage.reconcile("HerdDBCluster", "db").outcome is Outcome.REFUSED
    assert stage.made() == {}
    assert "spec.ledgers.ensembleSize" in stage.found("HerdDBCluster", "db")["status"]["message"]


def two_of_one_name(stage: Stage) -> None:
    """The Tablespaces b-older and a-younger."""
    stage.declare("Tablespace", "b-older", {"herdDBRef": {"name": "db"}, "tablespaceName": "flights"})
    created = stage.found("Tablespace", "b-older")["metadata"]["creationTimestamp"]
    while True:  # creation is told in seconds: the younger one must be so by the clock, not by its name
        stage.declare("Tablespace", "a-younger", {"herdDBRef": {"name": "db"}, "tablespaceName": "flights"})
        if stage.found("Tablespace", "a-younger")["metadata"]["creationTimestamp"] > created:
            break
        stage.delete("Tablespace", "a-younger")


def test_of_two_tablespaces_of_one_name_the_younger_is_refused_whatever_comes_first(stage: Stage) -> None:
    two_of_one_name(stage)
    assert stage.reconcile("Tablespace", "a-younger").outcome is Outcome.REFUSED
    assert stage.reconcile("Tablespace", "b-older").outcome is Outcome.OK
    assert "b-older" in stage.found("Tablespace", "a-younger")["status"]["message"]


def test_of_two_tablespaces_of_one_name_the_younger_is_refused_though_the_older_one_cant_be_read(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_of_one_name(stage)
    wrong = {"b-older": {"replicas": "three"}}

    def by_older_rules(kind: Any, document: dict[str, Any]) -> Any:
        return parsed(kind, {**document, "spec": {**document["spec"], **wrong.get(document["metadata"]["name"], {})}})

    monkeypatch.setattr(reading, "parsed", by_older_rules)
    assert stage.reconcile("Tablespace", "a-younger").outcome is Outcome.REFUSED
    assert "b-older" in stage.found("Tablespace", "a-younger")["status"]["message"]


@pytest.mark.parametrize(("kind", "spec"), [("ZooKeeperCluster", {"replicas": 3}), ("BookKeeperCluster", BOOKKEEPER)])
def test_of_a_paused_resource_nothing_is_made_but_its_status(stage: Stage, kind: str, spec: dict[str, Any]) -> None:
    stage.declare(kind, "later", {**spec, "deletionPolicy": "Delete"}, {PAUSED: "true"})
    stage.settle(kind, "later")
    assert (stage.made(), list(stage.ensemble.znodes)) == ({}, ["/"])
    assert "finalizers" not in stage.found(kind, "later")["metadata"]
    assert stage.condition(kind, "later")[0] == "False"
    assert stage.condition(kind, "later", "Progressing") == ("False", "Paused")


def test_a_paused_cluster_is_not_put_back_but_still_watched(stage: Stage) -> None:
    stage.declare("ZooKeeperCluster", "zk", {"replicas": 1})
    stage.settle("ZooKeeperCluster", "zk")
    stage.patch("ZooKeeperCluster", "zk", {"metadata": {"annotations": {PAUSED: "true"}}})
    stage.patch("StatefulSet", "zk-zookeeper", {"spec": {"replicas": 0}})
    stage.serve("zk-zookeeper", 0)
    before = stage.versions()
    stage.settle("ZooKeeperCluster", "zk")
    assert stage.versions() == before
    assert stage.found("ZooKeeperCluster", "zk")["status"]["readyMembers"] == 1
    assert stage.condition("ZooKeeperCluster", "zk", "Progressing") == ("False", "Paused")


@pytest.mark.parametrize("value", [None, "false"])
def test_a_cluster_goes_on_where_it_was_paused(stage: Stage, value: str | None) -> None:
    stage.declare("ZooKeeperCluster", "zk", {"replicas": 1}, {PAUSED: "true"})
    stage.settle("ZooKeeperCluster", "zk")
    stage.patch("ZooKeeperCluster", "zk", {"metadata": {"annotations": {PAUSED: value}}})
    stage.settle("ZooKeeperCluster", "zk")
    assert stage.live("StatefulSet", "zk-zookeeper") is not None


def test_a_resource_that_is_gone_is_no_error(stage: Stage) -> None:
    assert stage.reconcile("ZooKeeperCluster", "never-was").outcome is Outcome.GONE


def test_a_pod_that_kubernetes_does_not_admit_is_told_with_where_the_cause_is(stage: Stage) -> None:
    stage.declare("ZooKeeperCluster", "zk", {"replicas": 1, "pods": {"priorityClassName": "none-such"}})
    stage.settle("ZooKeeperCluster", "zk")
    template = stage.found("StatefulSet", "zk-zookeeper")["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": {**template["metadata"], "name": "zk-zookeeper-0"}}
    with pytest.raises(ForbiddenError, match="no PriorityClass with name none-such was found"):
        stage.of("Pod").create(body=pod, namespace=stage.namespace)
    assert stage.condition("ZooKeeperCluster", "zk") == ("False", "MembersNotReady")
    (ready,) = [each for each in stage.found("ZooKeeperCluster", "zk")["status"]["conditions"] if each["type"] == "Ready"]
    assert "zk-zookeeper-0: no pod, see its controller's events" in ready["message"]
