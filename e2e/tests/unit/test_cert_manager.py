"""What examples show in their comments for cert-manager fits what they declare."""

from __future__ import annotations

import yaml

from herdkeeper_e2e.cert_manager import in_comments
from herdkeeper_e2e.cluster import REPOSITORY

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
