"""A tablespace and the one restored from its checkpoint, compared in SQL. The jobs' functions make it, but don't compare.

The comparison uses what SQL reports of both, with HerdDB's system tables, and nothing of the manifest or of the restore's own comparison.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import SparkSession
from real_database import Database

from herdkeeper.protocol.job_summary import RestoreSummary
from herdkeeper.sql.connection import Connection
from herdkeeper.sql.errors import ServerError
from herdkeeper.sql.frames import Value
from herdkeeper_e2e.server_processes import CREDENTIALS
from herdkeeper_jobs.checkpoint.run import CheckpointRequest, run_checkpoint
from herdkeeper_jobs.checkpoint.target import TargetRequest
from herdkeeper_jobs.restore.run import RestoreRequest, run_restore
from herdkeeper_jobs.restore.session import Cluster, Target
from herdkeeper_jobs.restore.source import open_source

_OWN = {"tablespace", "table_uuid", "index_uuid"}
"""Columns that differ between any two tablespaces."""
_SYSTEM_TABLES = {
    "systables": _OWN,
    "syscolumns": _OWN,
    "sysindexes": _OWN | {"table_name"},  # the table's name at the index's creation; sysindexcolumns has the current one
    "sysindexcolumns": _OWN,
    "sysforeignkeys": _OWN,
}
"""By table, the columns that are not compared."""
_NOW = timedelta(hours=1)
_LOST_CHILD = re.compile(r"Object '(.*)' not found within")


def checkpoint_of(spark: SparkSession, database: Database, tablespace: str, place: Path) -> Path:
    """Makes a checkpoint of the tablespace's current content; returns its manifest."""
    database.close_ledger(tablespace)
    with database.catalog() as catalog:
        request = CheckpointRequest(database.herd_root, tablespace, TargetRequest(), place, f"checkpoint-of-{tablespace}")
        return place / run_checkpoint(lambda: spark, catalog, request).manifest


def restore(spark: SparkSession, database: Database, manifest: Path, tablespace: str) -> RestoreSummary:
    """Restores into an empty tablespace, or continues an earlier call. Raises as `run_restore` and `open_source`."""
    target = Target(Cluster(database.servers.zookeeper, database.herd_root), tablespace, CREDENTIALS)
    return run_restore(spark, open_source(manifest), RestoreRequest(manifest, target, f"restore-of-{tablespace}"))


def user_tables(connection: Connection) -> list[str]:
    """The names of the tables of a tablespace."""
    return sorted(str(row["table_name"]) for row in connection.query("SELECT * FROM systables") if row["systemtable"] != "true")


Content = dict[str, Counter[str]]
"""A tablespace in SQL: rows as texts by table name, with HerdDB's system tables."""


def content(connection: Connection, *, since_then: bool = False) -> Content:
    """All of a tablespace that another one can share. `since_then`: rows were changed since, with own values of CURRENT_TIMESTAMP."""
    rows = {f"rows of {table}": _rows(connection, table, since_then) for table in user_tables(connection)}
    return rows | {name: _system_rows(connection, name) for name in _SYSTEM_TABLES}


def require_same(found: Content, expected: Content) -> None:
    """Compares, and names surplus and missing rows."""
    for name in sorted(found | expected):
        these, those = (side.get(name, Counter()) for side in (found, expected))
        assert these == those, f"{name}: {these - those} too much, {those - these} missing"
    assert found.keys() == expected.keys()


@dataclass(frozen=True)
class Twins:
    """Connections to a tablespace, and to the restored one."""

    original: Connection
    restored: Connection

    def both(self, sql: str, parameters: Sequence[Value] = ()) -> int | str:
        """Executes in both; returns the equal number of changed rows, or the equal error.

        The restored one is skipped if a rolled-back transaction had made a child of the table. Until the node restarts, HerdDB looks for
        the child and refuses changes of the parent.
        """
        expected = _answer(self.original, sql, parameters)
        if isinstance(expected, str) and (lost := _LOST_CHILD.search(expected)) and lost[1] not in user_tables(self.original):
            return expected
        found = _answer(self.restored, sql, parameters)
        assert _kind(found) == _kind(expected), f"{sql} {parameters!r}: {found!r} where it was restored, {expected!r} in the original"
        return expected

    def both_return(self, sql: str) -> list[dict[str, Value]]:
        """Returns the rows of a SELECT, which must be equal in both."""
        expected, found = (connection.query(sql) for connection in (self.original, self.restored))
        assert found == expected, sql
        return expected


def _answer(connection: Connection, sql: str, parameters: Sequence[Value]) -> int | str:
    try:
        return connection.execute(sql, parameters)
    except ServerError as error:
        return f"{type(error).__name__}: {error}"


def _kind(answer: int | str) -> int | str:
    """An answer without the words of an error, which name tables by uuid."""
    return answer if isinstance(answer, int) else answer.partition(":")[0]


def _system_rows(connection: Connection, table: str) -> Counter[str]:
    rows = connection.query(f"SELECT * FROM {table}")
    ours = [row for row in rows if row.get("tablespace", connection.tablespace) == connection.tablespace]
    return Counter(str(sorted((name, value) for name, value in row.items() if name not in _SYSTEM_TABLES[table])) for row in ours)


def _rows(connection: Connection, table: str, since_then: bool) -> Counter[str]:
    """As texts: NaN equals itself, and 0.0 differs from -0.0."""
    now = datetime.now(UTC)

    def shown(value: Value) -> str:
        if since_then and isinstance(value, datetime) and abs(now - value) < _NOW:
            return "about now"
        return repr(list(value) if isinstance(value, tuple) else value)

    rows = connection.query(f"SELECT * FROM `{table}`")
    return Counter(", ".join(f"{name}: {shown(value)}" for name, value in sorted(row.items())) for row in rows)


def remove_rows_that_no_restore_loads(connection: Connection) -> None:
    """Removes rows that HerdDB has and would not accept (docs/limits.md). They have a null where a column or a unique index forbids it, or
    refer to a missing row. Raises ServerError if others refer to one of them."""
    columns, indexes, references = (
        connection.query(f"SELECT * FROM {name}") for name in ("syscolumns", "sysindexcolumns", "sysforeignkeys")
    )
    for table in user_tables(connection):
        key = [str(row["column_name"]) for row in indexes if (row["table_name"], row["index_type"]) == (table, "pk")]
        required = {str(row["column_name"]) for row in columns if row["table_name"] == table and row["is_nullable"] == 0}
        required |= {str(row["column_name"]) for row in indexes if row["table_name"] == table and row["unique"]} - set(key)
        allowed = {
            str(row["child_table_column_name"]): _values(connection, str(row["parent_table_name"]), str(row["parent_table_column_name"]))
            for row in references
            if row["child_table_name"] == table
        }
        for row in connection.query(f"SELECT * FROM `{table}`"):
            lacks = any(row[name] is None for name in required)
            if lacks or any(row[name] is not None and repr(row[name]) not in found for name, found in allowed.items()):
                where = " AND ".join(f"`{name}` = ?" for name in key)
                connection.execute(f"DELETE FROM `{table}` WHERE {where}", [row[name] for name in key])


def _values(connection: Connection, table: str, column: str) -> set[str]:
    return {repr(row[column]) for row in connection.query(f"SELECT * FROM `{table}`")}
