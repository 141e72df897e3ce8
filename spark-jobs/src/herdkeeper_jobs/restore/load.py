"""Loads row groups in tasks: each chunk in one transaction with its mark, over a connection that follows the leader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from herdkeeper.sql.connection import Connection
from herdkeeper.sql.errors import DuplicateKey, ServerError
from herdkeeper.sql.frames import Value
from herdkeeper_jobs.checkpoint.arrow_table import rows_of
from herdkeeper_jobs.encryption.parquet_folder import ParquetFolder
from herdkeeper_jobs.errors import InvariantViolated, RestoreRetryable
from herdkeeper_jobs.restore.bookkeeping import AlreadyDone, mark
from herdkeeper_jobs.restore.chunks import Chunk, RowGroup
from herdkeeper_jobs.restore.ddl import insert
from herdkeeper_jobs.restore.session import LEADER_IS_ELSEWHERE, Session, Target, open_session
from herdkeeper_jobs.restore.source import SourceTable
from herdkeeper_jobs.spark_tasks import map_numbers

_ATTEMPTS = 10
"""Per chunk. Each attempt waits for a leader itself, so this is far more than a failover needs."""
_SCHEMA = pa.schema([("rows", pa.int64())])


def load_groups(
    spark: SparkSession,
    groups: Sequence[RowGroup],
    tables: Sequence[SourceTable],
    where: tuple[ParquetFolder, Target],
    done: Mapping[str, int],
) -> int:
    """Loads row groups, one task each, without what is `done`; returns how many rows this run loaded.

    Tasks raise RestoreRetryable or InvariantViolated, which reach the driver inside Spark's exception.
    """
    folder, target = where
    open_groups = [group for group in groups if any(chunk.step not in done for chunk in group.chunks())]
    statements = [insert(table.definition) for table in tables]
    finished = frozenset(done)

    def load(number: int) -> Iterator[pa.RecordBatch]:
        group = open_groups[number]
        with open_session(target) as session:
            loaded = load_group(session, group, folder, statements[group.table], finished)
        yield pa.RecordBatch.from_arrays([pa.array([loaded], pa.int64())], schema=_SCHEMA)

    return sum(row["rows"] for row in map_numbers(spark, len(open_groups), load, _SCHEMA).collect()) if open_groups else 0


def load_group(session: Session, group: RowGroup, folder: ParquetFolder, statement: str, done: frozenset[str]) -> int:
    """Loads the chunks of a row group; returns how many rows this call loaded. Raises RestoreRetryable, InvariantViolated."""
    loader = ChunkLoader(session)
    loaded = 0
    with folder.parquet_file(group.path) as file:
        if (found := file.metadata.row_group(group.number).num_rows) != group.rows:
            raise InvariantViolated(f"{group.path}: row group {group.number} has {found} rows, it had {group.rows}")
        for chunk, content in zip(group.chunks(), file.iter_batches(group.chunk_rows, [group.number]), strict=True):
            if chunk.step not in done:
                loaded += loader.load(chunk, [Batch(statement, rows_of(content))])
    return loaded


@dataclass(frozen=True, slots=True)
class Batch:
    """A statement with parameters for many rows; each changes one row."""

    statement: str
    rows: Sequence[Sequence[Value]]


class ChunkLoader:
    """Loads chunks, each exactly once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lost: int | None = None
        """The last attempt's transaction, until its end is acknowledged."""

    def load(self, chunk: Chunk, batches: Sequence[Batch]) -> int:
        """Loads a chunk. Returns how many rows this call committed: all, or none if the chunk was loaded before.

        Raises:
            InvariantViolated: some of the rows exist without the chunk's mark; or a statement did not change its row.
            RestoreRetryable: no leader accepts it.
        """
        reason = ""
        for _ in range(_ATTEMPTS):
            try:
                self._commit(self._session.connection(), chunk, batches)
            except AlreadyDone:
                self._lost = None
                return 0
            except DuplicateKey as error:
                raise InvariantViolated(f"{chunk.step} is not loaded, {_why_duplicate(error)} ({error})") from error
            except LEADER_IS_ELSEWHERE as error:
                reason = str(error)
                self._session.close()
            else:
                return chunk.rows
        raise RestoreRetryable(f"{chunk.step} could not be loaded in {_ATTEMPTS} attempts, the last one: {reason}")

    def _commit(self, connection: Connection, chunk: Chunk, batches: Sequence[Batch]) -> None:
        self._end_lost(connection)
        with connection.transaction() as transaction:
            self._lost = transaction.id
            mark(transaction, chunk.step, chunk.rows)
            for batch in batches:
                changed = transaction.execute_batch(batch.statement, batch.rows)
                if missed := sum(count != 1 for count in changed):
                    raise InvariantViolated(f"{chunk.step}: {missed} of {len(changed)} rows were not changed by {batch.statement}")
        self._lost = None

    def _end_lost(self, connection: Connection) -> None:
        """Rolls back what an attempt lost. Transactions outlive their connection, and the locks would block the next attempt for a
        quarter of an hour. It stays to be done until the leader has answered."""
        if self._lost is not None:
            with suppress(ServerError):  # it was committed, or ended with its leader
                connection.rollback(self._lost)
            self._lost = None


def _why_duplicate(error: DuplicateKey) -> str:
    if "UniqueIndexContraintViolationException" not in error.text:  # HerdDB's spelling
        return "but its rows exist: another client wrote them"
    return (
        "since a unique index has such a row already. SQL nodes of 0.1.0 made one over equal rows: drop it in the tablespace of the "
        "checkpoint, or change these rows, and make another Checkpoint. Or another client writes here"
    )
