"""One Spark session for all unit tests: starting one takes seconds, and there can be only one in a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from herdkeeper_jobs.spark_session import SparkSettings, start_spark


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = start_spark("herdkeeper-tests", SparkSettings(master="local[2]"))
    session.conf.set("spark.sql.shuffle.partitions", "2")
    yield session
    session.stop()
