"""A checkpoint's fold, whose executor dies in the middle."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from fold_with_a_lost_executor import PARTITIONS, ROUNDS, row

from herdkeeper.codecs.herddb.row_digest import digest_of_rows

_KEYS = 2_000
_PROGRAM = Path(__file__).with_name("fold_with_a_lost_executor.py")


def test_a_lost_executors_work_is_repeated_and_its_leftovers_belong_to_no_table(tmp_path: Path) -> None:
    search = os.pathsep.join([*(path for path in sys.path if path), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    environment = os.environ | {"PYTHONPATH": search, "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, str(_PROGRAM), str(tmp_path), str(_KEYS)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-4_000:]
    found = json.loads(done.stdout.splitlines()[-1])

    expected = digest_of_rows([row(key, ROUNDS - 1) for key in range(_KEYS)])
    assert (found["rows"], found["digest"]) == (expected.rows, expected.hex)
    assert (tmp_path / "one has died").exists()
    assert len(found["named"]) == PARTITIONS
    left_behind = set(found["there"]) - set(found["named"])
    assert left_behind, "it died behind a file that it had written"
    assert set(found["named"]) <= set(found["there"])
