"""Fixtures of the tests with real servers: ZooKeeper, a bookie and a SQL node for the session, as plain processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from random_story import STORIES
from real_database import Database, running_database
from spark_of_tests import spark_of_tests

from herdkeeper_e2e.server_processes import jars_of

_FIRST_SEED = 1
collect_ignore = [] if os.environ.get("AZURITE") else ["test_checkpoints_in_azure.py"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of these tests."""
    parser.addoption("--seed", type=int, help="tell the one story of this seed again")
    parser.addoption("--seeds", type=int, default=STORIES, help="how many stories to tell, from the first seed on")
    parser.addoption("--first-seed", type=int, default=_FIRST_SEED, help="the seed of the first story")


def pytest_configure(config: pytest.Config) -> None:
    """What the tests start is made before them, while no test's time runs."""
    if not config.option.collectonly:
        for server in ("zookeeper", "bookkeeper", "herddb"):
            jars_of(server)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test a seed."""
    # pytest knows the options only when it is told this folder, or a file in it.
    option = metafunc.config.getoption
    seed, first = option("seed", None), option("first_seed", _FIRST_SEED)
    seeds = [*range(first, first + option("seeds", STORIES))] if seed is None else [seed]
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", seeds, ids=[f"seed-{seed}" for seed in seeds])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever lies in this folder needs servers."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.integration)


@pytest.fixture(scope="session")
def database() -> Iterator[Database]:
    """A SQL node whose log is on a bookie."""
    assert "JAVA_HOME" in os.environ, "run this through e2e/bootstrap/run.sh"
    with running_database() as running:
        yield running


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One for all of these tests."""
    with spark_of_tests(Path(__file__).parent) as session:
        yield session
