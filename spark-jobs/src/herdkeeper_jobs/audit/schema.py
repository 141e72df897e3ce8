"""The columns of the audit's tables, as Spark and as Arrow see them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from herdkeeper.domain.audit_finding import Finding
from herdkeeper_jobs.audit.holding import CopyState, Holding

HOLDINGS = StructType(
    [
        StructField("ledger_id", LongType(), nullable=False),
        StructField("segment", IntegerType(), nullable=False),
        StructField("bookie_id", StringType(), nullable=False),
        StructField("position", IntegerType(), nullable=False),
        StructField("state", StringType(), nullable=False),
        StructField("first", LongType(), nullable=False),
        StructField("last", LongType(), nullable=False),
        StructField("copies", LongType(), nullable=False),
        StructField("bytes_read", LongType(), nullable=False),
        StructField("detail", StringType(), nullable=False),
    ]
)
"""One row per run of copies in the same state (audit/holding.py)."""

FINDINGS = StructType(
    [
        StructField("run_id", StringType(), nullable=False),
        StructField("kind", StringType(), nullable=False),
        StructField("severity", StringType(), nullable=False),
        StructField("ledger_id", LongType()),
        StructField("first_entry_id", LongType()),
        StructField("last_entry_id", LongType()),
        StructField("bookie_id", StringType()),
        StructField("segment", IntegerType()),
        StructField("expected_copies", IntegerType()),
        StructField("actual_copies", IntegerType()),
        StructField("detail", StringType(), nullable=False),
        StructField("repair", StringType()),
        StructField("repair_detail", StringType(), nullable=False),
    ]
)
"""One row per finding (herdkeeper/domain/audit_finding.py), with the run that found it."""

_HOLDINGS_ARROW = to_arrow_schema(HOLDINGS)
_FINDINGS_ARROW = to_arrow_schema(FINDINGS)


def holdings_to_batch(holdings: Iterable[Holding]) -> pa.RecordBatch:
    """Rows of HOLDINGS."""
    names = [field.name for field in fields(Holding)]
    rows = [{name: getattr(holding, name) for name in names} for holding in holdings]
    return pa.RecordBatch.from_pylist(rows, schema=_HOLDINGS_ARROW)


def holdings_from_table(table: pa.Table) -> Iterator[Holding]:
    """The rows of HOLDINGS again as what they mean."""
    for row in table.to_pylist():
        yield Holding(**{**row, "state": CopyState(row["state"])})


def findings_to_table(run_id: str, findings: Iterable[Finding]) -> pa.Table:
    """Rows of FINDINGS."""
    names = [field.name for field in fields(Finding)]
    rows = [{"run_id": run_id, **{name: getattr(finding, name) for name in names}} for finding in findings]
    return pa.Table.from_pylist(rows, schema=_FINDINGS_ARROW)
