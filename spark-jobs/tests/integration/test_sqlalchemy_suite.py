"""SQLAlchemy's own tests of a dialect, in a separate process: their plugin changes how pytest collects."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from real_database import Database

from herdkeeper_e2e.server_processes import CREDENTIALS

pytestmark = pytest.mark.timeout(1800)
_SUITE = Path(__file__).resolve().parents[3] / "sql/tests/sqlalchemy_suite"
_LEAST_PASSED = 500
"""The minimum of passed tests: a suite that skips everything proves nothing."""


def test_the_dialect_passes_sqlalchemys_suite(database: Database) -> None:
    with database.tablespace("dialect") as tablespace:
        url = f"herddb+herdkeeper://{CREDENTIALS.username}:{CREDENTIALS.password}@{database.address}/{tablespace}"
        command = [sys.executable, "-m", "pytest", "-c", "setup.cfg", "--rootdir=.", "suite.py", "-p", "no:xdist", "-q", "--dburi", url]
        run = subprocess.run(command, cwd=_SUITE, env=dict(os.environ), capture_output=True, text=True, check=False)
    end = run.stdout[-20_000:] + run.stderr[-2_000:]
    assert run.returncode == 0, end
    passed = re.search(r"(\d+) passed", end)
    assert passed is not None, end
    assert int(passed[1]) >= _LEAST_PASSED
