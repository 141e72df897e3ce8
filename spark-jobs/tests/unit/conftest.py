"""One Spark for all tests: starting it costs more than what they do with it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from herdkeeper_jobs.spark_session import SparkSettings, start_spark

_REPOSITORY = Path(__file__).parents[3]
_SOURCES = (_REPOSITORY / "operator" / "src", _REPOSITORY / "spark-jobs" / "src")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session with two cores, whose workers find the packages without an installation."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(str(path) for path in _SOURCES))
        session = start_spark("herdkeeper-tests", SparkSettings(master="local[2]"))
        yield session
        session.stop()
