"""The programs of docs/connect.md, each run unchanged, with the environment of examples/client.yaml, or client-jdbc.yaml."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from real_database import Database

from herdkeeper_e2e.server_processes import CREDENTIALS, QUICK_COMPILER, jars_of

_EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
_REGISTERED = (
    "from sqlalchemy.dialects import registry; registry.register('herddb.herdkeeper', 'herdkeeper.sql.sqlalchemy_dialect', 'HerdDBDialect')"
)
"""Replaces the wheel's entry point: the tests run from the checkout."""


def login(tablespace: str) -> dict[str, str]:
    return {"HERDDB_user": CREDENTIALS.username, "HERDDB_password": CREDENTIALS.password, "HERDDB_database": tablespace}


@pytest.mark.parametrize(
    ("program", "printed"),
    [
        ("connect_dbapi", ["UA1 98"]),
        ("connect_asyncio", ["UA1 98", "UA2 100"]),
        ("connect_sqlalchemy", ["UA1 2026-01-02T08:30:00+00:00 ['Ada', 'Grace']"]),
        (
            "connect_pandas",
            ["  carrier  minutes", "0      AA      NaN", "1      UA      3.5", "2 datetime64[ns, UTC]", "1 datetime64[ns, UTC]"],
        ),
    ],
)
def test_an_example_prints_what_it_should(database: Database, program: str, printed: list[str]) -> None:
    with database.tablespace(program) as tablespace:
        secret = {"HERDDB_host": database.address.host, "HERDDB_port": str(database.address.port), **login(tablespace)}
        code = f"{_REGISTERED}\nimport runpy; runpy.run_path('{_EXAMPLES / program}.py', run_name='__main__')"
        environment = {**os.environ, **secret, "PYTHONPATH": f"{os.environ['PYTHONPATH']}{os.pathsep}{_EXAMPLES}"}
        run = subprocess.run([sys.executable, "-W", "error", "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.splitlines()) == (0, printed), run.stderr


@pytest.mark.parametrize(
    ("url", "of_the_image"), [("jdbc_url", False), ("jdbc_leader_url", True)], ids=["with-mavens-jars", "with-the-images-jars"]
)
def test_the_java_example_books_once_through_its_pool(database: Database, url: str, of_the_image: bool) -> None:
    example = jars_of("example")
    folders = example / "client", jars_of("herddb") if of_the_image else example / "rest"
    command = ["java", *QUICK_COMPILER, "-Xmx256m", "-cp", os.pathsep.join(f"{folder}/*" for folder in folders), "Client"]
    with database.tablespace(url) as tablespace:
        environment = {**os.environ, **login(tablespace), "HERDDB_url": getattr(database, url)}
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert (run.returncode, run.stdout.splitlines()) == (0, ["UA1 98"]), run.stderr
        with database.connect(tablespace) as connection:
            assert connection.query("SELECT seats FROM bookings_java") == [{"seats": 2}]
