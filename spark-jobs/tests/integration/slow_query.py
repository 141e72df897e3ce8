"""A Spark driver whose query works on its first batch forever: `python slow_query.py OPTIONS CHECKPOINT PID_FILE`, with options as JSON.

The file has the id of Spark's JVM before the query starts, so that a test can kill it.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

from pyspark.sql import DataFrame

from herdkeeper_jobs.datasource import register
from herdkeeper_jobs.spark_session import SparkSettings, start_spark


def work(batch: DataFrame, _: int) -> None:
    """Never returns."""
    batch.collect()
    threading.Event().wait()


def main() -> None:
    """Ends when Spark does."""
    options, progress, pid_file = json.loads(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    spark = start_spark("slow-query", SparkSettings(master="local[1]"))
    register(spark)
    pid_file.write_text(str(spark.sparkContext._gateway.proc.pid))  # type: ignore[union-attr]
    stream = spark.readStream.format("bookkeeper").options(**options).load()
    stream.writeStream.foreachBatch(work).option("checkpointLocation", progress).start().awaitTermination()


if __name__ == "__main__":
    main()
