"""What kills the processes of a pod is a script of the shell: run here, on processes of this test's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from herdkeeper_e2e import pod_process
from herdkeeper_e2e.pod_process import kill_once, processes_of

POD = {"metadata": {"uid": "6a1b-77"}}
LONG = "import signal; signal.pause()"


def test_a_process_of_another_pod_is_left_alone() -> None:
    with subprocess.Popen([sys.executable, "-c", LONG, "a-name-of-this-test"]) as process:
        found = subprocess.run(["sh", "-c", processes_of(POD, "a-name-of-this-tes[t]")], capture_output=True, text=True, check=True)
        process.kill()
    assert found.stdout == ""


def test_nothing_is_killed_before_the_condition_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_process, "TRIES", 3)
    ended = subprocess.run(["sh", "-c", kill_once(POD, "no[ ]such[ ]program", f"ls {tmp_path}/*.parquet 2>/dev/null")], check=False)
    assert ended.returncode == 1


def test_a_program_that_has_ended_before_is_an_error() -> None:
    ended = subprocess.run(["sh", "-c", kill_once(POD, "no[ ]such[ ]program")], capture_output=True, check=False)
    assert ended.returncode != 0
