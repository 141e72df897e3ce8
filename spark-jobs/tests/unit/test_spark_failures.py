"""Jobs whose JVM or Python workers end early: exit code, summary and reason, as for other failures."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession, functions

from herdkeeper_jobs.audit import cli as audit
from herdkeeper_jobs.checkpoint import cli as checkpoint
from herdkeeper_jobs.restore import cli as restore
from herdkeeper_jobs.termination_message import VARIABLE

_CLUSTER = ["--zookeeper", "z:2181", "--ledgers-root", "/l"]
_TABLESPACE = ["--herd-root", "/h", "--tablespace", "t", "--run-id", "r"]


def kill_worker(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Acts like the kernel's OOM killer."""
    os.kill(os.getpid(), signal.SIGKILL)
    yield from batches


def overflow(spark: SparkSession) -> None:
    """A plan nested too deep for the JVM's stack."""
    column = functions.lit(0)
    for _ in range(2_000):
        column = -column
    spark.range(1).select(column).collect()


def lose_a_worker(spark: SparkSession) -> None:
    spark.range(1).mapInArrow(kill_worker, "id long").collect()


@pytest.mark.parametrize(
    ("job", "step", "arguments"),
    [
        (checkpoint, "_checkpoint", [*_CLUSTER, *_TABLESPACE]),
        (restore, "_restore", ["--server", "h:1", "--tablespace", "t", "--run-id", "r"]),
        (audit, "_run", [*_CLUSTER, "--run-id", "r"]),
    ],
    ids=["checkpoint", "restore", "audit"],
)
@pytest.mark.parametrize(
    ("trouble", "words"),
    [(lose_a_worker, "a task's Python process was killed, most likely since memory ran out"), (overflow, "StackOverflowError")],
)
def test_a_failure_of_the_jvm_ends_a_job_with_3_and_a_summary_that_says_why(
    job: ModuleType,
    step: str,
    arguments: list[str],
    trouble: Callable[[SparkSession], None],
    words: str,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    message = tmp_path / "said"
    monkeypatch.setenv(VARIABLE, str(message))
    monkeypatch.setenv("HERDDB_USERNAME", "u")
    monkeypatch.setenv("HERDDB_PASSWORD", "p")
    monkeypatch.setattr(job, step, lambda *_: trouble(spark))
    place = {checkpoint: ["--destination", str(tmp_path)], restore: ["--manifest", "m"], audit: []}[job]
    assert job.main([*arguments, *place]) == 3
    said = json.loads(message.read_text())
    assert said["outcome"] == "Retryable"
    assert words in said["message"]


_LOSES_ITS_JVM = """
from pyspark import SparkContext
from herdkeeper_jobs.checkpoint import cli
from herdkeeper_jobs.spark_session import SparkSettings, session_on_demand

def checkpoint(parsed, request, settings):
    with session_on_demand("dies", SparkSettings(master="local[1]")) as start:
        spark = start()
        SparkContext._gateway.proc.kill()
        spark.range(1).collect()

cli._checkpoint = checkpoint
raise SystemExit(cli.main())
"""


def test_a_job_whose_jvm_is_killed_says_so_and_ends_with_3(tmp_path: Path) -> None:
    message = tmp_path / "said"
    command = [sys.executable, "-c", _LOSES_ITS_JVM, *_CLUSTER, *_TABLESPACE, "--destination", str(tmp_path)]
    ended = subprocess.run(command, env={**os.environ, VARIABLE: str(message)}, check=False, capture_output=True, timeout=300)
    assert ended.returncode == 3, ended.stderr.decode()
    assert "Spark's JVM was killed (SIGKILL) before its work was done" in json.loads(message.read_text())["message"]
