"""The daemon from which task processes are forked."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from herdkeeper_jobs.spark_session import SparkSettings, spark_configuration
from herdkeeper_jobs.task_daemon import TASK_MODULES

_ENVIRONMENT = "spark.executorEnv."
_COUNT_THREADS = """
import os, sys
from herdkeeper_jobs.task_daemon import import_before_the_fork
import_before_the_fork(sys.argv[1])
print(len(os.listdir("/proc/self/task")))
"""
JOBS = ("archive", "audit", "checkpoint", "restore")


def test_nothing_that_is_imported_before_the_fork_starts_a_thread() -> None:
    configuration = spark_configuration(SparkSettings(), {})
    told = {key.removeprefix(_ENVIRONMENT): value for key, value in configuration.items() if key.startswith(_ENVIRONMENT)}
    modules = ",".join(["herdkeeper_jobs.datasource.data_source", *(f"herdkeeper_jobs.{job}.cli" for job in JOBS)])
    command = [sys.executable, "-c", _COUNT_THREADS, modules]
    assert subprocess.run(command, env=os.environ | told, stdout=subprocess.PIPE, text=True, check=True).stdout.split() == ["1"]


def test_a_module_that_is_missing_is_left_to_the_task_that_needs_it() -> None:
    command = [sys.executable, "-c", _COUNT_THREADS, "herdkeeper_jobs.of_another_version"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def test_tasks_begin_with_all_that_the_driver_has_imported_of_ours(spark: SparkSession) -> None:
    def found(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            names = [name for name in sys.modules if name.startswith("herdkeeper_jobs.")]
            yield pa.RecordBatch.from_pydict({"name": names, "frozen": [gc.get_freeze_count()] * len(names)})

    rows = spark.range(0, 1, 1, 1).mapInArrow(found, "name string, frozen long").collect()
    of_driver = spark.conf.get(f"{_ENVIRONMENT}{TASK_MODULES}")
    assert of_driver is not None
    assert "herdkeeper_jobs.spark_session" in of_driver
    assert set(of_driver.split(",")) <= {row["name"] for row in rows}
    assert rows[0]["frozen"] > 0, "garbage is looked for in nothing of it"
