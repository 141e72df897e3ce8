"""examples/spark_jdbc.py, run unchanged: Spark starts for it alone, so it takes its turn."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from real_database import Database

from herdkeeper_e2e.server_processes import CREDENTIALS, QUICK_COMPILER, jars_of

_EXAMPLE = Path(__file__).resolve().parents[3] / "examples/spark_jdbc.py"


def test_the_spark_example_reads_what_it_wrote_by_jdbc(database: Database) -> None:
    """With the jars that --packages brings: those of Maven."""
    example = jars_of("example")
    jars = [path for folder in ("client", "rest") for path in sorted((example / folder).glob("*.jar")) if "HikariCP" not in path.name]
    options = f"--conf spark.ui.enabled=false --driver-java-options {QUICK_COMPILER[0]}"
    with database.tablespace("connect_spark") as tablespace:
        settings = f"--master local[2] {options} --jars {','.join(map(str, jars))} pyspark-shell"
        secret = {
            "HERDDB_url": database.jdbc_url,
            "HERDDB_user": CREDENTIALS.username,
            "HERDDB_password": CREDENTIALS.password,
            "HERDDB_database": tablespace,
        }
        environment = {**os.environ, **secret, "PYSPARK_SUBMIT_ARGS": settings}
        run = subprocess.run([sys.executable, str(_EXAMPLE)], env=environment, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.splitlines()) == (0, ["1000 249750.0", "['UA997', 'UA999']"]), run.stderr
