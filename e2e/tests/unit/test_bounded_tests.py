"""A run of tests that somebody waits for begins none after its time, and says how many it left out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from herdkeeper_e2e.bounded_tests import REASON


def outcome(folder: Path, seconds: str) -> str:
    (folder / "test_some.py").write_text("def test_one():\n    pass\n\n\ndef test_two():\n    pass\n\n\ndef test_three():\n    pass\n")
    options = ["-p", "herdkeeper_e2e.bounded_tests", "--begin-within", seconds, "-p", "no:cacheprovider", "-ra", "-c", "/dev/null"]
    command = [sys.executable, "-m", "pytest", *options, str(folder)]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.parametrize(("seconds", "told", "left_out"), [("3600", "3 passed", False), ("0", "1 passed, 2 skipped", True)])
def test_no_test_begins_after_the_time_that_was_given_but_the_first(tmp_path, monkeypatch, seconds, told, left_out):
    monkeypatch.setenv("PYTHONPATH", ":".join(sys.path))
    said = outcome(tmp_path, seconds)
    assert told in said
    assert (REASON in said) is left_out
