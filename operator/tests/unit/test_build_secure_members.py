"""What members with certificates are made of, on each step of the way to them."""

from __future__ import annotations

from types import MappingProxyType

import pytest
from situations import quickstart

from herdkeeper.certificates.settings import Phase
from herdkeeper.codecs.zookeeper.membership import Role
from herdkeeper.shared.objects import Json
from herdkeeper.zookeeper.build import Ensemble, MemberSecurity, build_zookeeper, first_membership, server_of

CLUSTER = quickstart("ZooKeeperCluster")
OFFERED = (Phase.OFFERED, Phase.PREFERRED)


def built(phase: Phase, read_at_start: dict[str, str] | None = None) -> dict[tuple[str, str], Json]:
    security = MemberSecurity(phase, MappingProxyType(read_at_start or {}))
    made = build_zookeeper(CLUSTER, Ensemble(3, first_membership(CLUSTER, range(3), phase), None, True, "secret", security))
    return {(each["kind"], each["metadata"]["name"]): each for each in made}


def ports(phase: Phase, service: str) -> dict[str, int]:
    return {port["name"]: port["port"] for port in built(phase)["Service", service]["spec"]["ports"]}


def template(phase: Phase, read_at_start: dict[str, str] | None = None) -> Json:
    found: Json = built(phase, read_at_start)["StatefulSet", "zk-zookeeper"]["spec"]["template"]
    return found


@pytest.mark.parametrize("phase", Phase)
def test_clients_find_the_ports_that_are_served(phase: Phase) -> None:
    plain = {} if phase is Phase.REQUIRED else {"client": 2181}
    encrypted = {} if phase is Phase.INSECURE else {"secure": 2281}
    assert ports(phase, "zk-zookeeper") == plain | encrypted
    assert ports(phase, "zk-zookeeper-members") == plain | encrypted | {"quorum": 2888, "election": 3888, "admin": 8080}


@pytest.mark.parametrize("phase", Phase)
def test_plain_text_is_for_a_members_own_probe_once_certificates_are_required(phase: Phase) -> None:
    assert server_of(CLUSTER, 0, Role.PARTICIPANT, phase).client == ("127.0.0.1:2182" if phase is Phase.REQUIRED else "2181")
    files = built(phase)["ConfigMap", "zk-zookeeper"]["data"]
    assert (";127.0.0.1:2182" in files["zoo.cfg.dynamic"]) == (phase is Phase.REQUIRED)


def test_the_two_certificates_are_mounted_apart_and_the_authoritys_key_nowhere() -> None:
    spec = template(Phase.REQUIRED)["spec"]
    mounts = {mount["name"]: mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"] if mount["mountPath"].startswith("/tls")}
    assert mounts == {"zk-zookeeper-clients": "/tls/clients", "zk-zookeeper-quorum": "/tls/members"}
    secrets = {volume["name"]: volume["secret"]["secretName"] for volume in spec["volumes"] if volume["name"] in mounts}
    assert secrets == {name: name for name in mounts}


def test_what_members_read_only_at_their_start_restarts_them() -> None:
    first, again, other = (template(Phase.REQUIRED, {"quorum": certificate}) for certificate in ("a", "a", "b"))
    assert first == again
    assert first["metadata"]["annotations"] != other["metadata"]["annotations"]


def test_each_step_is_another_template() -> None:
    assert len({str(template(phase)["metadata"]) for phase in Phase}) == len(Phase)
