"""Folds a log in executors, one of which dies after it has written a file. A separate program, since a process has only one Spark.

Arguments: the folder to write into, and the number of keys. The log has three changes per key, in four parts. Prints as JSON what was
written, and the existing files.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from herdkeeper.codecs.herddb.log_entry import LogEntry, LogEntryType, encode_log_entry
from herdkeeper.codecs.herddb.record import encode_row
from herdkeeper.codecs.herddb.table import Column, ColumnType, TableDefinition, encode_table
from herdkeeper_jobs.checkpoint.attempts import Attempt
from herdkeeper_jobs.checkpoint.data_files import write_tables
from herdkeeper_jobs.encryption.parquet_folder import ParquetFolder
from herdkeeper_jobs.spark_session import AUTHENTICATED, SparkSettings, spark_configuration
from herdkeeper_jobs.spark_tasks import Batches, RowsInTasks
from herdkeeper_jobs.wal.decode import decode_batches
from herdkeeper_jobs.wal.fold import last_changes, place_changes
from herdkeeper_jobs.wal.outline import log_outline, log_timeline
from herdkeeper_jobs.wal.task_log import TaskLog

PARTS, PARTITIONS, ROUNDS = 4, 4, 3
COLUMNS = (Column("id", ColumnType.LONG, 0, nullable=False), Column("note", ColumnType.STRING, 1))
TABLE = TableDefinition("shop", "orders", "00000000000000000000000000000001", COLUMNS, ("id",))


def row(key: int, turn: int) -> tuple[bytes, bytes]:
    """The stored row of a key after a turn."""
    return encode_row(TABLE, {"id": key, "note": f"of turn {turn}"})


def part_of_log(number: int, keys: int) -> pa.RecordBatch:
    """The decoded entries of one ledger; all ledgers together change each key once per turn."""
    entries: list[LogEntry] = [LogEntry(1, LogEntryType.CREATE_TABLE, 0, TABLE.name, b"", encode_table(TABLE))] if number == 0 else []
    first, last = number * ROUNDS * keys // PARTS, (number + 1) * ROUNDS * keys // PARTS
    for change in range(first, last):
        key, value = row(change % keys, change // keys)
        entries.append(LogEntry(2 + change, LogEntryType.UPDATE, 0, TABLE.name, key, value))
    columns = {
        "ledger_id": [number] * len(entries),
        "entry_id": list(range(len(entries))),
        "payload": pa.array([encode_log_entry(entry) for entry in entries], pa.binary()),
    }
    (decoded,) = decode_batches([pa.RecordBatch.from_pydict(columns)])
    return decoded


@dataclass(frozen=True)
class UntilOneDies:
    """Rows whose first finished task dies, with its executor and all that it would send to others."""

    rows: RowsInTasks
    marker: Path

    def mapInArrow(self, func: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: StructType) -> DataFrame:  # noqa: N802
        """As in Spark."""
        marker = self.marker

        def of_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            made = list(func(batches))
            try:
                marker.touch(exist_ok=False)
            except FileExistsError:
                yield from made
                return
            os.kill(_parent_of(os.getppid()), signal.SIGKILL)
            signal.pause()

        return self.rows.mapInArrow(of_task, schema)


def _parent_of(process: int) -> int:
    """The parent of the daemon that forks task processes: its executor."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def main() -> None:
    """Folds, and prints the result."""
    folder, keys = Path(sys.argv[1]), int(sys.argv[2])
    builder = SparkSession.builder.master("local-cluster[2,1,512]").config("spark.executor.memory", "512m")
    # only the test makes the secret here
    authenticated = AUTHENTICATED | {"spark.authenticate.secret": secrets.token_hex(32)}
    for key, value in (spark_configuration(SparkSettings(), {}) | authenticated).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()

    def read(batches: Batches, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield part_of_log(number, keys).select(list(columns))

    log = TaskLog(spark.range(0, PARTS, 1, PARTS).toDF("part"), read)
    timeline = log_timeline(log, outline=log_outline(log))
    rows = UntilOneDies(last_changes(place_changes(log, timeline), PARTITIONS), folder / "one has died")
    (written,) = write_tables(rows, timeline.tables, ParquetFolder(folder), Attempt.begin(folder, "run"))
    print(
        json.dumps(
            {
                "rows": written.digest.rows,
                "digest": written.digest.hex,
                "named": sorted(file.path for file in written.files),
                "there": sorted(str(path.relative_to(folder)) for path in folder.rglob("*.parquet")),
            }
        )
    )
    spark.stop()


if __name__ == "__main__":
    main()
