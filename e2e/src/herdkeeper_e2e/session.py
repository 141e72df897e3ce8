"""How programs inside the cluster reach the database: settings from the pod's environment, leaders from ZooKeeper."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from kazoo.client import KazooClient

from herdkeeper.sql.connection import Connection, Credentials
from herdkeeper.sql.errors import AuthenticationFailed
from herdkeeper.sql.leader import Patience, leader_connection
from herdkeeper.sql.zookeeper_leader import LeaderFinder
from herdkeeper.tls.identity import own_identity
from herdkeeper.tls.kazoo_handler import own_handler

ZOOKEEPER = "HERDDB_ZOOKEEPER"
HERD_ROOT = "HERDDB_ROOT"
TABLESPACE = "HERDDB_TABLESPACE"
USERNAME = "HERDDB_USERNAME"
PASSWORD = "HERDDB_PASSWORD"
NEXT_PASSWORD = "HERDDB_NEXT_PASSWORD"
"""Optional: a second password of the same user, tried if the first one is refused, like by a client that rereads a Secret."""


class SettingError(RuntimeError):
    """An environment variable is not set. The message names it and who sets it."""


@dataclass(frozen=True)
class Session:
    """A tablespace and a user. Connections go to the current leader. `otherwise` is tried if the server refuses `credentials`."""

    finder: LeaderFinder
    tablespace: str
    credentials: Credentials
    otherwise: Credentials | None = None

    def connect(self, patience: Patience) -> Connection:
        """Returns a connection to the tablespace's current leader. Raises like `leader_connection`."""
        try:
            return leader_connection(_trusting(self.finder), self.tablespace, self.credentials, patience)
        except AuthenticationFailed:
            if self.otherwise is None:
                raise
        return leader_connection(_trusting(self.finder), self.tablespace, self.otherwise, patience)


class LeaderConnection:
    """A session's connection to the leader, made when it is first needed and after it was closed."""

    def __init__(self, session: Session, patience: Patience) -> None:
        self._session = session
        self._patience = patience
        self._connection: Connection | None = None

    def get(self) -> Connection:
        """Raises as `Session.connect`."""
        if self._connection is None or self._connection.closed:
            self._connection = self._session.connect(self._patience)
        return self._connection

    def close(self) -> None:
        """End it, if there is one; `get` makes the next one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _trusting(finder: LeaderFinder) -> LeaderFinder:
    """It trusts what this process's Secret names now: other authorities may have taken over since."""
    identity = own_identity()
    return finder if identity is None else replace(finder, authorities=identity().authorities)


@contextmanager
def open_session(environment: Mapping[str, str] = os.environ) -> Iterator[Session]:
    """A session from the variables HERDDB_*; its ZooKeeper client reconnects by itself and ends with the block.

    Where this process has a certificate of a stack, SQL nodes must show one of the same authority.

    Raises:
        SettingError: a variable is absent or empty.
    """
    hosts, herd_root, tablespace, username, password = (
        _required(environment, name) for name in (ZOOKEEPER, HERD_ROOT, TABLESPACE, USERNAME, PASSWORD)
    )
    following = environment.get(NEXT_PASSWORD)
    otherwise = Credentials(username, following) if following else None
    with zookeeper_client(hosts) as zookeeper:
        identity = own_identity()
        authorities = None if identity is None else identity().authorities
        yield Session(LeaderFinder(zookeeper, herd_root, authorities=authorities), tablespace, Credentials(username, password), otherwise)


@contextmanager
def zookeeper_client(hosts: str) -> Iterator[KazooClient]:
    """A client of the ensemble at `host:port,host:port` that reconnects by itself and ends with the block. It shows the certificate of this
    process, if there is one."""
    retry = {"max_tries": -1, "max_delay": 1.0}
    zookeeper = KazooClient(hosts=hosts, timeout=10.0, connection_retry=retry, handler=own_handler())
    zookeeper.start(timeout=60)
    try:
        yield zookeeper
    finally:
        zookeeper.stop()
        zookeeper.close()


def _required(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "")
    if not value:
        raise SettingError(f"the environment variable {name} is not set: run this in the pod that the demo or the tests made for it")
    return value
