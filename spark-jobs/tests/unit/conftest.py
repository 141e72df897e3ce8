"""One Spark session for all unit tests: starting one takes seconds, and there can be only one in a process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import object_store_server
import played_web_hdfs
import pytest
import secret_keys
from pyspark.sql import SparkSession

from herdkeeper_e2e.object_store_process import server_program
from herdkeeper_jobs.spark_session import SparkSettings, start_spark
from herdkeeper_jobs.storage.stored_path import StoredPath

ROOT = Path(__file__).parents[3]
# Spark's workers, too, open the store and the file system with the variables that they were started with.
object_store_server.announce()
played_web_hdfs.announce()
secret_keys.announce()


def pytest_configure(config: pytest.Config) -> None:
    """The object store's server is made before the tests, while no test's time runs."""
    if not config.option.collectonly:
        server_program()


@pytest.fixture(params=["folder", "object store", "file system"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> StoredPath:
    """Where checkpoints lie; what is true of one place is true of the other."""
    if request.param == "folder":
        (tmp_path / "checkpoints").mkdir()
        return tmp_path / "checkpoints"
    if request.param == "file system":
        return played_web_hdfs.new_folder() / "checkpoints"
    return object_store_server.new_bucket() / "checkpoints"


@pytest.fixture
def keys() -> Iterator[secret_keys.MountedSecret]:
    """A Secret with keys, empty at first, as it is mounted into each process of a job."""
    yield from secret_keys.mounted()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    # Workers are processes of their own: pytest's `pythonpath` is in sys.path here, which they don't inherit.
    sources = [str(ROOT / "operator/src"), str(ROOT / "spark-jobs/src"), str(ROOT / "spark-jobs/tests/unit")]
    os.environ["PYTHONPATH"] = os.pathsep.join([*sources, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    session = start_spark("herdkeeper-tests", SparkSettings(master="local[2]"))
    session.conf.set("spark.sql.shuffle.partitions", "2")
    yield session
    session.stop()
