"""The Spark of a folder of tests. Starting one takes seconds, and there can be only one in a process: a fixture keeps it for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from herdkeeper_jobs.spark_session import SparkSettings, start_spark

_ROOT = Path(__file__).parents[3]
STARTS = 5
"""How often a query is started that Spark gave up before it had begun."""
_NOT_BEGUN = ("Timed out while waiting for the Python worker", "Python worker failed to connect back")


def has_not_begun(failure: object) -> bool:
    """Whether Spark gave up the start of its Python process, for which it waits ten seconds: a busy machine needs more."""
    return any(words in str(failure) for words in _NOT_BEGUN)


@contextmanager
def spark_of_tests(folder: Path) -> Iterator[SparkSession]:
    """A Spark of this process, with two tasks at once, whose workers find the modules of a folder of tests; it ends with the block."""
    # Workers are processes of their own: pytest's `pythonpath` is in sys.path here, which they don't inherit.
    sources = [str(_ROOT / "operator/src"), str(_ROOT / "spark-jobs/src"), str(folder)]
    os.environ["PYTHONPATH"] = os.pathsep.join([*sources, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    session = start_spark("herdkeeper-tests", SparkSettings(master="local[2]"))
    session.conf.set("spark.sql.shuffle.partitions", "2")
    try:
        yield session
    finally:
        session.stop()
