"""Cuts a decoded log at a moment.

For a time T the cut is before the first entry stamped later than T. Stamps are not strictly ascending: many threads take them before the
append, and each leader has its own clock. So later entries may be stamped at or before T, too. They are left out: the tables never had them
without the entries in between. In return, nothing stamped later than T is ever included. Once one such entry is confirmed, the cut never
moves: the same T always gives the same LSN.

All entries count, NOOPs too. A leader stamps a NOOP every ten idle seconds, which shows on a quiet log that T has passed.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, functions

from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.task_log import TaskLog


@dataclass(frozen=True, slots=True)
class TimeCut:
    """The result for a time. If `later` is None the log has not passed it; else, if `lsn` is None, it is before the log."""

    lsn: Lsn | None
    """The last entry before `later`."""
    later: Lsn | None
    """The first entry that is stamped later."""
    left_out: int
    """Entries after `later` that are stamped at or before the time."""
    first_millis: int | None
    """Stamp of the log's first entry; None for an empty log."""
    last_millis: int | None


def cut_at_time(log: TaskLog, millis: int) -> TimeCut:
    """Cuts a log at a time, in milliseconds since the epoch."""
    entries = log.rows("ledger_id", "entry_id", "timestamp")
    position = functions.struct("ledger_id", "entry_id")
    is_later = functions.col("timestamp") > millis
    found = entries.agg(
        functions.min(functions.when(is_later, position)).alias("later"),
        functions.min_by("timestamp", position).alias("first"),
        functions.max_by("timestamp", position).alias("last"),
    ).first()
    assert found is not None
    if found["later"] is None:
        return TimeCut(None, None, 0, found["first"], found["last"])
    later = Lsn(*found["later"])
    row = entries.agg(
        functions.max(functions.when(_is_before(later), position)).alias("before"),
        functions.count(functions.when(~_is_before(later) & ~is_later, True)).alias("left_out"),
    ).first()
    assert row is not None
    return TimeCut(None if row["before"] is None else Lsn(*row["before"]), later, row["left_out"], found["first"], found["last"])


def _is_before(lsn: Lsn) -> Column:
    ledger, entry = functions.col("ledger_id"), functions.col("entry_id")
    return (ledger < lsn.ledger_id) | ((ledger == lsn.ledger_id) & (entry < lsn.entry_id))
