"""The job's own reader, decoder, timeline and fold over a tablespace's log, batch by batch in this process.

A checkpoint runs the same functions in Spark's tasks. Only Spark's transport of batches between tasks is missing here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from herdkeeper.codecs.herddb.log_entry import ROW_CHANGES, LogEntryType
from herdkeeper.codecs.herddb.record import RowDecoder
from herdkeeper.codecs.herddb.row_digest import RowDigest
from herdkeeper_jobs.archive.parts import WholeLog, live_partitions
from herdkeeper_jobs.bookkeeper.metadata import LedgerCatalog
from herdkeeper_jobs.bookkeeper.reader import read_partition
from herdkeeper_jobs.checkpoint.arrow_table import rows_of
from herdkeeper_jobs.checkpoint.stored_rows import by_table, decode_columns, digest_of_columns
from herdkeeper_jobs.log_source import open_log
from herdkeeper_jobs.wal.batch_place import BatchPlacing
from herdkeeper_jobs.wal.blocks import Blocks
from herdkeeper_jobs.wal.decode import decode_batches
from herdkeeper_jobs.wal.last_writer import from_blocks, to_blocks
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.spans import Control, ControlEntry
from herdkeeper_jobs.wal.timeline import Timeline, walk

_BUCKETS = 3
_ENDS = (LogEntryType.COMMIT, LogEntryType.ROLLBACK)
_NO_CONTROL = {*ROW_CHANGES, LogEntryType.NOOP, LogEntryType.CONSISTENCY_CHECK}


@dataclass(frozen=True)
class FoldedLog:
    """The state at a log's confirmed end. `rows`: per table of the timeline, each with one value per column; `digests`: of rows as stored.
    `transactions`: what the log has of each, by id, without using the timeline.
    """

    timeline: Timeline
    rows: list[list[tuple[Any, ...]]]
    digests: list[RowDigest]
    ledgers: int
    entries: int
    transactions: dict[int, LoggedTransaction]


@dataclass
class LoggedTransaction:
    """The ledgers in which a transaction changed rows, and the entry that ended it, if any."""

    ledgers: set[int] = field(default_factory=set)
    end: LogEntryType | None = None


def folded_log(catalog: LedgerCatalog, herd_root: str, tablespace: str, folder: Path) -> FoldedLog:
    """Read and fold a tablespace's log at least up to the end of its last closed ledger. The folder has no archive."""
    log = open_log(catalog, herd_root, tablespace)
    whole = WholeLog(log, folder, log.identity)
    parts = whole.live_up_to(log.confirmed_end())
    partitions = live_partitions(parts, log, 1)
    batches = [batch for partition in partitions for batch in decode_batches(read_partition(partition))]
    timeline = walk(Control.of(sorted(_control_entries(batches))))
    placing, blocks = BatchPlacing(timeline), Blocks()
    last = from_blocks(to_blocks((placing.place(batch) for batch in batches), _BUCKETS, blocks), blocks)
    rows: list[list[tuple[Any, ...]]] = [[] for _ in timeline.tables]
    digests = [RowDigest()] * len(timeline.tables)
    decoders = [RowDecoder(table) for table in timeline.tables]
    for batch in last:
        for table, part in by_table(batch):
            keys, values = part.column("row_key"), part.column("row_value")
            rows[table] += rows_of(decode_columns(decoders[table], keys, values))
            digests[table] += digest_of_columns(keys, values)
    return FoldedLog(timeline, rows, digests, len(parts.live), sum(batch.num_rows for batch in batches), _transactions(batches))


def _transactions(batches: Iterable[pa.RecordBatch]) -> dict[int, LoggedTransaction]:
    found: dict[int, LoggedTransaction] = defaultdict(LoggedTransaction)
    names = ("ledger_id", "type", "transaction_id")
    for batch in batches:
        for ledger, kind, transaction in zip(*(batch.column(name).to_pylist() for name in names), strict=True):
            if transaction > 0 and kind in ROW_CHANGES:
                found[transaction].ledgers.add(ledger)
            elif kind in _ENDS:
                found[transaction].end = LogEntryType(kind)
    return dict(found)


def _control_entries(batches: Iterable[pa.RecordBatch]) -> Iterator[ControlEntry]:
    names = ("ledger_id", "entry_id", "type", "transaction_id", "table_name", "row_value")
    for batch in batches:
        for ledger, entry, kind, *rest in zip(*(batch.column(name).to_pylist() for name in names), strict=True):
            if kind not in _NO_CONTROL:
                yield ControlEntry(Lsn(ledger, entry), LogEntryType(kind), *rest)
