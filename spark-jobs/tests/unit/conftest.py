"""One Spark session for all unit tests: starting one takes seconds, and there can be only one in a process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from herdkeeper_jobs.spark_session import SparkSettings, start_spark

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    # Workers are processes of their own: pytest's `pythonpath` is in sys.path here, which they don't inherit.
    sources = [str(ROOT / "operator/src"), str(ROOT / "spark-jobs/src"), str(ROOT / "spark-jobs/tests/unit")]
    os.environ["PYTHONPATH"] = os.pathsep.join([*sources, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    session = start_spark("herdkeeper-tests", SparkSettings(master="local[2]"))
    session.conf.set("spark.sql.shuffle.partitions", "2")
    yield session
    session.stop()
