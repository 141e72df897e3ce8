"""What is found out about the Secret of `spec.tls` before a node gets it."""

from __future__ import annotations

import ssl
import subprocess
import time
from pathlib import Path

import pytest

from herdkeeper.herddb.observe.tls import judged
from herdkeeper.herddb.state.tls import TlsUsable
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.reason import Reason

CERTIFICATES = Path(__file__).parents[3] / "images/herddb/src/test/resources/tls"
"""`make.sh` there tells which is which."""
HOSTS = [f"db-herddb-{number}.db-herddb-nodes.demo.svc" for number in range(2)]


def content(name: str) -> str:
    return (CERTIFICATES / name).read_text()


def secret(certificate: str = "node.crt", key: str = "node-pkcs8.key", authorities: str = "authority.crt") -> dict[str, str]:
    return {"tls.crt": content(certificate), "tls.key": content(key), "ca.crt": content(authorities)}


@pytest.mark.parametrize(
    ("certificate", "key"),
    [("node.crt", "node-pkcs8.key"), ("node.crt", "node-pkcs1.key"), ("curve.crt", "curve-sec1.key"), ("curve.crt", "curve-pkcs8.key")],
)
def test_a_certificate_of_the_authority_for_all_nodes_can_be_served_in_each_form_of_its_key(certificate: str, key: str) -> None:
    assert judged("mine", secret(certificate, key), HOSTS) == TlsUsable("mine", content("authority.crt"))


def test_of_several_authorities_one_is_enough() -> None:
    both = f"{content('stranger.crt')}\n# die Prüfstelle\n{content('authority.crt')}"
    assert judged("mine", {**secret(), "ca.crt": both}, HOSTS) == TlsUsable("mine", both)


def test_a_certificate_that_clients_trust_by_itself_can_be_served() -> None:
    assert isinstance(judged("mine", secret(authorities="node.crt"), HOSTS), TlsUsable)


@pytest.mark.parametrize("key", ["tls.crt", "tls.key", "ca.crt"])
def test_a_key_that_the_secret_lacks_is_named_and_waited_for(key: str) -> None:
    for lacking in ({**secret(), key: ""}, {name: value for name, value in secret().items() if name != key}):
        found = judged("mine", lacking, HOSTS)
        assert isinstance(found, Problem)
        assert found.reason is Reason.WAITING_FOR_SECRET
        assert found.why.startswith(f"the Secret mine lacks {key}: add it")


@pytest.mark.parametrize(
    ("values", "hosts", "told"),
    [
        (secret(authorities="stranger.crt"), HOSTS, "the Secret mine: tls.crt can't be verified by ca.crt"),
        (secret(certificate="expired.crt"), HOSTS, "certificate has expired"),
        (
            secret(),
            ["other-herddb-0.other-herddb-nodes.demo.svc"],
            "certificate is not valid for 'other-herddb-0.other-herddb-nodes.demo.svc'",
        ),
        (secret(), [*HOSTS, "db-herddb-2.elsewhere.svc"], "as the certificate of db-herddb-2.elsewhere.svc"),
        (secret(key="curve-pkcs8.key"), HOSTS, "the Secret mine: tls.crt and tls.key are no certificate in PEM and its key"),
        ({**secret(), "tls.crt": "nothing"}, HOSTS, "the Secret mine: tls.crt and tls.key"),
        ({**secret(), "ca.crt": "nothing"}, HOSTS, "the Secret mine: ca.crt holds no certificates in PEM"),
        (
            {**secret(), "ca.crt": content("authority.crt").replace("M", "!", 3)},
            HOSTS,
            "the Secret mine: ca.crt holds no certificates in PEM",
        ),
        (
            {**secret(), "ca.crt": content("stranger.crt")[:200] + content("authority.crt")},
            HOSTS,
            "the Secret mine: ca.crt holds no certificates in PEM (one is damaged)",
        ),
        (
            secret(key="node-encrypted.key"),
            HOSTS,
            "its key without a password (the key has a password)",
        ),
        (
            {**secret(), "tls.key": content("node-pkcs8.key") + "#" * 8192},
            HOSTS,
            "its key without a password (the key has more than 8192 characters)",
        ),
    ],
)
def test_what_no_client_could_verify_is_refused_with_the_key_of_the_secret_and_the_reason(
    values: dict[str, str], hosts: list[str], told: str
) -> None:
    found = judged("mine", values, hosts)
    assert isinstance(found, Problem)
    assert found.reason is Reason.INVALID_SECRET
    assert told in found.why
    assert "PRIVATE" not in found.why


def test_certificates_that_do_not_end_are_refused_before_any_thread_has_waited_for_long() -> None:
    began = time.thread_time()
    found = judged("mine", {**secret(), "ca.crt": "-----BEGIN CERTIFICATE-----\n" * 30_000}, HOSTS)
    assert time.thread_time() - began < 5
    assert isinstance(found, Problem)
    assert "ca.crt holds no certificates in PEM (none was found)" in found.why


def test_a_certificate_that_can_be_served_tells_when_it_expires() -> None:
    found = judged("mine", secret(), HOSTS)
    assert isinstance(found, TlsUsable)
    until = subprocess.run(["openssl", "x509", "-enddate", "-noout"], input=content("node.crt"), capture_output=True, text=True, check=True)
    assert found.expires is not None
    assert found.expires.timestamp() == ssl.cert_time_to_seconds(until.stdout.strip().removeprefix("notAfter="))
