"""The columns of the audit's tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from enum import Enum
from typing import Any

import pyarrow as pa

from herdkeeper_jobs.copies.holding import CopyState, Holding

HOLDINGS_ARROW = pa.schema(
    [
        pa.field("ledger_id", pa.int64(), nullable=False),
        pa.field("segment", pa.int32(), nullable=False),
        pa.field("bookie_id", pa.string(), nullable=False),
        pa.field("position", pa.int32(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("first", pa.int64(), nullable=False),
        pa.field("last", pa.int64(), nullable=False),
        pa.field("copies", pa.int64(), nullable=False),
        pa.field("bytes_read", pa.int64(), nullable=False),
        pa.field("detail", pa.string(), nullable=False),
        pa.field("content", pa.list_(pa.field("element", pa.int64(), nullable=False)), nullable=False),
        pa.field("length_before", pa.int64()),
        pa.field("length_after", pa.int64()),
    ]
)
"""One row per run of copies in the same state (copies/holding.py)."""

FINDINGS_ARROW = pa.schema(
    [
        pa.field("run_id", pa.string(), nullable=False),
        pa.field("attempt", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("severity", pa.string(), nullable=False),
        pa.field("ledger_id", pa.int64()),
        pa.field("first_entry_id", pa.int64()),
        pa.field("last_entry_id", pa.int64()),
        pa.field("bookie_id", pa.string()),
        pa.field("segment", pa.int32()),
        pa.field("expected_copies", pa.int32()),
        pa.field("actual_copies", pa.int32()),
        pa.field("detail", pa.string(), nullable=False),
        pa.field("repair", pa.string()),
        pa.field("repair_detail", pa.string(), nullable=False),
    ]
)
"""One row per finding (herdkeeper/protocol/audit_finding.py), with the run that found it."""

BOOKIES_ARROW = pa.schema(
    [
        pa.field("run_id", pa.string(), nullable=False),
        pa.field("attempt", pa.string(), nullable=False),
        pa.field("bookie_id", pa.string(), nullable=False),
        pa.field("rack", pa.string()),
        *(pa.field(name, pa.int64(), nullable=False) for name in ("ledgers", "bytes_read", "copies_verified", "copies_unread")),
        *(pa.field(name, pa.int64(), nullable=False) for name in ("copies_missing", "copies_damaged", "copies_unknown")),
    ]
)
"""One row per bookie and run (audit/bookie_health.py)."""

_COUNTS = (
    *("ledgers", "open_ledgers", "entries", "copies_expected", "copies_verified", "copies_unread", "copies_unknown", "bytes_read"),
    *("critical", "under_replicated", "at_risk", "pending", "unknown", "low", "copies_repaired", "not_repaired", "copies_repairable"),
)
RUNS_ARROW = pa.schema(
    [
        pa.field("run_id", pa.string(), nullable=False),
        pa.field("attempt", pa.string(), nullable=False),
        pa.field("instance_id", pa.string(), nullable=False),
        pa.field("ledgers_root", pa.string(), nullable=False),
        pa.field("finished_at", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("duration_seconds", pa.float64(), nullable=False),
        pa.field("depth", pa.string(), nullable=False),
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("message", pa.string(), nullable=False),
        *(pa.field(name, pa.int64(), nullable=False) for name in _COUNTS),
        pa.field("ledger_filter", pa.string()),
    ]
)
"""One row per run: its AuditSummary (herdkeeper/protocol/job_summary.py) without the findings."""


def holdings_to_batch(holdings: Iterable[Holding]) -> pa.RecordBatch:
    rows = list(holdings)
    columns = [pa.array([getattr(row, column.name) for row in rows], column.type) for column in HOLDINGS_ARROW]
    return pa.RecordBatch.from_arrays(columns, schema=HOLDINGS_ARROW)


def holdings_from_table(table: pa.Table) -> Iterator[Holding]:
    for row in table.to_pylist():
        yield Holding(**{**row, "state": CopyState(row["state"]), "content": tuple(row["content"])})


def holdings_by_ledger(table: pa.Table) -> dict[int, list[Holding]]:
    """Converts rows of HOLDINGS_ARROW to holdings by ledger id."""
    by_ledger: dict[int, list[Holding]] = {}
    for holding in holdings_from_table(table):
        by_ledger.setdefault(holding.ledger_id, []).append(holding)
    return by_ledger


def fields_of(items: Iterable[Any]) -> list[dict[str, Any]]:
    """The fields of dataclasses, with enums as text."""
    return [{field.name: _plain(getattr(item, field.name)) for field in fields(item)} for item in items]


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value
