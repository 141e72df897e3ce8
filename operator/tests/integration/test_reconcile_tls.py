"""A database gets TLS on the real API server: nothing is made or changed before the Secret is one that clients can verify nodes by."""

from __future__ import annotations

import base64

import pytest
from kubernetes import client
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import DynamicApiError
from sql_database import HERDDB, TABLESPACE, serving_database
from stage import Json, Stage

from herdkeeper_e2e.control_plane import REPOSITORY, ControlPlane

CERTIFICATES = REPOSITORY / "images/herddb/src/test/resources/tls"
NAMESPACE = "demo"
"""The one that the certificate is for."""
TLS = {"secretName": "db-tls", "plaintext": "Accepted"}


@pytest.fixture
def stage(dynamic: DynamicClient, control_plane: ControlPlane) -> Stage:
    with control_plane.api_client() as api:
        client.CoreV1Api(api).create_namespace({"metadata": {"name": NAMESPACE}})
    return serving_database(Stage(dynamic, NAMESPACE))


def secret(certificate: str, authority: str) -> Json:
    files = {"tls.crt": certificate, "tls.key": "node-pkcs1.key", "ca.crt": authority}
    data = {key: base64.b64encode((CERTIFICATES / name).read_bytes()).decode() for key, name in files.items()}
    return {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": {"name": "db-tls"}, "data": data}


def waited_for(stage: Stage, name: str = "db") -> tuple[str, str]:
    """Reason and message of the condition Progressing after a reconcile."""
    stage.reconcile(HERDDB, name)
    (entry,) = [entry for entry in stage.found(HERDDB, name)["status"]["conditions"] if entry["type"] == "Progressing"]
    return entry["reason"], entry["message"]


def made_from(stage: Stage) -> list[str]:
    """The versions of what a node is made from."""
    return [stage.found(kind, "db-herddb")["metadata"]["resourceVersion"] for kind in ("ConfigMap", "StatefulSet")]


def _curve_key() -> Json:
    return {"tls.key": base64.b64encode((CERTIFICATES / "curve-sec1.key").read_bytes()).decode()}


def a_running_database_gets_tls_with_plaintext_first_and_not_before_the_secret_is_right(stage: Stage) -> None:
    with pytest.raises(DynamicApiError, match="must be Accepted when TLS is added"):
        stage.patch(HERDDB, "db", {"spec": {"tls": {"secretName": "db-tls"}}})
    before = stage.versions()
    stage.patch(HERDDB, "db", {"spec": {"tls": TLS}})
    reason, message = waited_for(stage)
    assert reason == "WaitingForSecret"
    assert stage.condition(HERDDB, "db")[0] == "True", "it serves as it did"
    assert message == "the Secret db-tls does not exist: spec.tls.secretName is db-tls; create it"
    assert stage.versions() == before

    stage.of("Secret").create(body=secret("node.crt", "stranger.crt"), namespace=NAMESPACE)
    reason, message = waited_for(stage)
    assert reason == "InvalidSecret"
    assert "the Secret db-tls: tls.crt can't be verified by ca.crt" in message
    assert stage.condition(HERDDB, "db") == ("False", "InvalidSecret")
    stage.delete("Secret", "db-tls")
    assert stage.versions() == before

    stage.of("Secret").create(body=secret("node.crt", "authority.crt"), namespace=NAMESPACE)
    stage.reconcile(HERDDB, "db")
    template = stage.found("StatefulSet", "db-herddb")["spec"]["template"]["spec"]
    (volume,) = [volume for volume in template["volumes"] if volume["name"] == "tls"]
    assert volume["secret"]["secretName"] == "db-tls"
    assert [item["key"] for item in volume["secret"]["items"]] == ["tls.crt", "tls.key"], "whom clients trust is not mounted"
    lines = stage.found("ConfigMap", "db-herddb")["data"]["server.properties"].splitlines()
    assert {"server.ssl=true", "herdkeeper.tls.dir=/tls", "herdkeeper.tls.plaintext=accepted"} <= set(lines)


def clients_are_told_of_the_authority_once_every_node_serves_tls_and_a_renewal_touches_no_node(stage: Stage) -> None:
    stage.patch(HERDDB, "db", {"spec": {"tls": TLS}})
    stage.reconcile(HERDDB, "db")
    stage.settle(TABLESPACE, "flights")
    assert "ca.crt" not in stage.found("Secret", "flights-connection")["data"], "no node has been restarted yet"
    stage.set_status(HERDDB, "db", {"encrypted": True})
    stage.settle(TABLESPACE, "flights")
    told = stage.found("Secret", "flights-connection")["data"]
    assert base64.b64decode(told["ca.crt"]) == (CERTIFICATES / "authority.crt").read_bytes()
    assert base64.b64decode(told["leaderUrl"]).decode().endswith("&client.server.ssl=true")
    before = made_from(stage)
    stage.patch("Secret", "db-tls", {"data": {**secret("curve.crt", "authority.crt")["data"], **_curve_key()}})
    assert waited_for(stage)[0] != "InvalidSecret"
    assert made_from(stage) == before


def a_new_database_may_refuse_plaintext_at_once_and_cannot_lose_tls_in_one_step(stage: Stage) -> None:
    stage.declare(HERDDB, "other", {"bookKeeperRef": {"name": "bk"}, "tls": {"secretName": "db-tls"}})
    assert stage.found(HERDDB, "other")["spec"]["tls"]["plaintext"] == "Refused"
    with pytest.raises(DynamicApiError, match="be removed while its plaintext is Refused"):
        stage.patch(HERDDB, "other", {"spec": {"tls": None}})
    assert "certificate is not valid for 'other-herddb-0.other-herddb-nodes.demo.svc'" in waited_for(stage, "other")[1]
    assert stage.live("StatefulSet", "other-herddb") is None
    stage.patch(HERDDB, "other", {"spec": {"tls": {"plaintext": "Accepted"}}})
    stage.patch(HERDDB, "other", {"spec": {"tls": None}})


def test_a_database_gets_tls(stage: Stage) -> None:
    """One test, since each step goes on from the one before; the certificate is for one namespace."""
    a_running_database_gets_tls_with_plaintext_first_and_not_before_the_secret_is_right(stage)
    clients_are_told_of_the_authority_once_every_node_serves_tls_and_a_renewal_touches_no_node(stage)
    a_new_database_may_refuse_plaintext_at_once_and_cannot_lose_tls_in_one_step(stage)
