"""Writes a checkpoint's Parquet files in tasks, and re-reads them on the driver.

A file is named by its task and a token of the attempt, created exclusively, hashed while it is written, and fsynced before the task tells
of it. Whatever an attempt left behind that no manifest names is garbage, never data.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame
from xxhash import xxh3_128

from herdkeeper.formats.herddb_record import RowDecoder
from herdkeeper.formats.herddb_table import TableDefinition
from herdkeeper.formats.row_digest import RowDigest, digest_of_rows
from herdkeeper_jobs.checkpoint.arrow_table import arrow_schema, decode_rows
from herdkeeper_jobs.checkpoint.errors import InvariantViolated

_ROWS_PER_GROUP = 50_000
_RESULT_COLUMNS = "table_index int, path string, rows long, size long, hash string, digest string"
_RESULT_SCHEMA = pa.schema(
    [
        ("table_index", pa.int32()),
        ("path", pa.string()),
        ("rows", pa.int64()),
        ("size", pa.int64()),
        ("hash", pa.string()),
        ("digest", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class DataFile:
    """One Parquet file. `path` is relative to the tablespace's folder; `hash` is XXH3-128 of its bytes, 32 hexadecimal digits."""

    path: str
    rows: int
    size: int
    hash: str


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """What was written of one table: its files, and the digest of the stored rows in them."""

    digest: RowDigest
    files: tuple[DataFile, ...]


def write_tables(rows: DataFrame, tables: tuple[TableDefinition, ...], folder: Path, run_id: str) -> list[WrittenTable]:
    """Writes rows (table_index, row_key, row_value) below `folder`/data/`run_id`, one table per folder.

    Returns:
        Per table, in their order, what was written; a table without rows has no files.
    """

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        task = 0 if context is None else context.partitionId()
        attempt = 0 if context is None else context.attemptNumber()
        name = f"p-{task:05d}-{attempt}-{uuid.uuid4().hex[:8]}.parquet"
        return _write_task(batches, tables, folder, lambda table: f"data/{run_id}/{table.name}/{name}")

    found = rows.mapInArrow(write, _RESULT_COLUMNS).collect()
    written = []
    for position in range(len(tables)):
        mine = sorted((row for row in found if row["table_index"] == position), key=lambda row: str(row["path"]))
        digest = sum((RowDigest.parse(row["rows"], row["digest"]) for row in mine), RowDigest())
        written.append(WrittenTable(digest, tuple(DataFile(row["path"], row["rows"], row["size"], row["hash"]) for row in mine)))
    return written


def verify_files(tables: Iterable[tuple[TableDefinition, WrittenTable]], folder: Path) -> None:
    """Re-reads every file: its bytes against the hash that the writer computed, its rows and its columns by decoding all of it.

    Raises:
        InvariantViolated: naming the file and the difference.
    """
    for table, written in tables:
        for file in written.files:
            path = folder / file.path
            hashed = xxh3_128()
            with path.open("rb") as stream:
                while block := stream.read(1 << 20):
                    hashed.update(block)
            if hashed.hexdigest() != file.hash:
                raise InvariantViolated(f"{path} has other bytes than were written: {hashed.hexdigest()} instead of {file.hash}")
            content = pq.read_table(path)
            if content.num_rows != file.rows or content.schema != arrow_schema(table):
                raise InvariantViolated(
                    f"{path}: {content.num_rows} rows with {content.schema.names} instead of {file.rows} rows as written"
                )


def sync_folders(folder: Path, run_id: str, base: Path) -> None:
    """fsyncs every folder of a run and those above it up to `base`, so that the files' names are durable too."""
    run = folder / "data" / run_id
    folders = [path for path in run.rglob("*") if path.is_dir()] if run.exists() else []
    for path in (*folders, run, folder / "data", folder, folder.parent, base):
        if path.is_dir():
            sync_folder(path)


def sync_folder(path: Path) -> None:
    """fsyncs a folder."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _HashingStream:
    """A file that hashes what is written to it, so that a re-read can prove that the disk has the same."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._hash = xxh3_128()
        self.size = 0
        self.closed = False

    def write(self, data: bytes) -> int:
        self._hash.update(data)
        self.size += len(data)
        return self._stream.write(data)

    def flush(self) -> None:
        self._stream.flush()

    def tell(self) -> int:
        return self.size

    def close(self) -> None:
        if not self.closed:
            self._stream.flush()
            os.fsync(self._stream.fileno())
            self._stream.close()
            self.closed = True

    def hexdigest(self) -> str:
        return self._hash.hexdigest()

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


class _TableWriter:
    """The file of one table in one task."""

    def __init__(self, table: TableDefinition, folder: Path, path: str) -> None:
        self._decoder = RowDecoder(table)
        self._path = path
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        self._stream = _HashingStream(target.open("xb"))
        sink = pa.PythonFile(cast("IO[bytes]", self._stream), mode="w")
        self._writer = pq.ParquetWriter(sink, arrow_schema(table), compression="zstd")
        self._sink = sink
        self._rows: list[tuple[bytes, bytes]] = []
        self._digest = RowDigest()

    def add(self, rows: list[tuple[bytes, bytes]]) -> None:
        self._rows.extend(rows)
        if len(self._rows) >= _ROWS_PER_GROUP:
            self._flush()

    def finish(self, position: int) -> tuple[int, str, int, int, str, str]:
        self._flush()
        self._writer.close()
        self._sink.close()
        self._stream.close()
        return position, self._path, self._digest.rows, self._stream.size, self._stream.hexdigest(), self._digest.hex

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_batch(decode_rows(self._decoder, self._rows))
            self._digest += digest_of_rows(self._rows)
            self._rows = []


def _write_task(
    batches: Iterable[pa.RecordBatch], tables: tuple[TableDefinition, ...], folder: Path, path_of: Callable[[TableDefinition], str]
) -> Iterator[pa.RecordBatch]:
    writers: dict[int, _TableWriter] = {}
    for batch in batches:
        grouped: dict[int, list[tuple[bytes, bytes]]] = {}
        columns = (batch.column(name).to_pylist() for name in ("table_index", "row_key", "row_value"))
        for position, key, value in zip(*columns, strict=True):
            grouped.setdefault(position, []).append((key, value))
        for position, rows in grouped.items():
            if position not in writers:
                writers[position] = _TableWriter(tables[position], folder, path_of(tables[position]))
            writers[position].add(rows)
    results = [writer.finish(position) for position, writer in writers.items()]
    if results:
        columns_ = [pa.array(column, field.type) for column, field in zip(zip(*results, strict=True), _RESULT_SCHEMA, strict=True)]
        yield pa.RecordBatch.from_arrays(columns_, schema=_RESULT_SCHEMA)
