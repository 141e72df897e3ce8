"""Runs an audit's tasks on Spark. Python processes of tasks import this module, so it imports nothing that only the command needs."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from itertools import islice

import pyarrow as pa
from pyspark.sql import SparkSession

from herdkeeper_jobs.audit.schema import HOLDINGS_ARROW, holdings_to_batch
from herdkeeper_jobs.copies.check import check_copies
from herdkeeper_jobs.copies.plan import AuditTask
from herdkeeper_jobs.spark_tasks import map_numbers

_ROWS_PER_BATCH = 10_000


def run_on_spark(spark: SparkSession, tasks: Sequence[AuditTask]) -> pa.Table:
    """Runs one partition per task. The tasks travel as one broadcast, since a row of the range is only a number."""
    shared = spark.sparkContext.broadcast([pickle.dumps(task) for task in tasks])

    def run(number: int) -> Iterator[pa.RecordBatch]:
        holdings = check_copies(pickle.loads(shared.value[number]))  # noqa: S301 - our own driver pickled it
        while rows := list(islice(holdings, _ROWS_PER_BATCH)):
            yield holdings_to_batch(rows)

    try:
        return map_numbers(spark, len(tasks), run, HOLDINGS_ARROW).toArrow().cast(HOLDINGS_ARROW)
    finally:
        # An audit of many ledgers runs tasks many times.
        shared.destroy()
