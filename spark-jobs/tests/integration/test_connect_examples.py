"""The programs of docs/connect.md, each run unchanged, with the environment of examples/client.yaml, or client-jdbc.yaml."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
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


def test_csv_as_postgresql_writes_it_is_loaded_with_the_types_of_the_columns_and_again_without_a_second_copy(database: Database) -> None:
    written = r"""id,Name,area,capital,since,founded,flag
1,Vienna,414.8,t,1221-10-18 00:00:00+00,1221-10-18,\x0aff
2,"Graz, ""the second""
line",127.5,f,2026-01-02 07:30:00.5+00,\N,\N
3,,\N,\N,\N,\N,\N
"""
    with database.tablespace("loaded") as tablespace, database.connect(tablespace) as connection:
        secret = {"HERDDB_host": database.address.host, "HERDDB_port": str(database.address.port), **login(tablespace)}
        environment = {**os.environ, **secret, "PYTHONPATH": f"{os.environ['PYTHONPATH']}{os.pathsep}{_EXAMPLES}"}

        def loaded(text: str) -> tuple[int, str]:
            command = [sys.executable, "-W", "error", str(_EXAMPLES / "load_csv.py"), "cities"]
            run = subprocess.run(command, env=environment, input=text, capture_output=True, text=True, check=False)
            return run.returncode, run.stdout + run.stderr

        columns = "id int PRIMARY KEY, name string not null, area double, capital boolean, since timestamp, founded timestamp, flag blob"
        connection.execute(f"CREATE TABLE cities ({columns})")
        for _ in range(2):
            assert loaded(written) == (0, "3 rows were read; cities has 3\n")
        day, second = datetime(1221, 10, 18, tzinfo=UTC), datetime(2026, 1, 2, 7, 30, 0, 500_000, tzinfo=UTC)
        assert [tuple(row.values()) for row in connection.query("SELECT * FROM cities ORDER BY id")] == [
            (1, "Vienna", 414.8, True, day, day, b"\n\xff"),
            (2, 'Graz, "the second"\nline', 127.5, False, second, None, None),
            (3, "", None, None, None, None, None),
        ]
        status, said = loaded("id,name\n4,Linz\nfive,Wels\n")
        assert (status, said.startswith("row 3, ['five', 'Wels']: ")) == (1, True)
        status, said = loaded("id,town\n4,Linz\n")
        assert (status, said.startswith("the first line has the columns ['id', 'town'], and the table cities has ")) == (1, True)


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
