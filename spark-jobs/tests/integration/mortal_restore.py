"""Restores that are killed at any point: at their Nth request to the SQL node, or before and after their Nth COMMIT."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from real_database import Database
from restored_twin import Content, content, require_same, restore, user_tables

from herdkeeper.protocol.job_summary import JobOutcome
from herdkeeper.protocol.restore_bookkeeping import RESTORE_TABLE
from herdkeeper.sql.connection import Connection
from herdkeeper.sql.frames import MessageType, TransactionCommand
from herdkeeper_jobs.restore import run
from herdkeeper_jobs.restore.bookkeeping import DEFINITION, marks
from herdkeeper_jobs.restore.ddl import insert
from herdkeeper_jobs.restore.load import load_group
from herdkeeper_jobs.restore.session import open_session

_CHUNK_ROWS = 3


@dataclass(frozen=True)
class Written:
    """A connection to a tablespace with tables, its checkpoint's manifest, and its content in SQL at that time."""

    connection: Connection
    manifest: Path
    content: Content


def require_each_row_once_though_killed_at_each_commit(spark: SparkSession, database: Database, written: Written, name: str) -> list[int]:
    """Restores into a tablespace; returns the number of rows after each COMMIT."""
    with _small_chunks(), database.tablespace(name), database.connect(name) as connection:
        loaded: list[int] = []
        while killed(spark, database, written.manifest, name, Death(commit=1)):
            done = marks(connection)
            assert rows_there(connection) == sum(done.values()), "nothing of the chunk is there"
            assert len(connection.query("SELECT * FROM systransactions")) == 1, "the transaction that was not committed"
            assert killed(spark, database, written.manifest, name, Death(commit=1, answered=True))
            more = marks(connection).keys() - done.keys()
            assert sum(not step.startswith(DEFINITION) for step in more) <= 1, "one chunk, or definitions"
            assert more, "the run came further"
            loaded.append(sum(marks(connection).values()))
            assert rows_there(connection) == loaded[-1]
        print(f"killed {2 * len(loaded)} times; rows after each COMMIT: {loaded}")
        require_same(content(connection), written.content)
    return loaded


def require_each_row_once_though_killed_at_each_request(spark: SparkSession, database: Database, written: Written, name: str) -> int:
    """Restores into a tablespace; returns how often it was killed."""
    with _small_chunks(), database.tablespace(name), database.connect(name) as connection:
        number = 1
        while killed(spark, database, written.manifest, name, Death(request=number)):
            number += 1
        print(f"killed {number - 1} times")
        require_same(content(connection), written.content)
        summary = restore(spark, database, written.manifest, name)
        assert (summary.outcome, summary.rows_loaded) == (JobOutcome.ALREADY_DONE, 0)
        assert connection.query("SELECT * FROM systransactions") == []
    return number - 1


@contextmanager
def _small_chunks() -> Iterator[None]:
    """Makes chunks so small that each table has several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "CHUNK_ROWS", _CHUNK_ROWS)
        yield


class Killed(BaseException):
    """Stands for a kill of the process: clean-up on the way reaches no server."""


@dataclass
class Death:
    """When the restoring process dies: at its Nth request to the SQL node, or before or after its Nth COMMIT."""

    request: int | None = None
    commit: int | None = None
    answered: bool = False
    """Whether that COMMIT is answered before."""
    requests: int = 0
    commits: int = 0

    def may_send(self, body_is_commit: bool) -> bool:
        """Counts a request; returns whether to send it."""
        self.requests += 1
        self.commits += body_is_commit
        return self.requests != self.request and (self.answered or not body_is_commit or self.commits != self.commit)

    def ends_after(self, body_is_commit: bool) -> bool:
        """Whether the process dies after the answer to this request."""
        return self.answered and body_is_commit and self.commits == self.commit


def killed(spark: SparkSession, database: Database, manifest: Path, name: str, death: Death) -> bool:
    """Runs a restore with this death; returns whether it died. Chunks are loaded one by one in this process instead of Spark's."""
    call, command = Connection._call, Connection._transaction_command
    committing = False

    def commanded(self: Connection, what: TransactionCommand, transaction_id: int) -> int:
        nonlocal committing
        committing = what is TransactionCommand.COMMIT
        try:
            return command(self, what, transaction_id)
        finally:
            committing = False

    def called(self: Connection, kind: MessageType, *rest: Any) -> Any:
        last = committing
        if not death.may_send(last):
            self.close()
            raise Killed
        answer = call(self, kind, *rest)
        if death.ends_after(last):
            self.close()
            raise Killed
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "load_groups", _load_here)
        patch.setattr(run, "check_files", lambda *_: None)
        patch.setattr(Connection, "_transaction_command", commanded)
        patch.setattr(Connection, "_call", called)
        try:
            restore(spark, database, manifest, name)
        except Killed:
            return True
    return False


def _load_here(spark: SparkSession, groups: Any, tables: Any, where: Any, done: Mapping[str, int]) -> int:
    """As `load_groups`, without Spark."""
    folder, target = where
    with open_session(target) as session:
        return sum(load_group(session, group, folder, insert(tables[group.table].definition), frozenset(done)) for group in groups)


def rows_there(connection: Connection) -> int:
    """The number of rows in all tables that a restore has filled so far."""
    tables = [table for table in user_tables(connection) if table != RESTORE_TABLE]
    return sum(int(str(connection.query(f"SELECT COUNT(*) AS n FROM `{table}`")[0]["n"])) for table in tables)
