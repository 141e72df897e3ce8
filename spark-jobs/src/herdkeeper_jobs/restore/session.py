"""Connects the restore and its tasks to the tablespace's leader by SQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import assert_never

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from herdkeeper.sql.connection import Address, Connection, Credentials
from herdkeeper.sql.errors import ConnectionLost, LeaderNotFound, NotLeader, OutcomeUnknown
from herdkeeper.sql.leader import Candidates, Finder, Patience, leader_connection
from herdkeeper.sql.zookeeper_leader import LeaderFinder
from herdkeeper.tls.kazoo_handler import own_handler
from herdkeeper_jobs.errors import RestoreRetryable

LEADER_IS_ELSEWHERE = (ConnectionLost, NotLeader, OutcomeUnknown)
"""After one of these the next connection goes to the current leader. The caller checks what was committed before it repeats anything."""

_PATIENCE = Patience(deadline_seconds=120.0, call_seconds=120.0)
"""A call may wait for a local checkpoint of the leader, which blocks all writes."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A database whose leaders are in ZooKeeper. `zookeeper`: its members, `host:port,host:port`; `herd_root`: HerdDB's root there."""

    zookeeper: str
    herd_root: str


@dataclass(frozen=True, slots=True)
class Target:
    """The tablespace, the credentials, and the certificates (PEM) that verify its nodes; None: TLS is not verified. It is sent to tasks.
    `database` is a server's address if there is no cluster."""

    database: Cluster | Address
    tablespace: str
    credentials: Credentials
    authorities: str | None = None


class Session:
    """A connection to the tablespace's leader that is renewed after a loss. Not thread-safe."""

    def __init__(self, finder: Finder, target: Target) -> None:
        self._finder = finder
        self._target = target
        self._connection: Connection | None = None

    def connection(self) -> Connection:
        """Returns the connection. Raises RestoreRetryable without a leader in time, AuthenticationFailed."""
        if self._connection is None or self._connection.closed:
            try:
                self._connection = leader_connection(self._finder, self._target.tablespace, self._target.credentials, _PATIENCE)
            except LeaderNotFound as error:
                raise RestoreRetryable(str(error)) from error
        return self._connection

    def close(self) -> None:
        """Closes the connection; the next one goes to the current leader."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@contextmanager
def open_session(target: Target) -> Iterator[Session]:
    """A session for the block. Raises RestoreRetryable if ZooKeeper does not answer."""
    with _finder(target) as finder:
        session = Session(finder, target)
        try:
            yield session
        finally:
            session.close()


@contextmanager
def _finder(target: Target) -> Iterator[Finder]:
    match target.database:
        case Address() as address:
            yield Candidates((address,))
        case Cluster(members, herd_root):
            retry = {"max_tries": -1, "max_delay": 1.0}
            zookeeper = KazooClient(hosts=members, timeout=10.0, connection_retry=retry, handler=own_handler())
            try:
                zookeeper.start(timeout=60)
            except (KazooException, KazooTimeoutError) as error:
                raise RestoreRetryable(f"ZooKeeper {members} does not answer: {error}") from error
            try:
                yield LeaderFinder(zookeeper, herd_root, authorities=target.authorities)
            finally:
                zookeeper.stop()
                zookeeper.close()
        case _:
            assert_never(target.database)
