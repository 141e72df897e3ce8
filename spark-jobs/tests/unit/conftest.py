"""One Spark session for all unit tests: starting one takes seconds, and a process can have only one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import object_store_server
import pytest
import secret_keys
from pyspark.sql import SparkSession
from spark_of_tests import spark_of_tests

from herdkeeper_e2e.go_module import go_program
from herdkeeper_e2e.object_store_process import SERVER
from herdkeeper_jobs.storage.stored_path import StoredPath

# Spark's workers, too, open the store with the variables that they were started with.
object_store_server.announce()
secret_keys.announce()


def pytest_configure(config: pytest.Config) -> None:
    """Builds the object store's server before the tests, outside of any test's time limit."""
    if not config.option.collectonly:
        go_program(SERVER)


@pytest.fixture(params=["folder", "object store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> StoredPath:
    """The place of checkpoints: each test runs on every kind."""
    if request.param == "folder":
        (tmp_path / "checkpoints").mkdir()
        return tmp_path / "checkpoints"
    return object_store_server.new_bucket() / "checkpoints"


@pytest.fixture
def keys() -> Iterator[secret_keys.MountedSecret]:
    """A Secret with keys, initially empty, as mounted into each process of a job."""
    yield from secret_keys.mounted()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for all unit tests."""
    with spark_of_tests(Path(__file__).parent) as session:
        yield session
