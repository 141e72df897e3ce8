"""What members with certificates are made of."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from situations import objects, quickstart, with_spec

from herdkeeper.api import ZooKeeperCluster
from herdkeeper.api.zookeeper_cluster import Security
from herdkeeper.certificates.issue import AUTHORITY_LIFE, Validity, fresh_key, make_authority
from herdkeeper.codecs.zookeeper.membership import Role
from herdkeeper.shared.objects import Json
from herdkeeper.zookeeper.build import build_zookeeper
from herdkeeper.zookeeper.state import Ensemble, EnsembleSecurity, server_of

PLAIN: ZooKeeperCluster = quickstart("ZooKeeperCluster")
SECURE: ZooKeeperCluster = with_spec(PLAIN, security=Security(mode="TLS"))


def built(cluster: ZooKeeperCluster, read_at_start: dict[str, str] | None = None) -> dict[tuple[str, str], Json]:
    ensemble = Ensemble(cluster, objects(), security=EnsembleSecurity(read_at_start=read_at_start or {}))
    return {(each["kind"], each["metadata"]["name"]): each for each in build_zookeeper(ensemble)}


def template(cluster: ZooKeeperCluster, read_at_start: dict[str, str] | None = None) -> Json:
    found: Json = built(cluster, read_at_start)["StatefulSet", "zk-zookeeper"]["spec"]["template"]
    return found


@pytest.mark.parametrize(("cluster", "clients"), [(PLAIN, {"client": 2181}), (SECURE, {"secure": 2281})])
def test_clients_find_the_port_that_is_served(cluster: ZooKeeperCluster, clients: dict[str, int]) -> None:
    def ports(service: str) -> dict[str, int]:
        return {port["name"]: port["port"] for port in built(cluster)["Service", service]["spec"]["ports"]}

    assert ports("zk-zookeeper") == clients
    assert ports("zk-zookeeper-members") == clients | {"quorum": 2888, "election": 3888, "admin": 8080}


def test_with_certificates_plain_text_is_for_a_members_own_probe() -> None:
    clients = [server_of(PLAIN, 0, Role.PARTICIPANT, closed=closed).client for closed in (False, True)]
    assert clients == ["2181", "127.0.0.1:2182"]
    assert ";127.0.0.1:2182" in built(SECURE)["ConfigMap", "zk-zookeeper"]["data"]["zoo.cfg.dynamic"]
    assert template(SECURE)["spec"]["containers"][0]["readinessProbe"]["exec"]["command"][-1] == "2182"


def test_the_two_certificates_are_mounted_apart_and_the_authoritys_key_nowhere() -> None:
    spec = template(SECURE)["spec"]
    mounts = {mount["name"]: mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"] if mount["mountPath"].startswith("/tls")}
    assert mounts == {"zk-zookeeper-clients": "/tls/clients", "zk-zookeeper-quorum": "/tls/members"}
    secrets = {volume["name"]: volume["secret"]["secretName"] for volume in spec["volumes"] if volume["name"] in mounts}
    assert secrets == {name: name for name in mounts}


def test_what_members_read_only_at_their_start_restarts_them() -> None:
    first, again, other = (template(SECURE, {"/tls/members/tls.crt": certificate}) for certificate in ("a", "a", "b"))
    assert first == again != other
    (told,) = [each["value"] for each in first["spec"]["containers"][0]["env"] if each["name"] == "READ_AT_START"]
    assert told == f"{hashlib.sha256(b'a').hexdigest()} /tls/members/tls.crt"
    assert "READ_AT_START" not in str(template(PLAIN))


def test_a_members_pod_tells_which_authorities_its_client_port_trusts() -> None:
    old, new = (make_authority(name, fresh_key(), Validity(datetime.now(UTC), AUTHORITY_LIFE)).certificate for name in ("old", "new"))
    told = template(SECURE, {"/tls/clients/ca.crt": old + new, "/tls/members/ca.crt": "others"})["metadata"]["annotations"]
    hashes = [x509.load_pem_x509_certificate(each.encode()).fingerprint(SHA256()).hex() for each in (old, new)]
    assert told["herdkeeper.io/trusted"] == " ".join(sorted(hashes))
    assert "herdkeeper.io/trusted" not in template(PLAIN)["metadata"]["annotations"]


def test_a_member_that_waits_for_its_files_is_not_killed_meanwhile() -> None:
    """The entry point waits for its name for 45 s, and for the files for 150."""
    delays = [template(cluster)["spec"]["containers"][0]["livenessProbe"]["initialDelaySeconds"] for cluster in (PLAIN, SECURE)]
    assert delays[0] > 45
    assert delays[1] > 45 + 150
