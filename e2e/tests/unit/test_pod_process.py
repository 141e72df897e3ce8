"""What kills the processes of a pod is a script of the shell: run here, on processes of this test's own."""

from __future__ import annotations

import subprocess
import sys

from herdkeeper_e2e.pod_process import kill, processes_of

POD = {"metadata": {"uid": "6a1b-77"}}
LONG = "import signal; signal.pause()"


def test_a_process_of_another_pod_is_left_alone() -> None:
    with subprocess.Popen([sys.executable, "-c", LONG, "a-name-of-this-test"]) as process:
        found = subprocess.run(["sh", "-c", processes_of(POD, "a-name-of-this-tes[t]")], capture_output=True, text=True, check=True)
        process.kill()
    assert found.stdout == ""


def test_a_program_that_has_ended_before_is_an_error() -> None:
    ended = subprocess.run(["sh", "-c", kill(POD, "no[ ]such[ ]program")], capture_output=True, check=False)
    assert ended.returncode != 0
