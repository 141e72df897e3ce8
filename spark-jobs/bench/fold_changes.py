"""Folds a log's changes into the tables at its end, from Parquet to zstd Parquet: a checkpoint's own fold, compared with DuckDB.

Both read the same files: N changes to K keys in log order. Half of them are in interleaved transactions; some are rolled back, and the last
ones stay open. The job writes a checkpoint's files: typed columns, hashed and fsynced, and the digest of the stored rows. DuckDB has less
to do. It orders changes by one number, which suffices for this log, and finds each COMMIT by a join. It checks nothing, and writes keys and
values as stored. A second DuckDB contender does more of the job's work. It makes typed columns, cut out at fixed places since all values
are equally long. It also hashes each stored row (64 bits; the job's has 128). Neither hashes or fsyncs files. Prints CPU seconds, seconds
and memory. Spark's start counts, and is also shown alone. It is the JVM, the task processes and the fold of an empty table, the same for
any log.

With --executors the job also runs as with a k8s:// master: tasks in two executor JVMs, with all exchange through Spark. Each of its few
partitions has several times of what a task holds. A task's process is limited to the memory shown: Spark repeats an attempt that exceeds
it, with a warning.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from class_archive import use_class_archive
from pyspark.sql import SparkSession
from spent import MEBIBYTE, Meter, report, run_contender

from herdkeeper.codecs.herddb.log_entry import LogEntryType
from herdkeeper.codecs.herddb.record import encode_row
from herdkeeper.codecs.herddb.row_digest import RowDigest
from herdkeeper.codecs.herddb.table import Column, ColumnType, TableDefinition, encode_table
from herdkeeper_jobs.checkpoint.attempts import Attempt
from herdkeeper_jobs.checkpoint.data_files import WrittenTable, write_tables
from herdkeeper_jobs.checkpoint.stored_rows import digest_of_columns
from herdkeeper_jobs.encryption.parquet_folder import ParquetFolder
from herdkeeper_jobs.spark_session import SparkSettings, spark_configuration, start_spark
from herdkeeper_jobs.wal.blocks import Blocks, blocks_of
from herdkeeper_jobs.wal.decode import LOG_SCHEMA
from herdkeeper_jobs.wal.fold import fold_partitions, last_changes, place_changes
from herdkeeper_jobs.wal.last_writer import HELD_BYTES
from herdkeeper_jobs.wal.outline import log_outline, log_timeline
from herdkeeper_jobs.wal.task_log import TaskLog

CORES, NOTE_BYTES, BATCH = 2, 48, 65_536
EXECUTOR_MEBIBYTES = 512
EXECUTORS = {"spark.executor.memory": f"{EXECUTOR_MEBIBYTES}m", "spark.executor.pyspark.memory": "1g"}
CHANGE_BYTES = 8 + 57 + 4 + 4 * 8  # key and value, table, two LSNs: sent per change
TABLE = TableDefinition(
    "shop",
    "orders",
    "00000000000000000000000000000001",
    (Column("id", ColumnType.LONG, 0, nullable=False), Column("amount", ColumnType.INTEGER, 1), Column("note", ColumnType.STRING, 2)),
    ("id",),
)
# A window of the log: a BEGIN, CHANGES changes, every second one in the transaction, and the end of the transaction two windows before.
CHANGES, WINDOW = 200, 202
WINDOWS_PER_FILE = 2_500
# LSN and order of application as one number each: no ledger of this log has 2^20 entries.
DUCKDB_FOLD = f"""
    WITH log AS (
        SELECT type, transaction_id, row_key, row_value, ledger_id << 20 | entry_id AS lsn
        FROM read_parquet($folder || '/log/*.parquet')
    ), commits AS (
        SELECT transaction_id, lsn AS applied FROM log WHERE type = {int(LogEntryType.COMMIT)}
    ), changes AS (
        SELECT row_key, row_value, coalesce(applied, lsn) << 32 | lsn AS place
        FROM (SELECT * FROM log WHERE type IN ({int(LogEntryType.UPDATE)}, {int(LogEntryType.DELETE)}))
        LEFT JOIN commits USING (transaction_id)
        WHERE transaction_id = 0 OR applied IS NOT NULL
    )
    SELECT row_key, last AS row_value FROM (SELECT row_key, arg_max(row_value, place) AS last FROM changes GROUP BY row_key)
    WHERE last <> ''::BLOB
"""
DUCKDB_COLUMNS = f"""
    SELECT row_key::BIT::BIGINT AS id, row_value[3:6]::BIT::INTEGER AS amount, decode(row_value[-{NOTE_BYTES}:]) AS note FROM folded
"""
DUCKDB_HASH = "SELECT sum(hash(row_key, row_value)::HUGEINT) FROM folded"
DUCKDB_WRITE = "COPY ({}) TO $output (FORMAT parquet, COMPRESSION zstd, PER_THREAD_OUTPUT)"


def write_files(folder: Path, changes: int, keys: int) -> None:
    """Writes the same log each time, one file per ledger. `changes` is rounded up to whole windows."""
    chance = np.random.default_rng(7)
    definition = [[1], [0], [1], [int(LogEntryType.CREATE_TABLE)], [0], [TABLE.name], [b""], [encode_table(TABLE)]]
    pq.write_table(pa.table(definition, schema=LOG_SCHEMA), folder / "log/000000.parquet")
    windows = -(-changes // CHANGES)
    for number, first in enumerate(range(0, windows, WINDOWS_PER_FILE), start=1):
        last = min(first + WINDOWS_PER_FILE, windows)
        pq.write_table(_ledger(number + 1, np.arange(first, last), keys, chance), folder / f"log/{number:06}.parquet")


def _ledger(ledger: int, windows: np.ndarray, keys: int, chance: np.random.Generator) -> pa.Table:
    shape = len(windows), WINDOW
    kind = np.full(shape, int(LogEntryType.UPDATE), np.int32)
    kind[chance.random(shape) < 0.05] = int(LogEntryType.DELETE)
    transaction = np.zeros(shape, np.int64)
    transaction[:, 1:-1:2] = windows[:, None] + 1
    kind[:, 0], transaction[:, 0] = int(LogEntryType.BEGIN), windows + 1
    kind[:, -1], transaction[:, -1] = int(LogEntryType.COMMIT), windows - 1
    kind[windows % 20 == 7, -1] = int(LogEntryType.ROLLBACK)
    kind[windows < 2, -1] = int(LogEntryType.NOOP)
    key = chance.integers(0, keys, shape).astype(">i8")
    is_change = np.zeros(shape, np.bool_)
    is_change[:, 1:-1] = True
    whole = kind.size
    columns = [
        pa.array(np.full(whole, ledger)),
        pa.array(np.arange(whole)),
        pa.array(1_700_000_000_000 + np.arange(whole)),
        pa.array(kind.ravel()),
        pa.array(np.maximum(transaction, 0).ravel()),
        pa.array(["", TABLE.name]).take(pa.array(is_change.ravel().astype(np.int64))),
        _binary(key.view(np.uint8).reshape(whole, 8), is_change.ravel()),
        _binary(_values(whole, chance), (kind == LogEntryType.UPDATE).ravel()),
    ]
    return pa.Table.from_arrays(columns, schema=LOG_SCHEMA)


def _values(rows: int, chance: np.random.Generator) -> np.ndarray:
    """HerdDB's stored values as a matrix: all are equally long."""
    _, sample = encode_row(TABLE, {"id": 1, "amount": 0, "note": "~" * NOTE_BYTES})
    values = np.tile(np.frombuffer(sample, np.uint8), (rows, 1))
    values[:, -NOTE_BYTES:] = chance.integers(ord("0"), ord("z"), (rows, NOTE_BYTES), np.uint8)
    values[:, 2:6] = chance.integers(0, 128, (rows, 4), np.uint8)
    return values


def _binary(matrix: np.ndarray, present: np.ndarray) -> pa.Array:
    """One binary value per row of the matrix; empty unless present."""
    offsets = np.concatenate([[0], np.cumsum(present * matrix.shape[1])]).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), len(matrix), [None, pa.py_buffer(offsets), pa.py_buffer(matrix[present].tobytes())])


def fold_by_job(folder: Path) -> None:
    """The job's fold."""
    _fold_by_spark(folder, lambda: start_spark("herdkeeper-bench", SparkSettings(master=f"local[{CORES}]")), None)


def fold_by_executors(folder: Path) -> None:
    """The job's fold, beyond the memory of its tasks."""

    def start() -> SparkSession:
        builder = SparkSession.builder.master(f"local-cluster[{CORES},1,{EXECUTOR_MEBIBYTES}]")
        for key, value in (spark_configuration(SparkSettings(), {}) | EXECUTORS).items():
            builder = builder.config(key, value)
        return builder.getOrCreate()

    _fold_by_spark(folder, start, 2 * CORES)


def _fold_by_spark(folder: Path, start: Callable[[], SparkSession], partitions: int | None) -> None:
    meter = Meter()
    spark = start()
    files = sorted((folder / "log").iterdir())
    with blocks_of(spark) as blocks:
        _fold(_log(spark, files[:1], blocks), folder, partitions)
        started = meter.read()
        written = _fold(_log(spark, files, blocks), folder, partitions)
    spent = meter.read()
    spark.stop()
    report(spent, start_cpu_seconds=started.cpu_seconds, rows=written[0].digest.rows, digest=written[0].digest.hex)


def _fold(log: TaskLog, folder: Path, partitions: int | None) -> list[WrittenTable]:
    """Folds as a checkpoint's job does."""
    outline = log_outline(log)
    timeline = log_timeline(log, outline=outline)
    last = last_changes(place_changes(log, timeline), partitions or fold_partitions(CORES, outline.extent.entries))
    return write_tables(last, timeline.tables, ParquetFolder(folder), Attempt.begin(folder, uuid.uuid4().hex))


def _log(spark: SparkSession, files: list[Path], blocks: Blocks) -> TaskLog:
    """The files as a log, some per task."""
    tasks = min(len(files), 4 * CORES)

    def read(batches: Iterable[pa.RecordBatch], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch.column(0).to_pylist():
                for path in files[task::tasks]:
                    # tasks use all cores, so threads within one would only wait
                    yield from pq.ParquetFile(path, memory_map=True).iter_batches(BATCH, columns=columns, use_threads=False)

    return TaskLog(spark.range(0, tasks, 1, tasks).toDF("task"), read, blocks=blocks)


def fold_by_duckdb(folder: Path) -> None:
    """The peer. Its rows are digested after the measurement."""
    output = folder / "duckdb"
    with _duckdb() as connection:
        meter = Meter()
        connection.execute(DUCKDB_WRITE.format(DUCKDB_FOLD), {"folder": str(folder), "output": str(output)})
        spent = meter.read()
    digest = RowDigest()
    for path in output.glob("*.parquet"):
        for batch in pq.ParquetFile(path).iter_batches(100_000):
            digest += digest_of_columns(*batch.columns)
    report(spent, rows=digest.rows, digest=digest.hex)


def fold_by_duckdb_with_columns(folder: Path) -> None:
    """The peer, with typed columns and a hash of each row."""
    output = folder / "duckdb-columns"
    with _duckdb() as connection:
        meter = Meter()
        connection.execute(f"CREATE TEMP TABLE folded AS {DUCKDB_FOLD}", {"folder": str(folder)})
        connection.execute(DUCKDB_WRITE.format(DUCKDB_COLUMNS), {"output": str(output)})
        connection.execute(DUCKDB_HASH).fetchall()
        spent = meter.read()
    report(spent, rows=sum(pq.ParquetFile(path).metadata.num_rows for path in output.glob("*.parquet")))


def _duckdb() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": CORES, "preserve_insertion_order": False})


CONTENDERS = {
    "DuckDB, 2 threads": fold_by_duckdb,
    "DuckDB, typed columns and hashes": fold_by_duckdb_with_columns,
    "checkpoint's fold": fold_by_job,
    "checkpoint's fold, executors": fold_by_executors,
}


def main() -> None:
    """Makes the files, runs all contenders, compares, prints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--changes", type=int, default=4_000_000, help="the target is meant for 20000000 (default: %(default)s)")
    parser.add_argument("--keys", type=int, default=1_000_000, help="the target is meant for 5000000 (default: %(default)s)")
    parser.add_argument("--executors", action="store_true", help="fold once more in executors, beyond the memory of their tasks")
    parser.add_argument("--contender", choices=CONTENDERS)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    if arguments.contender:
        CONTENDERS[arguments.contender](arguments.folder)
        return
    use_class_archive()
    names = [name for name, fold in CONTENDERS.items() if arguments.executors or fold is not fold_by_executors]
    folder = Path(tempfile.mkdtemp(prefix="herdkeeper-bench-"))
    try:
        (folder / "log").mkdir()
        write_files(folder, arguments.changes, arguments.keys)
        found = {name: run_contender(__file__, "--contender", name, "--folder", str(folder)) for name in names}
    finally:
        shutil.rmtree(folder)
    starts = {name: float(str(result.pop("start_cpu_seconds", 0.0))) for name, (_, result) in found.items()}
    results = {name: result for name, (_, result) in found.items()}
    peer, expected = found["DuckDB, 2 threads"]
    if any(expected | result != expected for result in results.values()):
        raise SystemExit(f"all must give the same: {results}")
    print(f"fold of {arguments.changes:,} changes to {arguments.keys:,} keys, Parquet to Parquet, {expected['rows']:,} rows are left")
    if arguments.executors:
        limit, size = EXECUTORS["spark.executor.pyspark.memory"], arguments.changes * CHANGE_BYTES / MEBIBYTE
        print(
            f"executors: {size:,.0f} MiB of changes in {2 * CORES} partitions; a task holds {HELD_BYTES // MEBIBYTE} MiB, may have {limit}"
        )
    for name, (spent, _) in found.items():
        cpu, wall = spent.cpu_seconds / peer.cpu_seconds, spent.wall_seconds / peer.wall_seconds
        print(
            f"{name:34} {spent.cpu_seconds:7.1f} s of CPU time ({cpu:5.2f} times DuckDB's) {spent.wall_seconds:7.1f} s ({wall:5.2f} times) "
            f"{spent.peak_bytes / MEBIBYTE:7,.0f} MiB at most; Spark's start: {starts[name]:.1f} s of CPU time"
        )


if __name__ == "__main__":
    main()
