"""A real Spark driver, at whose port somebody asks without the secret of its job."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path


def test_a_driver_answers_who_has_the_secret_of_its_job_and_nobody_else() -> None:
    program = Path(__file__).parent / "asked_driver.py"
    ended = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 0, ended.stderr[-3000:]
    told = json.loads(ended.stdout)
    assert told.pop("an executor of the job").startswith("127.0.0.1:")
    assert set(told) == {
        "somebody without a secret",
        "somebody with the secret of another job",
        "somebody with the older handshake",
    }
    for who, answer in told.items():
        assert answer.startswith("refused: "), f"{who}: {answer}"
        assert "Timeout" not in answer, f"{who}: {answer}"
    refused = set(re.findall(r" AuthRpcHandler .*[Ff]ailed.* for client /127\.0\.0\.1:(\d+)", ended.stderr))
    assert len(refused) == len(told), ended.stderr[-6000:]
