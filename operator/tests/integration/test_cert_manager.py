"""A running cert-manager makes the authorities of an ensemble, as examples/authority-of-yours.yaml says, and renews them.

Only `make integration-cert-manager` runs this: it builds cert-manager's controllers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
import yaml
from cryptography import x509
from kubernetes.dynamic import DynamicClient
from played_members import PlayedMembers
from stage import Json, Stage, written

from herdkeeper.certificates.authority import Authority, name_of, read_authority
from herdkeeper.clients.kubernetes import as_sent, values_of_secret
from herdkeeper.shared.names import CERTIFICATE_KEY, PRIVATE_KEY_KEY
from herdkeeper.zookeeper import authority_roll
from herdkeeper_e2e.cert_manager import API_VERSION, HOME, RENEWAL, company, controllers, definitions, in_comments
from herdkeeper_e2e.control_plane import REPOSITORY, ControlPlane, apply_crds, make_namespace
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

EXAMPLE = REPOSITORY / "examples/authority-of-yours.yaml"
PATIENCE = Limit(60, 0.2)
CLUSTER = ("ZooKeeperCluster", "zk")
KEPT = ("zk-zookeeper-authority", "zk-zookeeper-quorum-authority")
ROLLED = "AuthoritiesRolled"
ISSUED = {"zk-zookeeper-clients": KEPT[0], "zk-zookeeper-operator": KEPT[0], "zk-zookeeper-quorum": KEPT[1]}
"""The Secret of each certificate, with that of who signs it."""


@pytest.fixture(scope="module")
def knowing(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DynamicClient]:
    """An administrator's client of an API server that knows cert-manager's kinds, while cert-manager runs."""
    apply_crds(control_plane, definitions())
    make_namespace(control_plane, HOME)
    dynamic = control_plane.dynamic_client()
    log = tmp_path_factory.mktemp("cert-manager") / "log"
    with controllers({"KUBECONFIG": str(control_plane.kubeconfig)}, log):
        for manifest in company():
            create(dynamic, HOME, manifest)
        yield dynamic


def create(dynamic: DynamicClient, namespace: str, manifest: Json) -> None:
    resource = dynamic.resources.get(api_version=manifest["apiVersion"], kind=manifest["kind"])
    resource.create(body=manifest, namespace=namespace if resource.namespaced else None, query_params=[("fieldValidation", "Strict")])


@dataclass
class Ensemble:
    """The example's ensemble with an operator that has the chart's rights, members that are played, and cert-manager beside it."""

    stage: Stage
    members: PlayedMembers

    def declare(self) -> None:
        self.stage.declare(*CLUSTER, yaml.safe_load(EXAMPLE.read_text())["spec"])

    def certify(self, change: Callable[[str], str] = str) -> None:
        """Applies the Certificates of the example, each text in them changed."""
        for manifest in in_comments(EXAMPLE):
            create(self.stage.dynamic, self.stage.namespace, yaml.safe_load(change(yaml.safe_dump(manifest))))

    def issued(self, secret: str, before: Json | None = None) -> Json:
        """What cert-manager has put into a Secret, other than before."""

        def ask() -> Json | Pending:
            found = self.stage.live("Secret", secret)
            values = {} if found is None else values_of_secret(found)
            new = values.get(CERTIFICATE_KEY) and values != before
            return values if new else Pending(f"nothing new in {secret}: {self.told(secret)}")

        return wait_for(f"the Secret {secret}", ask, PATIENCE)

    def told(self, certificate: str) -> object:
        found = self._certificates().get(name=certificate, namespace=self.stage.namespace, serializer=as_sent)
        return dict(found).get("status")

    def renew(self, certificate: str) -> None:
        """As `cmctl renew` does, once the last issuance has ended."""
        path = f"{self._certificates().path(name=certificate, namespace=self.stage.namespace)}/status"
        self.stage.dynamic.request("patch", path, body=RENEWAL, content_type="application/json-patch+json")

    def edit(self, certificate: str, **spec: object) -> None:
        """Somebody's `kubectl edit` of a Certificate's spec."""
        self._certificates().patch(
            name=certificate, namespace=self.stage.namespace, body={"spec": spec}, content_type="application/merge-patch+json"
        )

    def goes_on(self) -> None:
        """Looks of the operator and turns of the members, until nothing more happens."""
        quiet = 0
        for _ in range(100):
            before = written()
            self.stage.reconcile(*CLUSTER)
            if self.stage.live("StatefulSet", "zk-zookeeper") is not None:
                self.members.turn()
            quiet = quiet + 1 if written() == before else 0
            if quiet == 3:
                return
        raise AssertionError(f"it is still written to: {self.stage.events('zk')[-3:]}")

    def condition(self) -> tuple[str, str] | None:
        """Reason and message of AuthoritiesRolled, None while there is nothing to tell."""
        conditions = self.stage.found(*CLUSTER)["status"]["conditions"]
        return next(((each["reason"], each["message"]) for each in conditions if each["type"] == ROLLED), None)

    def authority(self, secret: str) -> Authority:
        return read_authority(secret, values_of_secret(self.stage.found("Secret", secret)))

    def names(self) -> list[str]:
        """Common names of both authorities that sign."""
        return [name_of(self.authority(secret).signing.certificate) for secret in KEPT]

    def all_is_signed(self) -> bool:
        """Whether each certificate is signed by the authority that signs now, and only that is trusted."""
        for secret, kept in ISSUED.items():
            signing = x509.load_pem_x509_certificate(self.authority(kept).signing.certificate.encode())
            values = values_of_secret(self.stage.found("Secret", secret))
            leaf = x509.load_pem_x509_certificate(values[CERTIFICATE_KEY].encode())
            leaf.verify_directly_issued_by(signing)
            if x509.load_pem_x509_certificates(values["ca.crt"].encode()) != [signing]:
                return False
        return True

    def _certificates(self) -> Any:
        return self.stage.dynamic.resources.get(api_version=API_VERSION, kind="Certificate")


@pytest.fixture
def ensemble(knowing: DynamicClient, charted: DynamicClient, namespace: str) -> Ensemble:
    stage = Stage(knowing, namespace, operator=charted)
    return Ensemble(stage, PlayedMembers(stage, "zk", leader=0))


@pytest.fixture
def founded(ensemble: Ensemble) -> Ensemble:
    """The example, Ready."""
    ensemble.certify()
    for secret in ("zk-authority-1", "zk-quorum-authority-1"):
        ensemble.issued(secret)
    ensemble.declare()
    ensemble.goes_on()
    assert ensemble.stage.condition(*CLUSTER) == ("True", "Ready")
    return ensemble


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No step of a roll waits for kubelets, since none is played."""
    monkeypatch.setattr(authority_roll, "TIME_TO_LOAD", timedelta(0))


def first_of(values: Json) -> x509.Certificate:
    return x509.load_pem_x509_certificate(values[CERTIFICATE_KEY].encode())


def test_a_new_ensemble_waits_for_cert_manager_and_is_founded_by_its_authorities(ensemble: Ensemble) -> None:
    ensemble.declare()
    ensemble.goes_on()
    assert ensemble.stage.live("StatefulSet", "zk-zookeeper") is None
    assert ensemble.stage.condition(*CLUSTER, "Progressing") == ("True", "WaitingForSecret")
    ensemble.certify()
    made = [ensemble.issued(secret) for secret in ("zk-authority-1", "zk-quorum-authority-1")]
    ensemble.goes_on()
    assert ensemble.stage.condition(*CLUSTER) == ("True", "Ready")
    assert ensemble.names() == ["zk authority 1", "zk quorum authority 1"]
    for kept, values in zip(KEPT, made, strict=True):
        assert x509.load_pem_x509_certificate(ensemble.authority(kept).signing.certificate.encode()) == first_of(values)
        assert first_of(values).issuer.rfc4514_string() == "CN=company root"
    assert ensemble.all_is_signed()
    before = written()  # not all versions: cert-manager may still remove the Secrets of its requests
    ensemble.goes_on()
    assert written() == before


def test_a_renewal_keeps_the_key_and_is_taken_over_in_three_steps(founded: Ensemble, monkeypatch: pytest.MonkeyPatch) -> None:
    before = founded.issued("zk-authority-1")
    founded.renew("zk-authority-1")
    renewed = founded.issued("zk-authority-1", before)
    assert renewed[PRIVATE_KEY_KEY] == before[PRIVATE_KEY_KEY]
    assert first_of(renewed).serial_number != first_of(before).serial_number
    founded.goes_on()
    reason, message = founded.condition() or ("", "")
    assert reason == "AuthorityRolling"
    assert message.startswith("zk authority 1 follows zk authority 1: step 1 of 3")
    old = founded.authority(KEPT[0])
    assert first_of({CERTIFICATE_KEY: old.signing.certificate}) == first_of(before)
    assert old.following is not None
    assert first_of({CERTIFICATE_KEY: old.following.certificate}) == first_of(renewed)

    monkeypatch.setattr(authority_roll, "TIME_TO_LOAD", timedelta(0))
    founded.goes_on()
    assert founded.condition() is None
    assert founded.authority(KEPT[0]) == replace(old, generation=2, signing=old.following, following=None, everywhere_since=None)
    assert founded.authority(KEPT[1]).generation == 1
    assert founded.all_is_signed()


@pytest.mark.usefixtures("at_once")
def test_another_key_comes_with_other_certificates_that_the_fields_name(founded: Ensemble) -> None:
    founded.certify(lambda text: text.replace("authority-1", "authority-2").replace("authority 1", "authority 2"))
    security = {"authority": {"secretName": "zk-authority-2"}, "quorumAuthority": {"secretName": "zk-quorum-authority-2"}}
    founded.stage.patch(*CLUSTER, {"spec": {"security": security}})
    founded.goes_on()
    for secret in ("zk-authority-2", "zk-quorum-authority-2"):
        founded.issued(secret)
    founded.goes_on()
    assert founded.condition() is None
    assert founded.names() == ["zk authority 2", "zk quorum authority 2"]
    assert founded.all_is_signed()


@pytest.mark.usefixtures("at_once")
def test_a_secret_that_is_deleted_comes_again_with_another_key_and_changes_nothing(founded: Ensemble) -> None:
    """Under the name of the one that signs: no member could trust both."""
    before, signing = founded.issued("zk-authority-1"), founded.authority(KEPT[0])
    founded.stage.delete("Secret", "zk-authority-1")
    again = founded.issued("zk-authority-1", before)
    assert again[PRIVATE_KEY_KEY] != before[PRIVATE_KEY_KEY]
    founded.goes_on()
    reason, message = founded.condition() or ("", "")
    assert reason == "InvalidSecret"
    assert "has another key, or identifier of it, under the subject of the authority that signs now" in message
    assert founded.authority(KEPT[0]) == signing
    assert founded.stage.condition(*CLUSTER) == ("True", "Ready")


@pytest.mark.usefixtures("at_once")
def test_after_that_another_common_name_in_the_same_certificate_puts_it_right(founded: Ensemble) -> None:
    before = founded.issued("zk-authority-1")
    founded.stage.delete("Secret", "zk-authority-1")
    again = founded.issued("zk-authority-1", before)
    founded.edit("zk-authority-1", commonName="zk authority 2")
    founded.issued("zk-authority-1", again)
    founded.goes_on()
    assert founded.condition() is None
    assert founded.names() == ["zk authority 2", "zk quorum authority 1"]
    assert founded.all_is_signed()
