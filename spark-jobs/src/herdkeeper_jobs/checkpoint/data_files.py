"""Writes a checkpoint's Parquet files in tasks, and reads them again in tasks.

A file name has its task and a token of the attempt. Files are created exclusively, hashed while written, and durable before the task
reports them. Files that no manifest names are garbage, never data.

Typed columns reproduce a row's stored bytes, unless the row was stored before its table was altered, or has a text that is not UTF-8. A
second file keeps what was stored of such rows. So a checkpoint made from this one has the same rows and digests as HerdDB.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import Row, SparkSession
from xxhash import xxh3_128

from herdkeeper.codecs.herddb.record import RowDecoder, RowEncoder
from herdkeeper.codecs.herddb.row_digest import RowDigest
from herdkeeper.codecs.herddb.table import ColumnType, TableDefinition
from herdkeeper_jobs.checkpoint.arrow_table import arrow_schema, rows_of
from herdkeeper_jobs.checkpoint.attempts import Attempt
from herdkeeper_jobs.checkpoint.file_check import faults_in_tasks, file_fault
from herdkeeper_jobs.checkpoint.removal import remove_uncommitted
from herdkeeper_jobs.checkpoint.stored_rows import by_table, decode_columns, digest_of_columns
from herdkeeper_jobs.encryption.parquet_folder import ParquetFolder, batches_in
from herdkeeper_jobs.errors import InvariantViolated
from herdkeeper_jobs.manifests.manifest import ManifestFile
from herdkeeper_jobs.spark_tasks import Batches, RowsInTasks, map_in_tasks
from herdkeeper_jobs.storage.object_path import PART_BYTES, ObjectPath
from herdkeeper_jobs.storage.stored_path import NewFile, StoredPath, new_file, sync_folder

_ROWS_PER_GROUP = 50_000
_HELD_BYTES = 32 * 1024 * 1024
"""Rows that a task holds, over all its tables, before it writes a row group. A reader of the group holds as much."""
_UPLOADED_BYTES = 64 * 1024 * 1024
"""What a task's open files may hold in an object store, over all its tables: each holds a part that is not full yet."""
_SAMPLED_VALUES, _FEWEST_VALUES, _MOST_DISTINCT = 16_384, 100, 0.75
_ROWS_READ_AT_ONCE = 1_000
"""Rows that a re-read holds decoded: rows may have some kilobytes each, and tasks share a pod."""
_FOLDER_NAME = re.compile(r"[\w-][\w.-]{0,59}")
"""At most 240 bytes: a volume takes 255."""
_FILE_NAMES, _FILE_TYPES = ("path", "rows", "size", "hash"), (pa.string(), pa.int64(), pa.int64(), pa.string())
_RESULT_SCHEMA = pa.schema(
    [
        ("table_index", pa.int32()),
        *zip(_FILE_NAMES, _FILE_TYPES, strict=True),
        ("digest", pa.string()),
        *((f"older_{name}", kind) for name, kind in zip(_FILE_NAMES, _FILE_TYPES, strict=True)),
        ("not_null", pa.list_(pa.string())),
        ("invalid_text", pa.list_(pa.string())),
    ]
)
OLDER_FORMS_SCHEMA = pa.schema(
    [pa.field("row", pa.int64(), nullable=False), pa.field("value", pa.binary(), nullable=False), pa.field("key", pa.binary())]
)
"""A row's number in the data file, from 0 ascending, its stored value, and its stored key if the columns don't give it."""
_REPLACED = "\ufffd"
"""Stands in a decoded text for bytes that are not UTF-8."""


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """The files of one table, and the digest of the stored rows in them."""

    digest: RowDigest
    files: tuple[ManifestFile, ...]
    nulls_in: frozenset[str] = frozenset()
    """Columns declared NOT NULL that hold a NULL nevertheless."""
    invalid_text_in: frozenset[str] = frozenset()
    """Columns with a text that is not UTF-8, which clients other than Java's can write."""


def folder_of(table: TableDefinition) -> str:
    """The name of a table's folder in that of a run: the table's own if that is a short folder name, else made of its uuid.

    HerdDB takes any text for a name, also one that leads out of the folder, or that is too long for a volume.
    """
    return table.name if _FOLDER_NAME.fullmatch(table.name) else f"~{table.uuid}"


def write_tables(
    rows: RowsInTasks, tables: tuple[TableDefinition, ...], folder: ParquetFolder, attempt: Attempt, altered: frozenset[str] = frozenset()
) -> list[WrittenTable]:
    """Writes rows (table_index, row_key, row_value) to files of an attempt, in one folder per table of its run. `altered`: uuids of tables
    that may have rows in an older form.

    Returns:
        The written files by table, in the order of `tables`; a table without rows has none. If a task fails, those of the others are
        removed: on a volume without room they would take what is left until somebody deletes the run.
    """
    run_id, token = attempt.run_id, attempt.token

    def write(batches: Batches) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        task = 0 if context is None else context.partitionId()
        attempt = 0 if context is None else context.attemptNumber()

        def open_table(position: int) -> _TableWriter:
            table, name = tables[position], f"p-{task:05d}-{attempt}-{token}{uuid.uuid4().hex[:8]}.parquet"
            return _TableWriter(table, folder, f"data/{run_id}/{folder_of(table)}/{name}", keeps_older_forms=table.uuid in altered)

        return _write_task(batches, open_table)

    found: list[list[Row]] = [[] for _ in tables]
    attempt.hands_out_tasks()
    try:
        for row in map_in_tasks(rows, write, _RESULT_SCHEMA).collect():
            found[row["table_index"]].append(row)
    except Exception:
        with contextlib.suppress(OSError):
            remove_uncommitted(attempt.files)  # other tasks may still write, so the note stays
        raise
    written = []
    for of_table in found:
        mine = sorted(of_table, key=lambda row: str(row["path"]))
        digest = sum((RowDigest.parse(row["rows"], row["digest"]) for row in mine), RowDigest())
        nulls, invalid_texts = (frozenset(name for row in mine for name in row[found_in]) for found_in in ("not_null", "invalid_text"))
        written.append(WrittenTable(digest, tuple(_data_file(row) for row in mine), nulls, invalid_texts))
    return written


def _data_file(row: Row) -> ManifestFile:
    older = None if row["older_path"] is None else ManifestFile(**{name: row[f"older_{name}"] for name in _FILE_NAMES})
    return ManifestFile(**{name: row[name] for name in _FILE_NAMES}, older_forms=older)


def verify_files(spark: SparkSession, tables: Iterable[tuple[TableDefinition, WrittenTable]], folder: ParquetFolder) -> None:
    """Reads every file again in tasks, some thousand rows at a time: checks its bytes against the writer's hash, and decodes all rows and
    columns.

    Raises:
        InvariantViolated: names the first file that differs, and how.
    """
    checks: list[tuple[ManifestFile, pa.Schema]] = []
    for table, written in tables:
        for file in written.files:
            checks.append((file, arrow_schema(table)))
            if file.older_forms is not None:
                checks.append((file.older_forms, OLDER_FORMS_SCHEMA))
    for file, _ in checks:
        path = folder / file.path
        if isinstance(path, Path) and not path.is_file():
            raise InvariantViolated(
                f"{path} was written in a task and is missing in the driver: mount the same volume in all pods of the job"
            )
    if faults := faults_in_tasks(spark, len(checks), lambda number: content_fault(folder, *checks[number])):
        raise InvariantViolated(faults[0])


def content_fault(folder: ParquetFolder, file: ManifestFile, schema: pa.Schema) -> str:
    """Returns the fault of a file's bytes or decoded content, empty if it is as written. Raises OSError and KeyUnusable if it can't be
    read."""
    path = folder / file.path
    if fault := file_fault(folder, file):
        return fault
    try:
        with folder.parquet_file(file.path) as content:
            found = content.schema_arrow
            rows = sum(batch.num_rows for batch in batches_in(content, _ROWS_READ_AT_ONCE))
    except InvariantViolated as error:
        return str(error)
    except pa.ArrowInvalid as error:
        return f"{path} can't be decoded: {error}"
    return "" if rows == file.rows and found == schema else f"{path}: {rows} rows with {found.names} instead of {file.rows} rows as written"


def sync_folders(folder: StoredPath, run_id: str, base: StoredPath) -> None:
    """Makes file names durable: fsyncs every folder of a run and those above up to `base`. Object stores need none of it."""
    if not isinstance(folder, Path) or not isinstance(base, Path):
        return
    run = folder / "data" / run_id
    folders = [path for path in run.rglob("*") if path.is_dir()] if run.exists() else []
    for path in (*folders, run, folder / "data", folder, folder.parent, base):
        if path.is_dir():
            sync_folder(path)


class _HashingStream:
    """A file that hashes what is written to it, for a later re-read."""

    def __init__(self, stream: NewFile) -> None:
        self._stream = stream
        self._hash = xxh3_128()
        self.size = 0
        self.closed = False

    def write(self, data: bytes) -> int:
        self._hash.update(data)
        self.size += len(data)
        return self._stream.write(data)

    def flush(self) -> None:
        """Does nothing: no reader opens the file before it is closed."""

    def tell(self) -> int:
        return self.size

    def close(self) -> None:
        if not self.closed:
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


class NewParquetFile:
    """A Parquet file that is being written; `path` is relative to the folder."""

    def __init__(self, folder: ParquetFolder, path: str, schema: pa.Schema) -> None:
        self.path = path
        self.rows = 0
        self._folder = folder
        self._stream = _HashingStream(new_file(folder / path))
        self._sink = pa.PythonFile(cast("IO[bytes]", self._stream), mode="w")
        self._schema = schema
        self._writer: pq.ParquetWriter | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Writes rows of the file's schema. The first batch decides which columns get dictionaries."""
        self._opened(batch).write_batch(batch)
        self.rows += batch.num_rows

    @property
    def uploaded_bytes(self) -> int:
        """The most that an object store's writer holds of it."""
        return min(self._stream.size, PART_BYTES) if isinstance(self._folder.place, ObjectPath) else 0

    def finish(self) -> ManifestFile:
        """Makes the file durable and describes it."""
        self._opened(None).close()
        self._sink.close()
        self._stream.close()
        return ManifestFile(path=self.path, rows=self.rows, size=self._stream.size, hash=self._stream.hexdigest())

    def _opened(self, first: pa.RecordBatch | None) -> pq.ParquetWriter:
        if self._writer is None:
            repeating = None if first is None else columns_that_repeat(first)
            self._writer = self._folder.writer(self.path, self._sink, self._schema, repeating)
        return self._writer


def columns_that_repeat(rows: pa.RecordBatch) -> list[str]:
    """Returns the Parquet paths of columns for which a dictionary may save space, judged by their first values. A dictionary of values that
    hardly repeat doubles the time and needs more room. Lists, and columns with few values, always get one."""
    found = []
    for field, column in zip(rows.schema, rows.columns, strict=True):
        sample = column.slice(0, _SAMPLED_VALUES)
        if pa.types.is_list(field.type):
            found.append(f"{field.name}.list.element")
        elif pa.types.is_null(field.type) or len(sample) < _FEWEST_VALUES or len(pc.unique(sample)) <= _MOST_DISTINCT * len(sample):
            found.append(field.name)
    return found


class _TableWriter:
    """The file of one table in one task, and its file of older forms if needed."""

    def __init__(self, table: TableDefinition, folder: ParquetFolder, path: str, *, keeps_older_forms: bool) -> None:
        self._decoder = RowDecoder(table)
        self._encoder = RowEncoder(table)
        self._keeps_older_forms = keeps_older_forms
        self._folder = folder
        self._file = NewParquetFile(folder, path, arrow_schema(table))
        self._older: NewParquetFile | None = None
        self._held: list[pa.RecordBatch] = []
        self._held_rows = 0
        self.held_bytes = 0
        self._digest = RowDigest()
        self._required = [column.name for column in table.columns if not column.nullable and column.name not in table.primary_key]
        self._keys = table.primary_key
        self._texts = [column.name for column in table.columns if column.type is ColumnType.STRING]
        self.nulls_in: set[str] = set()
        self.invalid_text_in: set[str] = set()

    def add(self, rows: pa.RecordBatch) -> None:
        self._held.append(rows)
        self._held_rows += rows.num_rows
        self.held_bytes += rows.nbytes
        if self._held_rows >= _ROWS_PER_GROUP:
            self.flush()

    @property
    def uploaded_bytes(self) -> int:
        return self._file.uploaded_bytes + (0 if self._older is None else self._older.uploaded_bytes)

    def finish(self) -> tuple[RowDigest, ManifestFile]:
        self.flush()
        older = None if self._older is None else self._older.finish()
        return self._digest, self._file.finish().model_copy(update={"older_forms": older})

    def flush(self) -> None:
        if self._held:
            rows = pa.concat_batches(self._held)
            keys, values = rows.column("row_key"), rows.column("row_value")
            decoded = decode_columns(self._decoder, keys, values)
            replaced = [name for name in self._texts if pc.any(pc.match_substring(decoded.column(name), _REPLACED)).as_py()]
            if self._keeps_older_forms or replaced:
                self._keep_older_forms(decoded, keys, values)
            sources = {name: keys if name in self._keys else values for name in replaced}
            self.invalid_text_in.update(name for name, stored in sources.items() if _has_invalid_text(decoded.column(name), stored))
            self.nulls_in.update(name for name in self._required if decoded.column(name).null_count)
            self._file.write(decoded)
            self._digest += digest_of_columns(keys, values)
            self._held, self._held_rows, self.held_bytes = [], 0, 0

    def _keep_older_forms(self, decoded: pa.RecordBatch, keys: pa.Array, values: pa.Array) -> None:
        encoded = (self._encoder.encode(row) for row in rows_of(decoded))
        older = [
            (number, value, None if key == now[0] else key)
            for number, key, value, now in zip(itertools.count(self._file.rows), keys.to_pylist(), values.to_pylist(), encoded)
            if (key, value) != now
        ]
        if not older:
            return
        if self._older is None:
            self._older = NewParquetFile(self._folder, f"{self._file.path.removesuffix('.parquet')}.older.parquet", OLDER_FORMS_SCHEMA)
        columns = [pa.array(column, field.type) for column, field in zip(zip(*older, strict=True), OLDER_FORMS_SCHEMA, strict=True)]
        self._older.write(pa.RecordBatch.from_arrays(columns, schema=OLDER_FORMS_SCHEMA))


def _has_invalid_text(texts: pa.Array, stored: pa.Array) -> bool:
    """Whether a decoded column has a text whose stored bytes are not UTF-8: the stored key or value lacks the decoded text."""
    rows = pc.indices_nonzero(pc.fill_null(pc.match_substring(texts, _REPLACED), False)).to_pylist()
    return any(texts[row].as_py().encode() not in stored[row].as_py() for row in rows)


def _write_task(batches: Batches, open_table: Callable[[int], _TableWriter]) -> Iterator[pa.RecordBatch]:
    writers: dict[int, _TableWriter] = {}
    written: list[dict[str, object]] = []
    for batch in batches:
        for position, rows in by_table(batch):
            if position not in writers:
                writers[position] = open_table(position)
            writers[position].add(rows)
        while sum(writer.held_bytes for writer in writers.values()) > _HELD_BYTES:
            max(writers.values(), key=lambda writer: writer.held_bytes).flush()
        while sum(writer.uploaded_bytes for writer in writers.values()) > _UPLOADED_BYTES:
            largest = max(writers, key=lambda position: writers[position].uploaded_bytes)
            written.append(_result(largest, writers.pop(largest)))  # its further rows get another file
    written += (_result(position, writer) for position, writer in writers.items())
    if written:
        yield pa.RecordBatch.from_pylist(written, schema=_RESULT_SCHEMA)


def _result(position: int, writer: _TableWriter) -> dict[str, object]:
    digest, file = writer.finish()
    older = {} if file.older_forms is None else {f"older_{name}": getattr(file.older_forms, name) for name in _FILE_NAMES}
    own = {name: getattr(file, name) for name in _FILE_NAMES}
    return {
        "table_index": position,
        "digest": digest.hex,
        "not_null": sorted(writer.nulls_in),
        "invalid_text": sorted(writer.invalid_text_in),
        **own,
        **older,
    }
