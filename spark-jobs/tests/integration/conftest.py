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

from herdkeeper_e2e.scenario_by_turn import REPOSITORY, turn_of_commit
from herdkeeper_e2e.server_processes import jars_of

_HERE = Path(__file__).parent
_FIRST_SEED = 1
collect_ignore = [] if os.environ.get("AZURITE") else ["test_checkpoints_in_azure.py"]
BY_TURN = (
    ("test_sqlalchemy_suite.py",),
    ("test_admin_port_of_a_real_bookie.py", "test_connect_spark.py", "test_put_back_to_older_volumes.py"),
    (
        "test_a_guarded_stack_lives.py",
        "test_bookies_ask_for_certificates.py",
        "test_certificates_of_the_operator.py",
        "test_members_ask_one_another_for_certificates.py",
        "test_roots_belong_to_roles.py",
        "test_zookeeper_asks_for_certificates.py",
    ),
    ("test_changes_on_real_bookies.py", "test_stream_comes_too_late.py"),
    ("test_a_journal_ends_with_a_torn_record.py", "test_damaged_entries_on_real_bookies.py", "test_repairs_lock_beside_autorecovery.py"),
)
"""Files of which each commit runs one group, when pytest is told the whole folder; EVERY=1 runs all."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of these tests."""
    parser.addoption("--seed", type=int, help="tell the one story of this seed again")
    parser.addoption("--seeds", type=int, default=STORIES, help="how many stories to tell, from the first seed on")
    parser.addoption("--first-seed", type=int, default=_FIRST_SEED, help="the seed of the first story")


def pytest_configure(config: pytest.Config) -> None:
    """Builds what the tests start, outside of any test's time limit."""
    if not config.option.collectonly:
        for server in ("zookeeper", "bookkeeper", "herddb", "example"):
            jars_of(server)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test per seed."""
    # pytest only knows the options if this folder, or a file in it, is given.
    option = metafunc.config.getoption
    seed, first = option("seed", None), option("first_seed", _FIRST_SEED)
    seeds = [*range(first, first + option("seeds", STORIES))] if seed is None else [seed]
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", seeds, ids=[f"seed-{seed}" for seed in seeds])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks the tests of this folder, and leaves out those whose turn it is not."""
    here = [item for item in items if _HERE in item.path.parents]
    for item in here:
        item.add_marker(pytest.mark.integration)
    others = _others_turn(config)
    left_out = [item for item in here if item.path.name in others]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_report_header(config: pytest.Config) -> str:
    """Which files have their turn, as `make test` repeats it at its end."""
    return f"scenario: {' '.join(_turn())} of spark-jobs/tests/integration" if _others_turn(config) else ""


def _others_turn(config: pytest.Config) -> frozenset[str]:
    """The files that this run leaves out."""
    whole_folder = any(Path(argument).resolve() == _HERE for argument in config.args)
    if not whole_folder or os.environ.get("EVERY"):
        return frozenset()
    return frozenset(name for group in BY_TURN for name in group) - frozenset(_turn())


def _turn() -> tuple[str, ...]:
    return BY_TURN[turn_of_commit(REPOSITORY) % len(BY_TURN)]


@pytest.fixture(scope="session")
def database() -> Iterator[Database]:
    """A SQL node whose log is on a bookie."""
    assert "JAVA_HOME" in os.environ, "run this through e2e/bootstrap/run.sh"
    with running_database() as running:
        yield running


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for all integration tests."""
    with spark_of_tests(Path(__file__).parent) as session:
        yield session
