"""PEP 249 with two SQL nodes: the leader changes during an open transaction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from waits import wait_until

from herdkeeper.sql import dbapi
from herdkeeper.sql.connection import Address
from herdkeeper_e2e.server_processes import CREDENTIALS, NODE_ID, leads, servers

_SECONDS = 120
_OTHER = "node-1"


@dataclass(frozen=True)
class Nodes:
    """Both nodes' addresses. The tablespace `herd` stays with the first."""

    addresses: tuple[Address, Address]

    def connect(self, tablespace: str = "moving", *, autocommit: bool = False) -> dbapi.Connection:
        hosts = ",".join(str(address) for address in self.addresses)
        login = CREDENTIALS.username, CREDENTIALS.password, tablespace
        return dbapi.connect(hosts, *login, failover_timeout=_SECONDS, autocommit=autocommit)

    def move(self, number: int) -> None:
        """Makes node `number` the leader."""
        with self.connect("herd", autocommit=True) as connection:
            connection.cursor().execute(f"ALTER TABLESPACE 'moving','leader:{(NODE_ID, _OTHER)[number]}'")
        wait_until(f"node {number} to lead", lambda: leads(self.addresses[number], "moving"), _SECONDS)


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with servers() as started:
        started.start_zookeeper()
        started.start_bookies(1)
        first = started.start_sql_node()
        second, _ = started.begin_sql_node(_OTHER, _OTHER, {})
        found = Nodes((first, second))
        replicas = f"'replica:{NODE_ID},{_OTHER}','expectedreplicacount:1'"
        with found.connect("herd", autocommit=True) as connection:
            wait_until(
                "the second node to register", lambda: len(connection.cursor().execute("SELECT * FROM sysnodes").fetchall()) == 2, _SECONDS
            )
            connection.cursor().execute(f"CREATE TABLESPACE 'moving','leader:{NODE_ID}',{replicas},'wait:60000'")
        with found.connect() as connection:
            connection.cursor().execute("CREATE TABLE kept (k int PRIMARY KEY)")
            connection.commit()
        yield found


def test_a_transaction_that_was_open_when_the_leader_changed_is_not_committed_and_the_connection_finds_the_next_leader(
    nodes: Nodes,
) -> None:
    with nodes.connect() as connection:
        cursor = connection.cursor()
        cursor.execute("INSERT INTO kept VALUES(1)")
        nodes.move(1)
        with pytest.raises(dbapi.OperationalError) as lost:
            connection.commit()
        assert not isinstance(lost.value, dbapi.OutcomeUnknown), str(lost.value)
        connection.rollback()
        assert cursor.execute("SELECT k FROM kept WHERE k = 1").fetchall() == []
        cursor.execute("INSERT INTO kept VALUES(2)")
        connection.commit()
        assert cursor.execute("SELECT k FROM kept WHERE k = 2").fetchall() == [(2,)]


def test_what_is_outside_of_a_transaction_follows_the_leader_without_an_error(nodes: Nodes) -> None:
    with nodes.connect(autocommit=True) as connection:
        cursor = connection.cursor()
        for number, leader in enumerate((0, 1, 0), start=10):
            nodes.move(leader)
            assert cursor.execute("INSERT INTO kept VALUES(?)", [number]).rowcount == 1
            assert cursor.execute("SELECT k FROM kept WHERE k = ?", [number]).fetchall() == [(number,)]
