"""A query through a Service verifies the node wherever the pod knows the stack's authorities."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import pytest
from kazoo.client import KazooClient

from herdkeeper.sql.connection import Address, Connection, Credentials
from herdkeeper.sql.encryption import Encryption
from herdkeeper.sql.errors import ConnectionLost
from herdkeeper.sql.zookeeper_leader import LeaderFinder
from herdkeeper_e2e import query
from herdkeeper_e2e.session import Session

HOST = "flights-leader.e2e.svc"


@pytest.mark.parametrize(
    ("authorities", "encryption"), [("the stack's authority", Encryption(HOST, "the stack's authority")), (None, None)]
)
def test_the_node_behind_a_service_is_verified_by_the_service_s_name(
    authorities: str | None, encryption: Encryption | None, monkeypatch: pytest.MonkeyPatch
):
    asked: list[Address] = []

    @contextmanager
    def open_session() -> Iterator[Session]:
        yield Session(LeaderFinder(cast(KazooClient, None), "/e2e/db/herd", authorities=authorities), "flights", Credentials("admin", "x"))

    def connect(address: Address, *_: object, **__: object) -> Connection:
        asked.append(address)
        raise ConnectionLost("nobody is there")

    monkeypatch.setattr(query, "open_session", open_session)
    monkeypatch.setattr(Connection, "connect", connect)
    monkeypatch.setattr("sys.argv", ["query", "--host", HOST, "SELECT 1"])
    assert query.main() == 1
    assert asked == [Address(HOST, 7000, encryption)]
