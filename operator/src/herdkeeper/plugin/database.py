"""Connects to a tablespace's leader through a port-forward, with the login of the connection Secret."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from herdkeeper.plugin.cluster import Cluster, ClusterError, ForbiddenError
from herdkeeper.plugin.command import find
from herdkeeper.plugin.commands.connection import login_of, secret_name
from herdkeeper.plugin.kinds import TABLESPACE
from herdkeeper.shared import names
from herdkeeper.sql.connection import Address, Connection, Credentials
from herdkeeper.sql.encryption import Encryption
from herdkeeper.sql.errors import LeaderNotFound
from herdkeeper.sql.leader import Patience, leader_connection

PATIENCE = Patience(deadline_seconds=30.0, call_seconds=600.0)
"""The second value is enough for a full scan of a large table."""


@dataclass(frozen=True)
class Database:
    """A tablespace to connect to. `connect` looks its leader up each time."""

    tablespace: str
    connect: Callable[[], Connection]


@dataclass(frozen=True)
class ForwardedLeader:
    """Looks the leader up in the Tablespace's status, and forwards a port to its pod. See herdkeeper.sql.leader.Finder."""

    cluster: Cluster
    name: str
    authorities: str | None
    open_ports: contextlib.ExitStack

    def leader(self, tablespace: str) -> Address:  # noqa: ARG002 - the status is that of one
        """A port of this machine behind which the leader answers. Raises LeaderNotFound if the status names none, or its pod can't be
        reached, and ForbiddenError if the caller may not forward ports.
        """
        item = self.cluster.get(TABLESPACE, self.name) or {}
        node = (item.get("status") or {}).get("leader")
        if not node:
            raise LeaderNotFound("nobody leads it now; `status` tells why")
        try:
            port = self.open_ports.enter_context(self.cluster.forward(node, names.HERDDB_SQL_PORT))
        except ForbiddenError:
            raise
        except ClusterError as error:
            raise LeaderNotFound(str(error)) from error
        # as in its certificate
        host = names.HerdDBNames(names.ObjectKey(self.cluster.namespace, item["spec"]["herdDBRef"]["name"])).host_of(node)
        encryption = Encryption(host, self.authorities) if self.authorities is not None else None
        return Address("127.0.0.1", port, encryption)


@contextlib.contextmanager
def open_database(cluster: Cluster, name: str) -> Iterator[Database]:
    """Opens a tablespace until the block ends. Raises BadInputError without such a one, and ClusterError without a connection Secret."""
    tablespace = find(cluster, TABLESPACE, name, "TABLESPACE")
    entries = login_of(cluster, tablespace)
    if absent := [key for key in (names.CONNECTION_USER_KEY, names.PASSWORD_KEY, names.CONNECTION_DATABASE_KEY) if key not in entries]:
        raise ClusterError(f"the Secret {secret_name(tablespace)} lacks {', '.join(absent)}, so it is not the operator's; see `status`")
    login = Credentials(entries[names.CONNECTION_USER_KEY], entries[names.PASSWORD_KEY])
    sql_name = entries[names.CONNECTION_DATABASE_KEY]
    with contextlib.ExitStack() as ports:
        finder = ForwardedLeader(cluster, name, entries.get(names.AUTHORITIES_KEY), ports)
        yield Database(sql_name, lambda: leader_connection(finder, sql_name, login, PATIENCE))
