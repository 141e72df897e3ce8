"""Decodes log entries from payloads to columns. Runs in tasks, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from herdkeeper.codecs.herddb.log_entry import LogEntry, decode_log_entry
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper_jobs.wal.batch_decode import decode_common_entries

LOG_SCHEMA = pa.schema(
    [
        pa.field("ledger_id", pa.int64(), nullable=False),
        pa.field("entry_id", pa.int64(), nullable=False),
        pa.field("timestamp", pa.int64(), nullable=False),
        pa.field("type", pa.int32(), nullable=False),
        pa.field("transaction_id", pa.int64(), nullable=False),
        pa.field("table_name", pa.string(), nullable=False),
        pa.field("row_key", pa.binary(), nullable=False),
        pa.field("row_value", pa.binary(), nullable=False),
    ]
)
"""One row per log entry; `timestamp` in milliseconds. `table_name`, `row_key` and `row_value` are empty for types without them."""


def decode_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Converts batches with ledger_id, entry_id and payload (`herdkeeper_jobs.bookkeeper.reader.ENTRY_SCHEMA`) to LOG_SCHEMA.

    Raises:
        MalformedDataError: a payload is no log entry; names the LSN.
    """
    for batch in batches:
        common = decode_common_entries(batch.column("payload"))
        columns = [common.timestamp, common.type, common.transaction_id, common.table_name, common.row_key, common.row_value]
        rest = np.flatnonzero(~common.rows)
        if len(rest):
            order = pa.array(np.argsort(np.concatenate([np.flatnonzero(common.rows), rest]), kind="stable"))
            others = decode_one_by_one(batch.take(pa.array(rest)))
            columns = [pa.concat_arrays(pair).take(order) for pair in zip(columns, others, strict=True)]
        yield pa.RecordBatch.from_arrays([batch.column("ledger_id"), batch.column("entry_id"), *columns], schema=LOG_SCHEMA)


def decode_one_by_one(batch: pa.RecordBatch) -> list[pa.Array]:
    """Decodes entries of any type to the columns of LOG_SCHEMA after the LSN. Raises MalformedDataError, naming the LSN."""
    ledgers, entries, payloads = (batch.column(name).to_pylist() for name in ("ledger_id", "entry_id", "payload"))
    decoded = [_decode(*entry) for entry in zip(ledgers, entries, payloads, strict=True)]
    return [
        pa.array([entry.timestamp_millis for entry in decoded], pa.int64()),
        pa.array([int(entry.type) for entry in decoded], pa.int32()),
        pa.array([entry.transaction_id for entry in decoded], pa.int64()),
        pa.array([entry.table for entry in decoded], pa.string()),
        pa.array([entry.key for entry in decoded], pa.binary()),
        pa.array([entry.value for entry in decoded], pa.binary()),
    ]


def _decode(ledger_id: int, entry_id: int, payload: bytes) -> LogEntry:
    try:
        return decode_log_entry(payload)
    except MalformedDataError as error:
        raise MalformedDataError(f"log entry {ledger_id},{entry_id}: {error}") from error
