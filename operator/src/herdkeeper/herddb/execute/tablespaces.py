"""Creates and drops tablespaces by SQL on the node that leads HerdDB's own tablespace `herd`.

Other nodes answer such statements only if they lead `herd`, or after a minute of silence.
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
"""How long HerdDB waits for the leader to boot the tablespace. If the connection ends, HerdDB continues."""


@dataclass(frozen=True)
class Login:
    """The user for a login, and the certificates (PEM) to verify the nodes; None without TLS."""

    credentials: UserCredentials
    authorities: str | None = None


def create_tablespace(database: ObjectKey, login: Login, action: CreateTablespace) -> None:
    """CREATE TABLESPACE with the leader as its only replica. Raises SqlError."""
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
    """DROP TABLESPACE. Raises SqlError. The uuid is a parameter, which the node program reads, and an older one ignores."""
    _execute(database, action.via, login, f"DROP TABLESPACE '{action.name}'", action.uuid)


def _execute(database: ObjectKey, node: str, login: Login, sql: str, *parameters: str) -> None:
    host = HerdDBNames(database).host_of(node)
    address = Address(host, HERDDB_SQL_PORT, Encryption(host, login.authorities) if login.authorities else None)
    credentials = Credentials(login.credentials.username, login.credentials.password)
    with Connection.connect(address, credentials, "herd", timeout_seconds=WAIT_MILLIS / 1000 + 10) as connection:
        connection.execute(sql, parameters)
    WRITES.labels("execute", "Tablespace").inc()
