"""Runs work on Arrow batches in Spark's tasks. Schemas are Arrow's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

Batches = Iterable[pa.RecordBatch]
Work = Callable[[Batches], Iterator[pa.RecordBatch]]


class RowsInTasks(Protocol):
    """Rows that only tasks read: a DataFrame, or a fold's result."""

    def mapInArrow(self, func: Work, schema: StructType) -> DataFrame:  # noqa: N802 - Spark's name
        """Applies `func` to each task's rows; `schema` is the result's."""
        ...


def map_in_tasks(rows: RowsInTasks, work: Work, made: pa.Schema) -> DataFrame:
    """Applies `work` to each task's rows. `made` is the result's schema."""
    return rows.mapInArrow(work, from_arrow_schema(made))


def map_numbers(
    spark: SparkSession, count: int, work: Callable[[int], Iterable[pa.RecordBatch]], made: pa.Schema, tasks: int | None = None
) -> DataFrame:
    """Calls `work` for the numbers from 0 to `count` - 1, in so many tasks (None: one per number). `made` is the result's schema."""

    def of_task(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from work(number)

    return spark.range(0, count, 1, tasks or max(1, count)).mapInArrow(of_task, from_arrow_schema(made))
