"""ZooKeeper's membership and its super user, as ZooKeeper 3.9.5 writes and checks them."""

from __future__ import annotations

import pytest

from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.codecs.zookeeper.membership import Membership, Role, Server, decode_membership, file_name, version_of
from herdkeeper.codecs.zookeeper.super_digest import super_digest

ZNODE = b"server.1=zk-0.svc:2888:3888:participant;0.0.0.0:2181\nserver.2=zk-1.svc:2888:3888:observer;0.0.0.0:2181\nversion=100000007"


def test_the_membership_in_the_znode_is_read() -> None:
    found = decode_membership(ZNODE)
    assert (found.version, found.voters, found.observers) == (0x100000007, {1}, {2})
    assert found.servers[1] == Server(2, "zk-1.svc:2888:3888", Role.OBSERVER, "0.0.0.0:2181")


def test_a_file_holds_the_same_lines_in_the_order_of_the_ids_and_no_version() -> None:
    found = decode_membership(ZNODE)
    turned = Membership(found.version, found.servers[::-1])
    assert turned.file == ZNODE.decode().rpartition("version=")[0]


def test_a_server_without_a_role_participates() -> None:
    assert decode_membership(b"server.1=a:1:2;3\nversion=0").voters == {1}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (b"", "expected at least one server and a version"),
        (b"server.1=a:1:2:participant;3", "expected at least one server and a version"),
        (b"server.1=a:1:2:learner\nversion=1", "membership line"),
        (b"group.1=1:2\nserver.1=a:1:2:participant;3\nversion=1", "group.1"),
    ],
)
def test_what_is_no_membership_is_refused(wrong: bytes, said: str) -> None:
    with pytest.raises(MalformedDataError, match=said):
        decode_membership(wrong)


@pytest.mark.parametrize(
    ("name", "version"),
    [("zoo.cfg.dynamic.a00000001", 0xA00000001), ("zoo.cfg.dynamic", None), ("zoo.cfg.dynamic.next", None), ("zoo.cfg", None)],
)
def test_a_file_has_its_version_in_its_name(name: str, version: int | None) -> None:
    assert version_of(name) == version
    if version is not None:
        assert file_name(version) == name


def test_the_membership_of_a_founding_has_no_version_in_its_name() -> None:
    assert file_name(0) == "zoo.cfg.dynamic"


def test_the_digest_is_what_zookeeper_computes() -> None:
    """From ZooKeeper's own documentation of the super user: `super:xQJmxLMiHGwaqBvst5y6rkB6HQs=` stands for the password `admin`."""
    assert super_digest("admin") == "super:xQJmxLMiHGwaqBvst5y6rkB6HQs="
