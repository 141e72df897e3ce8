"""Finds a tablespace's leader in ZooKeeper and connects to it, again and again until a deadline.

ZooKeeper names the leader that *should* lead; the node itself decides when it does (it first fences and replays the log), so a
connection counts only after the node said that it leads.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from herdkeeper.codecs.herddb.node import decode_node, node_path
from herdkeeper.codecs.herddb.tablespace import decode_tablespace, tablespace_path
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.sql.connection import Address, Connection, Credentials
from herdkeeper.sql.encryption import Encryption
from herdkeeper.sql.errors import ConnectionLost, LeaderNotFound, NotLeader

RETRY_PAUSE_SECONDS = 0.1
"""Between two attempts. A planned hand-over takes about 0.2 s, so a longer pause would be the longest part of it."""


def _as_advertised(address: Address) -> Address:
    return address


class Finder(Protocol):
    """Tells who leads a tablespace."""

    def leader(self, tablespace: str) -> Address:
        """Where to connect to. Raises LeaderNotFound."""


@dataclass(frozen=True)
class OneServer:
    """A server that is alone, and so leads all that it has."""

    address: Address

    def leader(self, tablespace: str) -> Address:  # noqa: ARG002 - it has all of them
        """Its address."""
        return self.address


@dataclass(frozen=True)
class LeaderFinder:
    """Where to look leaders up.

    `zookeeper` is a started client; `resolve` turns the address that a node advertises (a pod's DNS name) into one that this
    process can reach, for example through a forwarded port outside of the cluster.

    With `authorities` (certificates, PEM) only nodes that speak TLS and can be verified by them are taken. Without, TLS is spoken with
    those whose record says that they do, and nothing is verified.
    """

    zookeeper: KazooClient
    herd_root: str
    resolve: Callable[[Address], Address] = _as_advertised
    authorities: str | None = None

    def leader(self, tablespace: str) -> Address:
        """The address of the node that ZooKeeper names as leader.

        Raises:
            LeaderNotFound: there is no such tablespace, its leader never registered, or it speaks no TLS though it must; the message
                says which.
            KazooException: ZooKeeper could not answer.
        """
        path = tablespace_path(self.herd_root, tablespace)
        try:
            record = decode_tablespace(self.zookeeper.get(path)[0])
        except NoNodeError as error:
            raise LeaderNotFound(f"no tablespace {tablespace!r}: ZooKeeper has no node {path}") from error
        path = node_path(self.herd_root, record.leader)
        try:
            node = decode_node(self.zookeeper.get(path)[0])
        except NoNodeError as error:
            raise LeaderNotFound(f"the leader {record.leader!r} of {tablespace!r} is not registered: no node {path}") from error
        if self.authorities is not None and not node.tls:
            raise LeaderNotFound(
                f"the leader {record.leader!r} of {tablespace!r} does not serve TLS, but verification is required: its node {path}"
            )
        encryption = Encryption(node.host, self.authorities) if node.tls else None
        return replace(self.resolve(Address(node.host, node.port)), encryption=encryption)


@dataclass(frozen=True)
class Patience:
    """How long to go on trying, and how long one call may take, in seconds."""

    deadline_seconds: float = 60.0
    call_seconds: float = 10.0


def leader_connection(finder: Finder, tablespace: str, credentials: Credentials, patience: Patience) -> Connection:
    """A connection to the node that leads the tablespace now.

    Looks the leader up afresh in every attempt, so it follows a failover. What it retries: a lookup that fails, a node that is
    not there, a node that does not lead (yet). A refused password is not retried.

    Raises:
        LeaderNotFound: not before the deadline; names the last attempt's error.
        AuthenticationFailed: the leader refused the credentials.
    """
    deadline = time.monotonic() + patience.deadline_seconds
    while True:
        try:
            connection = _connect_once(finder, tablespace, credentials, min(patience.call_seconds, max(deadline - time.monotonic(), 0.1)))
            connection.timeout_seconds = patience.call_seconds
            return connection
        except (ConnectionLost, NotLeader, LeaderNotFound, MalformedDataError, KazooException, KazooTimeoutError) as error:
            if time.monotonic() + RETRY_PAUSE_SECONDS >= deadline:
                reason = str(error) or type(error).__name__
                message = f"no leader of the tablespace {tablespace!r} within {patience.deadline_seconds:g} s; last attempt: {reason}"
                raise LeaderNotFound(message) from error
        time.sleep(RETRY_PAUSE_SECONDS)


def _connect_once(finder: Finder, tablespace: str, credentials: Credentials, call_seconds: float) -> Connection:
    connection = Connection.connect(finder.leader(tablespace), credentials, tablespace, timeout_seconds=call_seconds)
    try:
        connection.require_leader()
    except BaseException:
        connection.close()
        raise
    return connection
