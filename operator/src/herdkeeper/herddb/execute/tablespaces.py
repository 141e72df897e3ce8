"""Actions by SQL: tablespaces are made and dropped on the node that leads HerdDB's own tablespace `herd`.

Any other node answers such a statement too, but only when it leads `herd`, or after a minute in silence.
"""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.clients.counters import WRITES
from herdkeeper.herddb.state.cluster import UserCredentials
from herdkeeper.herddb.tablespace.plan import EXPECTED_REPLICAS
from herdkeeper.planning.actions import CreateTablespace, DropTablespace
from herdkeeper.shared.names import HERDDB_SQL_PORT, HerdDBNames, ObjectKey
from herdkeeper.sql.connection import Address, Connection, Credentials
from herdkeeper.sql.encryption import Encryption

WAIT_MILLIS = 20_000
"""How long HerdDB itself waits until the leader has booted the tablespace. Cut off, it goes on without us."""


@dataclass(frozen=True)
class Login:
    """Whom to be, and the certificates (PEM) by which the nodes are verified; None when they speak no TLS."""

    credentials: UserCredentials
    authorities: str | None = None


def create_tablespace(database: ObjectKey, login: Login, action: CreateTablespace) -> None:
    """CREATE TABLESPACE with one replica, the leader. Raises SqlError."""
    options = (
        f"leader:{action.leader}",
        f"replica:{action.leader}",
        f"expectedreplicacount:{EXPECTED_REPLICAS}",
        f"maxleaderinactivitytime:{action.max_leader_inactivity_millis}",
        f"wait:{WAIT_MILLIS}",
    )
    quoted = ",".join(f"'{option}'" for option in options)
    _execute(database, action.via, login, f"CREATE TABLESPACE '{action.name}',{quoted}")


def drop_tablespace(database: ObjectKey, login: Login, action: DropTablespace) -> None:
    """DROP TABLESPACE. Raises SqlError."""
    _execute(database, action.via, login, f"DROP TABLESPACE '{action.name}'")


def _execute(database: ObjectKey, node: str, login: Login, sql: str) -> None:
    host = HerdDBNames(database).host_of(node)
    address = Address(host, HERDDB_SQL_PORT, Encryption(host, login.authorities) if login.authorities else None)
    credentials = Credentials(login.credentials.username, login.credentials.password)
    with Connection.connect(address, credentials, "herd", timeout_seconds=WAIT_MILLIS / 1000 + 10) as connection:
        connection.execute(sql)
    WRITES.labels("execute", "Tablespace").inc()
