"""A ZooKeeperCluster on a real API server: what is made of it, that a settled one is left alone, drift, and how it is founded."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes.dynamic import DynamicClient
from played_members import PlayedMembers
from stage import CLAIM, Stage, nothing_written

from herdkeeper.api.resource import API_VERSION, NO_STATUS
from herdkeeper.engine.result import Outcome

KIND = "ZooKeeperCluster"
SERVERS = "zk-zookeeper"
FOUNDED = "herdkeeper.io/founded"
CLAIMS = [f"data-{SERVERS}-{number}" for number in range(3)]


@pytest.fixture
def stage(dynamic: DynamicClient, namespace: str) -> Stage:
    """A ZooKeeperCluster zk of three members, not yet looked at."""
    stage = Stage(dynamic, namespace)
    stage.declare(KIND, "zk", {"replicas": 3})
    return stage


def marks(stage: Stage) -> list[str]:
    return [stage.found(CLAIM, name)["metadata"]["annotations"][FOUNDED] for name in CLAIMS]


def founding(stage: Stage) -> str:
    return str(stage.found("ConfigMap", SERVERS)["data"]["founding"])


def all_serve(stage: Stage) -> None:
    PlayedMembers(stage, "zk", leader=1).turn()


def founded(stage: Stage) -> Stage:
    stage.settle(KIND, "zk")
    all_serve(stage)
    stage.settle(KIND, "zk")
    assert marks(stage) == ["true"] * 3
    return stage


def test_exactly_these_objects_are_made(stage: Stage) -> None:
    stage.settle(KIND, "zk")
    assert set(stage.made()) == {
        ("ConfigMap", SERVERS),
        ("Service", SERVERS),
        ("Service", f"{SERVERS}-members"),
        ("PodDisruptionBudget", SERVERS),
        ("NetworkPolicy", SERVERS),
        ("StatefulSet", SERVERS),
        ("Secret", f"{SERVERS}-reconfig"),
        *((CLAIM, name) for name in CLAIMS),
    }


def test_all_but_the_claims_and_the_password_belong_to_the_resource(stage: Stage) -> None:
    uid = stage.found(KIND, "zk")["metadata"]["uid"]
    stage.settle(KIND, "zk")
    owner = {"apiVersion": API_VERSION, "kind": KIND, "name": "zk", "uid": uid, "controller": True, "blockOwnerDeletion": True}
    owners = {key: item["metadata"].get("ownerReferences") for key, item in stage.made().items()}
    assert owners == {key: None if key[0] in (CLAIM, "Secret") else [owner] for key in owners}


def test_while_members_start_nothing_is_written_a_second_time(stage: Stage) -> None:
    stage.settle(KIND, "zk")
    with nothing_written(stage):
        assert stage.reconcile(KIND, "zk").outcome is Outcome.OK
    assert stage.condition(KIND, "zk") == ("False", "MembersNotReady")


def test_a_founded_ensemble_is_ready_and_nothing_is_written_to_it(stage: Stage) -> None:
    founded(stage)
    with nothing_written(stage):
        result = stage.reconcile(KIND, "zk")
    assert (result.outcome, result.requeue_after_seconds) == (Outcome.OK, None)
    assert stage.condition(KIND, "zk") == ("True", "Ready")
    assert stage.condition(KIND, "zk", "Progressing") == ("False", "Settled")
    status = stage.found(KIND, "zk")["status"]
    assert (status["readyMembers"], status["voters"], status["leader"], status["founded"]) == (3, 3, f"{SERVERS}-1", True)


DRIFT: list[tuple[str, str, dict[str, Any], list[str | int]]] = [
    ("ConfigMap", SERVERS, {"data": {"zoo.cfg": "dataDir=/tmp\n"}}, ["data", "zoo.cfg"]),
    ("Service", SERVERS, {"spec": {"selector": {"app.kubernetes.io/instance": "other"}}}, ["spec", "selector"]),
    ("Service", SERVERS, {"spec": {"ports": [{"name": "client", "port": 9999, "targetPort": 2181}]}}, ["spec", "ports"]),
    ("Service", f"{SERVERS}-members", {"spec": {"publishNotReadyAddresses": False}}, ["spec", "publishNotReadyAddresses"]),
    ("PodDisruptionBudget", SERVERS, {"spec": {"maxUnavailable": 3}}, ["spec", "maxUnavailable"]),
    ("NetworkPolicy", SERVERS, {"spec": {"ingress": [{}]}}, ["spec", "ingress"]),
    ("NetworkPolicy", SERVERS, {"spec": {"podSelector": {"matchLabels": {"app": "none"}}}}, ["spec", "podSelector"]),
    (
        *("PodDisruptionBudget", SERVERS, {"spec": {"maxUnavailable": None, "minAvailable": 1}}),
        ["spec", "minAvailable"],
    ),
    ("StatefulSet", SERVERS, {"spec": {"replicas": 1}}, ["spec", "replicas"]),
    (
        *("StatefulSet", SERVERS, {"spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Delete"}}}),
        ["spec", "persistentVolumeClaimRetentionPolicy"],
    ),
    ("StatefulSet", SERVERS, {"spec": {"updateStrategy": {"type": "RollingUpdate"}}}, ["spec", "updateStrategy"]),
    ("StatefulSet", SERVERS, {"metadata": {"annotations": {"herdkeeper.io/intent": "another"}}}, ["metadata", "annotations"]),
    ("ConfigMap", SERVERS, {"metadata": {"ownerReferences": None}}, ["metadata", "ownerReferences"]),
]


@pytest.mark.parametrize(
    ("kind", "name", "change", "path"), DRIFT, ids=[f"{kind}-{'.'.join(map(str, path))}" for kind, _, _, path in DRIFT]
)
def test_a_field_that_somebody_changed_is_put_back(stage: Stage, kind: str, name: str, change: dict[str, Any], path: list[str]) -> None:
    def at(document: Any) -> Any:
        for step in path:
            document = (document or {}).get(step)
        return document

    founded(stage)
    before = at(stage.found(kind, name))
    stage.patch(kind, name, change)
    assert at(stage.found(kind, name)) != before
    stage.settle(KIND, "zk")
    assert at(stage.found(kind, name)) == before


def test_what_is_put_back_over_a_change_is_owned_by_applies_alone_so_that_a_later_one_can_take_it_away(stage: Stage) -> None:
    founded(stage)
    stage.patch("Service", SERVERS, {"spec": {"ports": [{"name": "client", "port": 9999, "targetPort": 2181}]}})
    stage.settle(KIND, "zk")
    owners = [(entry["manager"], entry["operation"]) for entry in stage.found("Service", SERVERS)["metadata"]["managedFields"]]
    assert owners == [("herdkeeper", "Apply")]


@pytest.mark.parametrize("kind", ["ConfigMap", "Service", "PodDisruptionBudget", "NetworkPolicy", "StatefulSet"])
def test_an_object_that_somebody_deleted_is_made_again(stage: Stage, kind: str) -> None:
    founded(stage)
    stage.delete(kind, SERVERS)
    assert stage.live(kind, SERVERS) is None
    stage.settle(KIND, "zk")
    assert stage.live(kind, SERVERS) is not None


def test_what_others_add_beside_the_intent_stays(stage: Stage) -> None:
    founded(stage)
    stage.patch("Service", SERVERS, {"metadata": {"annotations": {"example.com/note": "mine"}}})
    with nothing_written(stage):
        stage.reconcile(KIND, "zk")
    assert stage.found("Service", SERVERS)["metadata"]["annotations"]["example.com/note"] == "mine"


@pytest.mark.parametrize(
    ("kind", "path", "added"),
    [
        ("StatefulSet", ("spec", "template", "spec", "volumes"), {"name": "more", "emptyDir": {}}),
        ("StatefulSet", ("spec", "template", "spec", "containers"), {"name": "sidecar", "image": "proxy:1"}),
        ("StatefulSet", ("spec", "template", "spec", "containers", 0, "env"), {"name": "MORE", "value": "1"}),
        ("Service", ("spec", "ports"), {"name": "more", "port": 1234, "targetPort": 1234, "protocol": "TCP"}),
    ],
    ids=["volume", "container", "variable", "port"],
)
def test_what_others_add_to_a_list_is_applied_against_once_at_most_and_holds_up_no_change(
    stage: Stage, kind: str, path: tuple[str | int, ...], added: dict[str, Any]
) -> None:
    """Such as a mutating webhook, or `kubectl set env`. An apply leaves it."""
    founded(stage)
    changed = stage.found(kind, SERVERS)
    found: Any = changed
    for step in path:
        found = found[step]
    found.append(added)
    stage.patch(kind, SERVERS, {"spec": changed["spec"]})
    stage.settle(KIND, "zk")
    with nothing_written(stage):
        stage.reconcile(KIND, "zk")
    assert stage.condition(KIND, "zk", "Progressing")[1] != "Updating"
    stage.patch(KIND, "zk", {"spec": {"config": {"snapCount": "20000"}}})
    stage.settle(KIND, "zk")
    assert "snapCount=20000" in stage.found("ConfigMap", SERVERS)["data"]["zoo.cfg"]


@pytest.mark.parametrize("kind", ["StatefulSet", "ConfigMap", "Service"])
def test_an_object_that_lost_its_labels_gets_them_back_and_nobody_is_told_to_delete_it(stage: Stage, kind: str) -> None:
    founded(stage)
    before = stage.found(kind, SERVERS)["metadata"]
    stage.patch(kind, SERVERS, {"metadata": {"labels": dict.fromkeys(before["labels"])}})
    stage.settle(KIND, "zk")
    after = stage.found(kind, SERVERS)["metadata"]
    assert (after["uid"], after.get("labels")) == (before["uid"], before["labels"])
    assert "ActionFailed" not in [event["reason"] for event in stage.events("zk")]


def test_a_strangers_object_is_not_taken_over(stage: Stage) -> None:
    stage.of("ConfigMap").create(  # the name is the stranger's
        body={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": SERVERS}, "data": {"theirs": "1"}}, namespace=stage.namespace
    )
    assert stage.reconcile(KIND, "zk").outcome is Outcome.FAILED
    assert stage.found("ConfigMap", SERVERS)["data"] == {"theirs": "1"}
    assert stage.condition(KIND, "zk", "Progressing") == ("True", "ActionFailed")
    told = [event["message"] for event in stage.events("zk")]
    assert any(f"a ConfigMap {SERVERS} exists that this resource did not create" in message for message in told), told
    stage.delete("ConfigMap", SERVERS)
    stage.settle(KIND, "zk")
    assert founding(stage) == "true"


def test_a_claim_that_another_programs_zookeeper_left_is_neither_used_nor_deleted(stage: Stage) -> None:
    """As after `helm uninstall zk` of a chart whose StatefulSet was zk-zookeeper."""
    labels = {"app.kubernetes.io/name": "zookeeper", "app.kubernetes.io/instance": "zk", "app.kubernetes.io/component": "zookeeper"}
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    body = {"apiVersion": "v1", "kind": CLAIM, "metadata": {"name": CLAIMS[0], "labels": labels}, "spec": wanted}
    stage.of(CLAIM).create(body=body, namespace=stage.namespace)
    assert stage.reconcile(KIND, "zk").outcome is Outcome.FAILED
    assert f'"{CLAIMS[0]}" already exists' in stage.found(KIND, "zk")["status"]["conditions"][1]["message"]
    stage.patch(KIND, "zk", {"spec": {"deletionPolicy": "Delete"}})
    stage.reconcile(KIND, "zk")
    stage.delete(KIND, "zk")
    stage.reconcile(KIND, "zk")
    left = stage.found(CLAIM, CLAIMS[0])["metadata"]
    assert (left["labels"], "deletionTimestamp" in left) == (labels, False)
    assert ("StatefulSet", SERVERS) not in stage.made()


def test_new_claims_are_unfounded_until_all_members_serve(stage: Stage) -> None:
    stage.settle(KIND, "zk")
    for number in range(2):
        stage.serve(SERVERS, number)
        stage.settle(KIND, "zk")
    assert (marks(stage), founding(stage)) == (["false"] * 3, "true")
    assert stage.found(KIND, "zk")["status"]["founded"] is False


def test_once_all_members_serve_the_claims_are_marked_before_the_ensemble_stops_founding(stage: Stage) -> None:
    stage.settle(KIND, "zk")
    all_serve(stage)
    stage.reconcile(KIND, "zk")
    assert (marks(stage), founding(stage)) == (["true"] * 3, "true")
    stage.reconcile(KIND, "zk")
    assert founding(stage) == "false"


def test_ending_the_founding_restarts_no_member(stage: Stage) -> None:
    stage.settle(KIND, "zk")
    before = stage.found("StatefulSet", SERVERS)["metadata"]["generation"]
    all_serve(stage)
    stage.settle(KIND, "zk")
    assert (founding(stage), stage.found("StatefulSet", SERVERS)["metadata"]["generation"]) == ("false", before)


def test_a_claim_in_the_place_of_a_lost_one_is_unfounded_among_founded_ones(stage: Stage) -> None:
    founded(stage)
    stage.stop_serving(f"{SERVERS}-1")
    stage.delete(CLAIM, CLAIMS[1])
    stage.settle(KIND, "zk")
    assert (marks(stage), founding(stage)) == (["true", "false", "true"], "false")
    stage.serve(SERVERS, 1)
    stage.settle(KIND, "zk")
    assert (marks(stage), founding(stage)) == (["true"] * 3, "false")


def test_a_claim_that_the_stateful_set_made_in_the_place_of_a_lost_one_is_taken_over(stage: Stage) -> None:
    founded(stage)
    lost = stage.found(CLAIM, CLAIMS[1])
    stage.stop_serving(f"{SERVERS}-1")
    stage.delete(CLAIM, CLAIMS[1])
    labels = stage.found("StatefulSet", SERVERS)["spec"]["selector"]["matchLabels"]
    wanted = {name: lost["spec"][name] for name in ("accessModes", "resources")}
    body = {"apiVersion": "v1", "kind": CLAIM, "metadata": {"name": CLAIMS[1], "labels": labels}, "spec": wanted}
    stage.of(CLAIM).create(body=body, namespace=stage.namespace)
    stage.settle(KIND, "zk")
    taken = stage.found(CLAIM, CLAIMS[1])
    assert (marks(stage), founding(stage), taken["metadata"]["labels"]) == (["true", "false", "true"], "false", lost["metadata"]["labels"])
    stage.serve(SERVERS, 1)
    stage.settle(KIND, "zk")
    assert marks(stage) == ["true"] * 3


def test_claims_that_lost_all_their_labels_are_not_taken_for_lost_or_new_ones(stage: Stage) -> None:
    founded(stage)
    before = [stage.found(CLAIM, name)["metadata"]["labels"] for name in CLAIMS]
    for name, labels in zip(CLAIMS, before, strict=True):
        stage.patch(CLAIM, name, {"metadata": {"labels": dict.fromkeys(labels)}})
    stage.settle(KIND, "zk")
    assert [stage.found(CLAIM, name)["metadata"].get("labels") for name in CLAIMS] == before
    assert (marks(stage), founding(stage)) == (["true"] * 3, "false")
    assert stage.condition(KIND, "zk") == ("True", "Ready")


def test_an_ensemble_that_lost_all_its_claims_is_not_founded_anew(stage: Stage) -> None:
    founded(stage)
    for name in CLAIMS:
        stage.delete(CLAIM, name)
    stage.settle(KIND, "zk")
    assert [key for key in stage.made() if key[0] == CLAIM] == []
    assert stage.condition(KIND, "zk") == ("False", "DataLost")


def test_a_changed_configuration_reaches_the_members(stage: Stage) -> None:
    founded(stage)
    before = stage.found("StatefulSet", SERVERS)["spec"]["template"]["metadata"]["annotations"]
    stage.patch(KIND, "zk", {"spec": {"config": {"snapCount": "5000"}}})
    stage.settle(KIND, "zk")
    assert "snapCount=5000\n" in stage.found("ConfigMap", SERVERS)["data"]["zoo.cfg"]
    assert stage.found("StatefulSet", SERVERS)["spec"]["template"]["metadata"]["annotations"] != before


def test_a_process_that_lost_the_lease_makes_nothing(stage: Stage) -> None:
    stage.leads = False
    assert stage.reconcile(KIND, "zk").outcome is Outcome.FAILED
    assert (stage.made(), stage.found(KIND, "zk")["status"]) == ({}, NO_STATUS)
