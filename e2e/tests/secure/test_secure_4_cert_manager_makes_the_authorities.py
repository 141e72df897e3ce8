"""A running cert-manager makes both authorities of a stack, and later two with other keys, which take over under a writer: nothing that was
acknowledged is lost, and nobody lets in the old ones. What cert-manager signs besides with the same issuer is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml
from conftest import Stack, say
from cryptography import x509
from secure_steps import (
    AUTHORITIES,
    IDENTITIES,
    authorities,
    certificates_in_secrets,
    held,
    only_readers_are_served,
    others_take_over,
    secrets_are_shown,
    secure_stack,
    told_of_authorities,
)
from under_load import during, settled, uids, under_load

from herdkeeper.certificates.authority import name_of
from herdkeeper.shared.names import CERTIFICATE_KEY
from herdkeeper_e2e import cert_manager
from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.kubectl import Kubectl, Object
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

EXAMPLE = REPOSITORY / "examples/authority-of-yours.yaml"
ENSEMBLE: Object = yaml.safe_load(EXAMPLE.read_text())["spec"]
CERTIFICATES = cert_manager.in_comments(EXAMPLE)
FOLLOWING: list[Object] = json.loads(json.dumps(CERTIFICATES).replace("authority-1", "authority-2").replace("authority 1", "authority 2"))
STRANGER: Object = {
    "apiVersion": cert_manager.API_VERSION,
    "kind": "Certificate",
    "metadata": {"name": "stranger"},
    "spec": {
        "secretName": "stranger",
        "commonName": "readers.bk",
        "subject": {"organizationalUnits": ["0:bk"]},
        "usages": ["client auth"],
        "issuerRef": {"kind": "ClusterIssuer", "name": "company"},
    },
}
"""With the subject of the stack's readers, and the issuer of its authorities."""
BEGINS = Limit(300, 2)


@pytest.fixture(scope="module")
def secure(kubectl: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    log = tmp_path_factory.mktemp("cert-manager") / "log"
    say(f"cert-manager's log: {log}")
    with cert_manager.running(kubectl, log), secure_stack(kubectl, ENSEMBLE, [*CERTIFICATES, STRANGER]) as stack:
        yield stack


def first_of(text: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(text.encode())


def signed_by_cert_manager(stack: Stack, *secrets: str) -> None:
    """Each server shows the certificate of its Secret, which an authority of these Secrets has signed, and that the root of cert-manager's
    issuer. The Secrets: of the stack's authority, of the quorum's."""
    given = dict(zip(AUTHORITIES, (held(stack, secret) for secret in secrets), strict=True))
    for secret, certificate in certificates_in_secrets(stack).items():
        authority = first_of(given[IDENTITIES[secret]][CERTIFICATE_KEY])
        first_of(certificate).verify_directly_issued_by(authority)
        authority.verify_directly_issued_by(first_of(given[IDENTITIES[secret]]["ca.crt"]))
        assert authority.issuer.rfc4514_string() == "CN=company root"
    secrets_are_shown(stack)


def begins(stack: Stack) -> bool | Pending:
    """Whether the first of the three steps is told of."""
    told = told_of_authorities(stack) or ""
    return True if "zk authority 2 follows zk authority 1: step 1 of 3" in told else Pending(told)


def test_a_stack_is_founded_with_the_authorities_and_refuses_what_their_issuer_signs_besides(secure: Stack) -> None:
    settled(secure)
    assert [name_of(each.signing.certificate) for each in authorities(secure)] == ["zk authority 1", "zk quorum authority 1"]
    assert [each.generation for each in authorities(secure)] == [1, 1]
    signed_by_cert_manager(secure, "zk-authority-1", "zk-quorum-authority-1")
    only_readers_are_served(secure, held(secure, "stranger"))


def test_authorities_with_other_keys_take_over_under_load_and_the_old_ones_are_refused(secure: Stack) -> None:
    settled(secure)
    before, old = uids(secure), held(secure, "bk-bookie-readers")
    security = {field: {"secretName": each["secretName"].replace("-1", "-2")} for field, each in ENSEMBLE["security"].items()}
    with under_load(secure, "authorities_of_cert_manager") as writer:
        with during("other authorities are named", writer):
            secure.kubectl.want("zookeepercluster", "zk", security=security)
            secure.kubectl.apply_all(FOLLOWING)
            wait_for("the first step", lambda: begins(secure), BEGINS, say)
            others_take_over(secure)
        with during("the old authorities are gone", writer):
            signed_by_cert_manager(secure, "zk-authority-2", "zk-quorum-authority-2")
    restarted = {name for name, uid in uids(secure).items() if before.get(name) != uid}
    assert restarted == {f"zk-zookeeper-{number}" for number in range(3)}
    only_readers_are_served(secure, old)
