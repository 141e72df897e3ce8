"""Looking up a tablespace's leader: what is asked of ZooKeeper, what is retried and what is not."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from kazoo.exceptions import ConnectionLoss, NoNodeError
from kazoo.handlers.threading import SequentialThreadingHandler

from herdkeeper.codecs.herddb.node import NodeRecord, encode_node
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord, encode_tablespace
from herdkeeper.sql import leader, zookeeper_leader
from herdkeeper.sql.connection import Address, Connection, Credentials
from herdkeeper.sql.encryption import Encryption
from herdkeeper.sql.errors import AuthenticationFailed, ConnectionLost, LeaderNotFound, NotLeader
from herdkeeper.sql.leader import Candidates, Patience, leader_connection
from herdkeeper.sql.zookeeper_leader import LeaderFinder

CREDENTIALS = Credentials("alice", "wonder")
RECORD = TablespaceRecord("0ab", "demo", "db-0", ("db-0", "db-1"), 1, 60000)


class Tree:
    """A ZooKeeper client of which only `get_async` is used."""

    def __init__(self, nodes: dict[str, bytes]) -> None:
        self.nodes = nodes
        self.lost: list[Exception] = []
        """What the next requests get instead of an answer."""
        self.silent = False
        """Its connection is lost."""

    def get_async(self, path: str) -> Any:
        answer = SequentialThreadingHandler().async_result()
        if path not in self.nodes:
            answer.set_exception(NoNodeError())
        elif self.lost:
            answer.set_exception(self.lost.pop())
        elif not self.silent:
            answer.set((self.nodes[path], None))
        return answer


def tree() -> Tree:
    return Tree(
        {
            "/ns/db/herd/tableSpaces/demo": encode_tablespace(RECORD),
            "/ns/db/herd/nodes/db-0": encode_node(NodeRecord("db-0", "db-0.nodes", 7000)),
        }
    )


def test_the_leader_is_the_address_that_its_node_advertises() -> None:
    assert LeaderFinder(tree(), "/ns/db/herd").leader("DEMO") == Address("db-0.nodes", 7000)


def test_a_server_that_is_alone_leads_all_that_it_has() -> None:
    alone = Candidates((Address("127.0.0.1", 7000),))
    assert [alone.leader("anything") for _ in range(2)] == [Address("127.0.0.1", 7000)] * 2


def test_an_address_is_resolved_by_the_given_function() -> None:
    finder = LeaderFinder(tree(), "/ns/db/herd", lambda address: Address("127.0.0.1", address.port + 1))
    assert finder.leader("demo") == Address("127.0.0.1", 7001)


def speaking_tls() -> Tree:
    nodes = tree()
    nodes.nodes["/ns/db/herd/nodes/db-0"] = encode_node(NodeRecord("db-0", "db-0.nodes", 7000, tls=True))
    return nodes


def test_a_node_whose_record_says_that_it_speaks_tls_is_verified_under_the_name_that_it_advertises() -> None:
    finder = LeaderFinder(speaking_tls(), "/ns/db/herd", lambda address: Address("127.0.0.1", address.port), "certificates")
    assert finder.leader("demo") == Address("127.0.0.1", 7000, Encryption("db-0.nodes", "certificates"))


def test_without_authorities_tls_is_spoken_and_not_verified() -> None:
    assert LeaderFinder(speaking_tls(), "/ns/db/herd").leader("demo").encryption == Encryption("db-0.nodes", None)


def test_a_node_that_speaks_no_tls_is_not_taken_where_nodes_are_to_be_verified() -> None:
    with pytest.raises(LeaderNotFound, match="'db-0' of 'demo' does not serve TLS"):
        LeaderFinder(tree(), "/ns/db/herd", authorities="certificates").leader("demo")


@pytest.mark.timeout(60)
def test_a_zookeeper_that_is_not_reached_any_more_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zookeeper_leader, "_ANSWER_SECONDS", 0.1, raising=False)
    silent = tree()
    silent.silent = True
    with pytest.raises(LeaderNotFound, match="ZooKeeper does not report the leader of 'demo'"):
        LeaderFinder(silent, "/ns/db/herd").leader("demo")


def test_an_unknown_tablespace_is_named_with_its_path() -> None:
    with pytest.raises(LeaderNotFound, match="/ns/db/herd/tableSpaces/other"):
        LeaderFinder(tree(), "/ns/db/herd").leader("other")


def test_a_leader_that_never_registered_is_named() -> None:
    nodes = tree()
    del nodes.nodes["/ns/db/herd/nodes/db-0"]
    with pytest.raises(LeaderNotFound, match="db-0"):
        LeaderFinder(nodes, "/ns/db/herd").leader("demo")


class Outcome:
    """Plays `Connection.connect`: raises or answers what the test lists, in order."""

    def __init__(self, *outcomes: Exception | str) -> None:
        self.outcomes = list(outcomes)
        self.closed = 0
        self.timeout_seconds = 0.0

    def connect(self, address: Address, credentials: Credentials, tablespace: str, *, timeout_seconds: float) -> Outcome:
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception) and not isinstance(outcome, NotLeader):
            raise outcome
        self.refusal = outcome
        return self

    def require_leader(self) -> None:
        if isinstance(self.refusal, Exception):
            raise self.refusal

    def close(self) -> None:
        self.closed += 1


def test_a_connection_is_retried_until_the_node_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = Outcome(ConnectionLost("no route"), NotLeader("not yet"), "leads")
    zookeeper = tree()
    zookeeper.lost = [ConnectionLoss()]
    monkeypatch.setattr(Connection, "connect", outcome.connect)
    monkeypatch.setattr(leader, "RETRY_PAUSE_SECONDS", 0.001)
    assert leader_connection(LeaderFinder(zookeeper, "/ns/db/herd"), "demo", CREDENTIALS, Patience(30, 7)) is outcome
    assert outcome.closed == 1, "the connection to the node that does not lead is closed"
    assert outcome.timeout_seconds == 7


def test_of_several_servers_each_attempt_asks_the_next() -> None:
    addresses = [Address("a", 7000), Address("b", 7000)]
    candidates = Candidates(addresses)
    assert [candidates.leader("demo") for _ in range(3)] == [*addresses, addresses[0]]


def test_pauses_grow_up_to_the_longest_and_none_is_shorter_than_the_first() -> None:
    pauses = list(itertools.islice(Patience(longest_pause_seconds=1.0).pauses(), 20))
    assert pauses[0] == min(pauses) == leader.RETRY_PAUSE_SECONDS
    assert all(0.5 <= pause <= 1.0 for pause in pauses[5:])


def test_a_refused_password_is_not_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "connect", Outcome(AuthenticationFailed("no"), "leads").connect)
    with pytest.raises(AuthenticationFailed):
        leader_connection(LeaderFinder(tree(), "/ns/db/herd"), "demo", CREDENTIALS, Patience(30, 7))


def test_the_deadline_names_the_last_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "connect", Outcome(*[NotLeader("not leader for demo")] * 100).connect)
    with pytest.raises(LeaderNotFound, match=r"within 0\.05 s; last attempt: not leader for demo"):
        leader_connection(LeaderFinder(tree(), "/ns/db/herd"), "demo", CREDENTIALS, Patience(0.05, 7))
