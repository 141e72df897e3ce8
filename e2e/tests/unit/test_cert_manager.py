"""What examples show in their comments for cert-manager fits what they declare; and what it leaves in a cluster."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from test_kubectl import WrittenDown

from herdkeeper_e2e import cert_manager
from herdkeeper_e2e.cert_manager import in_comments
from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.kubectl import KubectlError

EXAMPLES = REPOSITORY / "examples"


def test_certificates_make_the_secrets_that_an_ensemble_takes_its_authorities_from():
    example = EXAMPLES / "authority-of-yours.yaml"
    security = yaml.safe_load(example.read_text())["spec"]["security"]
    made = [each["spec"]["secretName"] for each in in_comments(example)]
    assert made == [security[field]["secretName"] for field in ("authority", "quorumAuthority")]


def test_each_authority_has_a_name_of_its_own():
    names = [each["spec"]["commonName"] for each in in_comments(EXAMPLES / "authority-of-yours.yaml")]
    assert len(set(names)) == len(names) == 2


def test_a_certificate_makes_the_secret_that_sql_nodes_show():
    example = EXAMPLES / "tls.yaml"
    (certificate,) = in_comments(example)
    assert certificate["spec"]["secretName"] == yaml.safe_load(example.read_text())["spec"]["tls"]["secretName"]


@dataclass(frozen=True)
class WithHeldCrds(WrittenDown):
    """Their deletion does not end in time."""

    def run(self, *arguments: str, stdin: bytes = b"", timeout_seconds: float = 120.0) -> str:
        super().run(*arguments)
        if arguments[0] == "delete" and "-f" in arguments:
            raise KubectlError(arguments, "no end within 120 s")
        return ""


def test_its_namespace_goes_even_if_its_crds_do_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kubectl = WithHeldCrds("e2e")
    monkeypatch.setattr(cert_manager, "definitions", lambda: tmp_path)
    monkeypatch.setattr(cert_manager, "controllers", lambda *_: nullcontext())
    with pytest.raises(KubectlError, match="no end"), cert_manager.running(kubectl, tmp_path / "log"):
        pass
    assert kubectl.told[-1] == ("delete", "--ignore-not-found", "namespace", "cert-manager")
