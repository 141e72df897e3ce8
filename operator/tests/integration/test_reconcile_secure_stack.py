"""A whole stack, which has certificates since its resources say nothing else, on a real API server.

The played ensemble serves nobody who shows another one.
"""

from __future__ import annotations

import base64
import datetime
import json
from collections.abc import Iterable
from dataclasses import replace

import pytest
from cryptography import x509
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import UnprocessibleEntityError
from played_members import PlayedMembers
from played_stack import PlayedStack
from stage import Json, Stage, nothing_written

from herdkeeper.certificates.authority import authority_data, name_of, read_authority, successor_of
from herdkeeper.certificates.issue import AUTHORITY_LIFE, Validity, fresh_key, make_authority
from herdkeeper.clients.kubernetes import values_of_secret
from herdkeeper.clients.kubernetes_writer import RefusedError
from herdkeeper.planning.actions import SetAuthority
from herdkeeper.planning.identities import secret_of
from herdkeeper.shared import names
from herdkeeper.zookeeper import authority_roll

KEPT = {"zk-zookeeper-authority", "zk-zookeeper-quorum-authority"}
ISSUED = {
    *("zk-zookeeper-clients", "zk-zookeeper-operator", "zk-zookeeper-quorum"),
    *("bk-bookie-identity", "bk-bookie-readers", "db-herddb-identity"),
}


@pytest.fixture(scope="module")
def stack(dynamic: DynamicClient) -> PlayedStack:
    return PlayedStack(dynamic)


def templates(stage: Stage) -> Iterable[tuple[str, Json]]:
    """The spec of the pods of each workload, executors of Spark jobs left out."""
    for (kind, name), item in stage.made().items():
        if kind in ("StatefulSet", "Deployment", "Job"):
            yield name, item["spec"]["template"]["spec"]


def mounted(spec: Json) -> set[str]:
    """The Secrets with certificates that pods mount."""
    return {volume["secret"]["secretName"] for volume in spec["volumes"] if "secret" in volume} & (ISSUED | KEPT)


def certificate(stage: Stage, secret: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(base64.b64decode(stage.found("Secret", secret)["data"]["tls.crt"]))


def test_all_of_it_is_ready_and_nothing_is_written_to_it(stack: PlayedStack) -> None:
    stage = stack.stage
    for kind, name in (("ZooKeeperCluster", "zk"), ("BookKeeperCluster", "bk"), ("HerdDBCluster", "db"), ("Tablespace", "flights")):
        assert stage.condition(kind, name) == ("True", "Ready")
    assert ":2281" in stage.ensembles.address
    assert ":2181" not in json.dumps([item for key, item in stage.made().items() if key[0] != "Secret"])
    with nothing_written(stage):
        for kind, name in stack.resources:
            stack.reconcile(kind, name)


def test_when_every_status_is_lost_nothing_restarts_and_nothing_is_in_plain_text(stack: PlayedStack) -> None:
    told = {name: item for (kind, name), item in stack.stage.made().items() if kind in ("StatefulSet", "ConfigMap", "Secret", "Deployment")}
    stack.lose_every_status()
    assert stack.disrupted == []
    for name, item in told.items():
        again = stack.stage.found(item["kind"], name)
        assert (again.get("spec"), again.get("data")) == (item.get("spec"), item.get("data")), name


def test_the_keys_of_the_authorities_stay_with_the_volumes_and_no_pod_mounts_them(stack: PlayedStack) -> None:
    secrets = {name: item["metadata"].get("ownerReferences") for (kind, name), item in stack.stage.made().items() if kind == "Secret"}
    assert {name for name in KEPT if secrets[name] is None} == KEPT
    assert {name for name in ISSUED if secrets[name]} == ISSUED
    assert not KEPT & {secret for _, spec in templates(stack.stage) for secret in mounted(spec)}


def test_each_pod_has_the_certificate_of_who_it_is(stack: PlayedStack) -> None:
    shown = {name: mounted(spec) for name, spec in templates(stack.stage)}
    assert shown.pop("zk-zookeeper") == {"zk-zookeeper-clients", "zk-zookeeper-quorum"}
    assert {name: secrets for name, secrets in shown.items() if name.startswith("bk-")} == {
        **{f"bk-bookie-{number}": {"bk-bookie-identity"} for number in range(4)},
        "bk-autorecovery": {"bk-bookie-identity"},
    }
    assert shown["db-herddb"] == {"db-herddb-identity"}
    readers = {name for name, secrets in shown.items() if secrets == {"bk-bookie-readers"}}
    assert {"flights-archive", "from-files-restore", "once-checkpoint", "audit-audit"} <= readers


def test_the_mode_of_an_ensemble_that_is_there_stays(stack: PlayedStack) -> None:
    with pytest.raises(UnprocessibleEntityError) as refused:
        stack.stage.patch("ZooKeeperCluster", "zk", {"spec": {"security": {"mode": "Insecure"}}})
    assert "spec.security.mode can't change from TLS to Insecure" in str(refused.value.summary())


def test_another_certificate_of_the_quorum_restarts_members_one_by_one(stack: PlayedStack) -> None:
    before = certificate(stack.stage, "zk-zookeeper-quorum").serial_number
    stack.stage.delete("Secret", "zk-zookeeper-quorum")
    stack.disrupted.clear()
    stack.settle()
    assert sorted(stack.disrupted) == [f"zk-zookeeper-{number}" for number in range(3)]
    assert certificate(stack.stage, "zk-zookeeper-quorum").serial_number != before


@pytest.mark.parametrize("secret", sorted(ISSUED - {"zk-zookeeper-quorum"}))
def test_any_other_certificate_is_made_anew_without_a_restart(stack: PlayedStack, secret: str) -> None:
    before = certificate(stack.stage, secret)
    stack.stage.delete("Secret", secret)
    stack.disrupted.clear()
    stack.settle()
    after = certificate(stack.stage, secret)
    assert after.serial_number != before.serial_number
    assert (after.subject, after.issuer) == (before.subject, before.issuer)
    assert stack.disrupted == []


def test_other_authorities_take_over_on_request_and_members_restart_for_each_step(
    stack: PlayedStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authority_roll, "TIME_TO_LOAD", datetime.timedelta(0))  # no kubelet is played
    held = {secret: read_authority("zk", values_of_secret(stack.stage.found("Secret", secret))) for secret in KEPT}
    clients, quorum = (f"zk {part} {held[secret].generation + 1}" for part, secret in zip(("clients", "quorum"), sorted(KEPT), strict=True))
    stack.stage.patch("ZooKeeperCluster", "zk", {"metadata": {"annotations": {names.ROLL_AUTHORITIES_ANNOTATION: "now"}}})
    stack.disrupted.clear()
    stack.settle()
    annotations = stack.stage.found("ZooKeeperCluster", "zk")["metadata"]["annotations"]
    assert names.ROLL_AUTHORITIES_ANNOTATION not in annotations
    assert annotations[names.ROLL_AUTHORITIES_ANSWER_ANNOTATION] == f"done: {clients} takes over and {quorum} takes over"
    for secret in KEPT:
        assert stack.stage.found("Secret", secret)["data"].keys() == {"generation", "signing.crt", "signing.key"}
    issuers = {certificate(stack.stage, secret).issuer.rfc4514_string() for secret in ISSUED}
    assert issuers == {f"CN={clients}", f"CN={quorum}"}
    assert sorted(stack.disrupted) == sorted([f"zk-zookeeper-{number}" for number in range(3)] * 3)
    with nothing_written(stack.stage):
        for kind, name in stack.resources:
            stack.reconcile(kind, name)


def test_an_authority_that_was_restored_amid_a_roll_is_rolled_to_its_end(stack: PlayedStack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its entries belong to the program that restored them."""
    monkeypatch.setattr(authority_roll, "TIME_TO_LOAD", datetime.timedelta(0))
    secret, now = "zk-zookeeper-authority", datetime.datetime.now(datetime.UTC)
    held = read_authority("zk", values_of_secret(stack.stage.found("Secret", secret)))
    following = successor_of(held, "zk clients", fresh_key(), Validity(now, AUTHORITY_LIFE))
    backup = replace(held, following=following, everywhere_since=now)
    stack.stage.patch("Secret", secret, {"data": secret_of({}, authority_data(backup))["data"]})
    stack.settle()
    rolled = read_authority("zk", values_of_secret(stack.stage.found("Secret", secret)))
    assert rolled == replace(held, generation=held.generation + 1, signing=following)
    issuers = {certificate(stack.stage, issued).issuer.rfc4514_string() for issued in ISSUED - {"zk-zookeeper-quorum"}}
    assert issuers == {f"CN=zk clients {rolled.generation}"}


def test_an_authority_that_has_expired_is_replaced_at_once_and_each_member_restarts_once(
    stack: PlayedStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authority_roll, "TIME_TO_LOAD", datetime.timedelta(0))
    secret, day = "zk-zookeeper-authority", datetime.timedelta(days=1)
    held = read_authority("zk", values_of_secret(stack.stage.found("Secret", secret)))
    over = Validity(datetime.datetime.now(datetime.UTC) - 2 * day, day)
    ended = make_authority(name_of(held.signing.certificate), held.signing.key, over)
    stack.stage.patch("Secret", secret, {"data": secret_of({}, authority_data(replace(held, signing=ended)))["data"]})
    stack.disrupted.clear()
    stack.settle()
    new = read_authority("zk", values_of_secret(stack.stage.found("Secret", secret)))
    assert (new.generation, new.is_rolling) == (held.generation + 1, False)
    issuers = {certificate(stack.stage, issued).issuer.rfc4514_string() for issued in ISSUED - {"zk-zookeeper-quorum"}}
    assert issuers == {f"CN=zk clients {new.generation}"}
    assert sorted(stack.disrupted) == [f"zk-zookeeper-{number}" for number in range(3)]
    assert stack.stage.condition("ZooKeeperCluster", "zk", "Ready") == ("True", "Ready")


def test_an_authority_in_a_secret_of_the_users_takes_over_and_stays(stack: PlayedStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authority_roll, "TIME_TO_LOAD", datetime.timedelta(0))
    pair = make_authority("company", fresh_key(), Validity(datetime.datetime.now(datetime.UTC), AUTHORITY_LIFE))
    stack.stage.patch("ZooKeeperCluster", "zk", {"spec": {"security": {"authority": {"secretName": "company"}}}})
    stack.settle()
    assert stack.stage.condition("ZooKeeperCluster", "zk", "AuthoritiesRolled") == ("False", "WaitingForSecret")
    secret = {"metadata": {"name": "company", "namespace": stack.stage.namespace}, "type": "kubernetes.io/tls"}
    stack.stage.of("Secret").create(body={**secret, "stringData": {"tls.crt": pair.certificate, "tls.key": pair.key}})
    stack.settle()
    issuers = {certificate(stack.stage, issued).issuer.rfc4514_string() for issued in ISSUED - {"zk-zookeeper-quorum"}}
    assert issuers == {"CN=company"}
    with nothing_written(stack.stage):
        for kind, name in stack.resources:
            stack.reconcile(kind, name)


def test_a_step_onto_an_authority_that_has_changed_is_refused(stack: PlayedStack) -> None:
    found = stack.stage.found("Secret", "zk-zookeeper-authority")
    manifest = {**found, "metadata": {key: found["metadata"][key] for key in ("name", "namespace", "resourceVersion")}}
    stack.stage.patch("Secret", "zk-zookeeper-authority", {"metadata": {"annotations": {"somebody": "else"}}})
    with pytest.raises(RefusedError):
        stack.stage.clients().writer.set_authority(SetAuthority(manifest, "a step"))


def test_an_authority_without_its_labels_is_no_lost_one(stack: PlayedStack) -> None:
    """As where somebody made its Secret again from a backup of its entries."""
    for secret in KEPT:
        stack.stage.patch("Secret", secret, {"metadata": {"labels": None}})
    stack.settle()
    assert stack.stage.condition("ZooKeeperCluster", "zk", "Progressing") == ("False", "Settled")
    with nothing_written(stack.stage):
        for kind, name in stack.resources:
            stack.reconcile(kind, name)


@pytest.mark.parametrize("mode", ["Insecure", "Permissive"])
def test_an_ensemble_in_plain_text_that_is_declared_anew_with_certificates_is_left_alone_and_can_be_put_right(
    stage: Stage, mode: str
) -> None:
    stage.declare("ZooKeeperCluster", "zk", {"replicas": 1})
    stage.settle("ZooKeeperCluster", "zk")
    PlayedMembers(stage, "zk", leader=0).turn()
    stage.settle("ZooKeeperCluster", "zk")
    stage.delete("ZooKeeperCluster", "zk")
    stage.reconcile("ZooKeeperCluster", "zk")
    stored = stage.declare("ZooKeeperCluster", "zk", {"replicas": 1, "security": {}})
    assert stored["spec"]["security"] == {"mode": "TLS"}
    stage.settle("ZooKeeperCluster", "zk")
    assert stage.condition("ZooKeeperCluster", "zk", "Progressing") == ("False", "InvalidSecret")
    told = next(each for each in stage.found("ZooKeeperCluster", "zk")["status"]["conditions"] if each["type"] == "Progressing")
    assert "If the ensemble never had certificates, set Permissive to get them, or Insecure to stay without" in told["message"]
    assert not stage.live("Secret", "zk-zookeeper-authority")
    stage.patch("ZooKeeperCluster", "zk", {"spec": {"security": {"mode": mode}}})
    stage.settle("ZooKeeperCluster", "zk")
    assert stage.condition("ZooKeeperCluster", "zk", "Progressing")[1] != "InvalidSecret"
    assert (stage.live("Secret", "zk-zookeeper-authority") is not None) is (mode == "Permissive")


def test_an_ensemble_that_lost_its_authorities_can_not_be_declared_to_be_in_plain_text(stage: Stage) -> None:
    stage.declare("ZooKeeperCluster", "zk", {"replicas": 1, "security": {}})
    stage.settle("ZooKeeperCluster", "zk")
    PlayedMembers(stage, "zk", leader=0).turn()
    stage.settle("ZooKeeperCluster", "zk")
    for secret in KEPT:
        stage.delete("Secret", secret)
    stage.settle("ZooKeeperCluster", "zk")
    assert stage.condition("ZooKeeperCluster", "zk", "Progressing") == ("False", "InvalidSecret")
    for mode in ("Insecure", "Permissive"):
        with pytest.raises(UnprocessibleEntityError) as refused:
            stage.patch("ZooKeeperCluster", "zk", {"spec": {"security": {"mode": mode}}})
        assert f"spec.security.mode can't change from TLS to {mode}" in str(refused.value.summary())


def test_an_ensemble_that_is_declared_anew_without_certificates_waits_for_a_person(stage: Stage) -> None:
    stage.declare("ZooKeeperCluster", "zk", {"replicas": 1, "security": {"mode": "TLS"}})
    stage.settle("ZooKeeperCluster", "zk")
    stage.delete("ZooKeeperCluster", "zk")
    stage.reconcile("ZooKeeperCluster", "zk")
    stage.declare("ZooKeeperCluster", "zk", {"replicas": 1})
    stage.settle("ZooKeeperCluster", "zk")
    message = next(
        each["message"] for each in stage.found("ZooKeeperCluster", "zk")["status"]["conditions"] if each["type"] == "Progressing"
    )
    assert "spec.security.mode is Insecure, but the ensemble has certificates" in message
