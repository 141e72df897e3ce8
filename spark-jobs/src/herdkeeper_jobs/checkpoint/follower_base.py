"""Makes a follower's tables the base of a checkpoint, when the log has lost its first ledger and no other base exists.

The follower is held at an LSN without open transactions; only this follower waits, and a leader refuses. The rows go in stored form into
files of the run's folder at the destination. So they need no room in the driver, and tasks anywhere can read them. No manifest names these
files; they are removed with the finished checkpoint. Count and digest of each table prove that the rows arrived as the follower has them.
That the follower itself is right is proven by comparison with another follower (`run`), or by an earlier comparison.

Tables don't show when their entries were stamped, and a base for a time must hold nothing stamped later. All entries were written before
the follower was held. So their stamps exceed that time at most by a clock's lead (CLOCKS_DIFFER_MILLIS).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import assert_never

import pyarrow as pa
import structlog
from pyspark.sql import SparkSession

from herdkeeper.codecs.herddb.row_digest import RowDigest
from herdkeeper_jobs.checkpoint.attempts import Attempt
from herdkeeper_jobs.checkpoint.base import ROW_SCHEMA, Base, BaseRows, BaseTable, BaseUnusable, proven_rows
from herdkeeper_jobs.checkpoint.data_files import NewParquetFile
from herdkeeper_jobs.checkpoint.file_check import file_fault
from herdkeeper_jobs.checkpoint.follower_stream import (
    Part,
    StreamedIndex,
    StreamedPosition,
    StreamedRows,
    StreamedTable,
    StreamedTableEnd,
)
from herdkeeper_jobs.encryption.parquet_folder import ParquetFolder, batches_in
from herdkeeper_jobs.errors import InvariantViolated
from herdkeeper_jobs.manifests.manifest import ManifestBase, ManifestFile, Position
from herdkeeper_jobs.spark_tasks import map_numbers
from herdkeeper_jobs.storage.stored_path import found_below, remove_file
from herdkeeper_jobs.wal.log_state import NOBODY, LogState, StartingPoint, StateIndex, StateTable

_log = structlog.get_logger()
_FILE_BYTES = 64 * 1024 * 1024
"""Rows in one file, which one task reads."""
_GROUP_BYTES = 8 * 1024 * 1024
"""Rows held before they are written."""
_ROWS_AT_ONCE = 10_000
_PREFIX = "follower-"
CLOCKS_DIFFER_MILLIS = 10 * 60 * 1000
"""The assumed maximum by which a leader's clock, or another job's, is ahead of another leader's or this job's."""


@dataclass(frozen=True, slots=True)
class FollowerSource:
    """The follower to start from. `address`: host:port of its HTTP port. `token`: what it demands. `witness`: host:port of another follower
    to compare with, empty for none."""

    address: str
    token: str = field(repr=False)
    witness: str = ""


@dataclass(frozen=True, slots=True)
class FollowerBase(Base):
    """The tables of a follower, in files of `folder`."""

    folder: ParquetFolder
    files: tuple[ManifestFile, ...]
    attempt: Attempt
    """The attempt that wrote the files."""

    def release(self) -> None:
        for file in self.files:
            remove_file(self.folder / file.path)
        self.attempt.end()


def take_tables(parts: Iterable[Part], node: str, tablespace_uuid: str, folder: ParquetFolder, run_id: str) -> FollowerBase:
    """Writes a stream's rows to files of a run in the tablespace's folder, some megabytes at a time.

    Files of an earlier attempt are removed first. Raises InvariantViolated for the tables of another tablespace, and what the stream
    raises. No files are left then.
    """
    for left in found_below(folder.place, f"data/{run_id}/{_PREFIX}*.parquet"):
        if left.is_file():  # a table's folder may have such a name
            remove_file(left)
    stream = iter(parts)
    position, held_millis = next(stream), time.time_ns() // 1_000_000
    if not isinstance(position, StreamedPosition) or position.tablespace_uuid != tablespace_uuid:
        raise InvariantViolated(f"the follower {node} gives tables of {position}, and not of the tablespace {tablespace_uuid}")
    attempt = Attempt.begin(folder.place, run_id)
    received = _Received(folder, f"data/{run_id}/{_PREFIX}{attempt.token}")
    try:
        for part in stream:
            received.take(part)
        files = received.finish()
    except BaseException:
        received.discard()
        attempt.end()
        raise
    state = LogState(tuple(received.state_tables), tuple(sorted(received.indexes, key=lambda index: index.definition.name)))
    _log.info("tables of a follower", node=node, lsn=str(position.lsn), rows=sum(table.digest.rows for table in received.tables))
    return FollowerBase(
        start=StartingPoint(position.lsn, state),
        tables=tuple(received.tables),
        record=ManifestBase(manifest="", lsn=Position.of(position.lsn), run_id="", follower=node),
        latest_timestamp_millis=held_millis + CLOCKS_DIFFER_MILLIS,
        whole_log_at=None,  # the log was not read
        unproven_follower=node,  # nothing else has had its rows yet
        folder=folder,
        files=files,
        attempt=attempt,
    )


class _Received:
    """What has arrived of a stream."""

    def __init__(self, folder: ParquetFolder, prefix: str) -> None:
        self.state_tables: list[StateTable] = []
        self.indexes: list[StateIndex] = []
        self.tables: list[BaseTable] = []
        self._folder, self._prefix = folder, prefix
        self._table: StreamedTable | None = None
        self._paths: list[str] = []
        self._files: list[ManifestFile] = []
        self._file: NewParquetFile | None = None
        self._file_bytes = 0
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0

    def take(self, part: Part) -> None:
        match part:
            case StreamedPosition():
                raise ValueError("a stream has one position, which comes first")
            case StreamedTable(definition, _):
                self._table = part
                # Only the dropped log knew whether columns changed, so rows may have an older form.
                self.state_tables.append(StateTable(definition, altered=True))
            case StreamedIndex(definition, available):
                table = self._current.definition
                self.indexes.append(StateIndex(replace(definition, table=table.name), table.uuid, None if available else NOBODY))
            case StreamedRows():
                self._add(part)
            case StreamedTableEnd(digest):
                self._end_table(digest)
            case _:
                assert_never(part)

    @property
    def _current(self) -> StreamedTable:
        assert self._table is not None, "the stream has started a table"
        return self._table

    def _add(self, rows: StreamedRows) -> None:
        table = pa.repeat(pa.scalar(len(self.tables), pa.int32()), len(rows.keys))
        batch = pa.RecordBatch.from_arrays([table, rows.keys, rows.values], schema=ROW_SCHEMA)
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        if self._held_bytes >= _GROUP_BYTES:
            self._flush()

    def _end_table(self, digest: RowDigest) -> None:
        current = self._current
        # HerdDB counts from 1, so 1 means that no key was given.
        highest = current.next_value - 1 if current.next_value > 1 else None
        self.tables.append(BaseTable(current.definition.name, current.definition.uuid, digest, highest))

    def _flush(self) -> None:
        if not self._held:
            return
        if self._file is None:
            path = f"{self._prefix}-{len(self._paths):05d}.parquet"
            self._paths.append(path)
            self._file = NewParquetFile(self._folder, path, ROW_SCHEMA)
        self._file.write(pa.concat_batches(self._held))
        self._file_bytes += self._held_bytes
        self._held, self._held_bytes = [], 0
        if self._file_bytes >= _FILE_BYTES:
            self._close()

    def _close(self) -> None:
        if self._file is not None:
            self._files.append(self._file.finish())
            self._file, self._file_bytes = None, 0

    def finish(self) -> tuple[ManifestFile, ...]:
        """Closes the files, which are durable then."""
        self._flush()
        self._close()
        return tuple(self._files)

    def discard(self) -> None:
        for path in self._paths:
            remove_file(self._folder / path)


def load_tables(spark: SparkSession, base: FollowerBase) -> BaseRows:
    """Reads the rows back in tasks and proves them. Raises InvariantViolated if they differ from what the follower sent."""
    folder, files = base.folder, base.files

    def read(number: int) -> Iterator[pa.RecordBatch]:
        if fault := file_fault(folder, files[number]):
            raise BaseUnusable(fault)
        with folder.parquet_file(files[number].path) as content:
            for rows in batches_in(content, _ROWS_AT_ONCE):
                yield rows.cast(ROW_SCHEMA)

    try:
        return proven_rows(map_numbers(spark, len(files), read, ROW_SCHEMA), base)
    except BaseUnusable as error:
        raise InvariantViolated(
            f"the tables of the follower {base.record.follower}, as they were written to {folder.place}: {error}"
        ) from error
