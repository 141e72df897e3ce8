"""Starts Spark in benchmarks as in its image: with an archive of its Java classes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from herdkeeper_jobs.spark_session import CLASS_ARCHIVE

_SCRIPT = Path(__file__).parents[2] / "e2e/bootstrap/class-archive.sh"


def use_class_archive() -> None:
    """Names the archive to all processes started from now on; makes it if missing for this Java and Spark."""
    printed = subprocess.run([str(_SCRIPT)], check=True, stdout=subprocess.PIPE, text=True).stdout
    os.environ[CLASS_ARCHIVE] = printed.strip()
