"""The table of traps in docs/traps.md has no dead link: each test that it names is there.

That a test fails when somebody walks into its trap can't be told from its name, and is not told here.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
JAVA = ROOT / "images/herddb/src/test/java/io/herdkeeper/node"
ROWS = [line for line in (ROOT / "docs/traps.md").read_text().splitlines() if re.match(r"\| \d+\. ", line)]
ROOMS = {"unit": "spark-jobs/tests/unit", "integration": "spark-jobs/tests/integration", "operator/tests/unit": "operator/tests/unit"}
_OF_A_FILE = re.compile(r"`(unit|integration|operator/tests/unit|java)/([\w.]+)`: ((?:`\w+`(?:, )?)+)")


def source(room: str, name: str) -> str:
    """The text of a file with tests."""
    if room == "java":
        (file,) = JAVA.rglob(f"{name}.java")
        return file.read_text()
    return (ROOT / ROOMS[room] / name).read_text()


def test_there_are_twelve_traps() -> None:
    assert [int(row.split(".")[0].strip("| ")) for row in ROWS] == list(range(1, 13))


@pytest.mark.parametrize("row", ROWS, ids=[row.split(".")[0].strip("| ") for row in ROWS])
def test_no_link_of_a_trap_is_dead(row: str) -> None:
    named = [(room, file, test) for room, file, tests in _OF_A_FILE.findall(row) for test in re.findall(r"`(\w+)`", tests)]
    assert named
    assert len(named) == len(re.findall(r"`\w+`", row.split(" | ")[1])), "each name stands behind its file"
    for room, file, test in named:
        declared = rf"void {test}\(" if room == "java" else rf"^def {test}\("
        assert re.search(declared, source(room, file), re.MULTILINE), f"{file} has no {test}"
