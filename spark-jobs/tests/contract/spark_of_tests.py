"""The Spark session of a test folder. Starting one takes seconds, and a process can have only one, so a fixture keeps it for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from herdkeeper_jobs.spark_session import SparkSettings, start_spark

_ROOT = Path(__file__).parents[3]
STARTS = 5
"""How often to start a query that Spark gave up before it began."""
_NOT_BEGUN = ("Timed out while waiting for the Python worker", "Python worker failed to connect back")


def has_not_begun(failure: object) -> bool:
    """Whether Spark gave up starting its Python process: it waits ten seconds, which a busy machine may exceed."""
    return any(words in str(failure) for words in _NOT_BEGUN)


@contextmanager
def spark_of_tests(folder: Path) -> Iterator[SparkSession]:
    """A Spark session in this process with two parallel tasks, for the block. Its workers can import the modules of `folder`."""
    # Workers are separate processes and don't inherit sys.path, where pytest's `pythonpath` is.
    sources = [str(_ROOT / "operator/src"), str(_ROOT / "spark-jobs/src"), str(folder)]
    os.environ["PYTHONPATH"] = os.pathsep.join([*sources, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    session = start_spark("herdkeeper-tests", SparkSettings(master="local[2]"))
    session.conf.set("spark.sql.shuffle.partitions", "2")
    try:
        yield session
    finally:
        session.stop()
