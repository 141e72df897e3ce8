"""Actions by SQL: tablespaces are made and dropped on the node that leads HerdDB's own tablespace `herd`.

Any other node answers such a statement too, but only when it leads `herd`, or after a minute in silence.
"""

from __future__ import annotations

from herdkeeper.domain.names import HERDDB_SQL_PORT, HerdDBNames, ObjectKey
from herdkeeper.domain.observed.herddb import UserCredentials
from herdkeeper.metrics import WRITES
from herdkeeper.plan.action import CreateTablespace, DropTablespace
from herdkeeper.plan.tablespace import EXPECTED_REPLICAS
from herdkeeper.sql.connection import Address, Connection, Credentials

WAIT_MILLIS = 20_000
"""How long HerdDB itself waits until the leader has booted the tablespace. Cut off, it goes on without us."""


def create_tablespace(database: ObjectKey, credentials: UserCredentials, action: CreateTablespace) -> None:
    """CREATE TABLESPACE with one replica, the leader. Raises SqlError."""
    options = (
        f"leader:{action.leader}",
        f"replica:{action.leader}",
        f"expectedreplicacount:{EXPECTED_REPLICAS}",
        f"maxleaderinactivitytime:{action.max_leader_inactivity_millis}",
        f"wait:{WAIT_MILLIS}",
    )
    quoted = ",".join(f"'{option}'" for option in options)
    _execute(database, action.via, credentials, f"CREATE TABLESPACE '{action.name}',{quoted}")


def drop_tablespace(database: ObjectKey, credentials: UserCredentials, action: DropTablespace) -> None:
    """DROP TABLESPACE. Raises SqlError."""
    _execute(database, action.via, credentials, f"DROP TABLESPACE '{action.name}'")


def _execute(database: ObjectKey, node: str, credentials: UserCredentials, sql: str) -> None:
    named = HerdDBNames(database)
    address = Address(f"{node}.{named.nodes_service}.{database.namespace}.svc", HERDDB_SQL_PORT)
    login = Credentials(credentials.username, credentials.password)
    with Connection.connect(address, login, "herd", timeout_seconds=WAIT_MILLIS / 1000 + 10) as connection:
        connection.execute(sql)
    WRITES.labels("execute", "Tablespace").inc()
