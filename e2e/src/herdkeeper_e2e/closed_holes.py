"""Runs the tests of docs/closed-holes.md against the code from before the holes were closed: each must fail there.

The old code is checked out next to this one, with the tests from when modules still had its names; later tests are taken from today. A test
that fails because a name is missing is told apart from a failed assertion. A test that passes proves nothing, and fails the run.

Usage: python -m herdkeeper_e2e.closed_holes [WORDS]   (rows that contain the words; all without)
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/closed-holes.md"
BEFORE = "866bbc2"
NAMED_ALIKE = "ffdc90a"
"""The last commit whose tests use the old code's module names."""
TESTS = ("conftest.py", "operator/tests", "spark-jobs/tests", "e2e/tests", "images/herddb/src/test")
_ROW = re.compile(r"^\| (?P<hole>[^|]+) \| `(?P<test>[^`|]+)`[^|]*\|", re.MULTILINE)
_LACKS_A_NAME = re.compile(
    r"ImportError|ModuleNotFoundError|AttributeError|unexpected keyword argument|positional arguments?|fixture '|COMPILATION ERROR"
)


class Outcome(StrEnum):
    """Result of a test on the old code."""

    FAILS = "fails"
    NEEDS_A_NEW_NAME = "needs a name that the code before lacks"
    PASSES = "PASSES"


@dataclass(frozen=True)
class Hole:
    """A row of the page: what could happen, and the test against it (a pytest id, or `path/Class.java#method`)."""

    what: str
    test: str

    @property
    def file(self) -> str:
        """The test's file, from the root of the checkout."""
        return re.split(r"::|#", self.test)[0]


def holes(page: str) -> tuple[Hole, ...]:
    """The rows of the page."""
    return tuple(Hole(row["hole"], row["test"]) for row in _ROW.finditer(page))


def outcome(code: int, output: str) -> Outcome:
    """Returns the meaning of a test's exit code and output."""
    if code == 0:
        return Outcome.PASSES
    told = "\n".join(line for line in output.splitlines() if line.startswith(("E  ", "ERROR", "FAILED", "[ERROR]")))
    return Outcome.NEEDS_A_NEW_NAME if _LACKS_A_NAME.search(told) else Outcome.FAILS


@contextmanager
def code_before() -> Iterator[Path]:
    """A checkout of the old code with later tests."""
    folder = Path(tempfile.mkdtemp(prefix="herdkeeper-before-"))
    git = ["git", "-C", str(ROOT), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", "--force", str(folder), BEFORE], check=True)
    try:
        for name in TESTS:
            source, target = ROOT / name, folder / name
            if source.is_file():
                shutil.copy(source, target)
            else:
                shutil.rmtree(target)
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "target"))
        subprocess.run(["git", "checkout", "--quiet", NAMED_ALIKE, "--", *TESTS], cwd=folder, check=True)
        yield folder
    finally:
        subprocess.run([*git, "remove", "--force", str(folder)], check=True)


def run(hole: Hole, folder: Path) -> tuple[Outcome, str]:
    """Run one test on the old code; returns the outcome and the last line that explains a failure."""
    if "#" in hole.test:
        command = ["mvn", "-B", "-ntp", "test", f"-Dtest={Path(hole.file).stem}#{hole.test.partition('#')[2]}"]
        cwd = folder / "images/herddb"
    else:
        command, cwd = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", hole.test], folder
    paths = os.pathsep.join(str(folder / part) for part in ("operator/src", "spark-jobs/src", "e2e/src"))
    done = subprocess.run(command, cwd=cwd, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    why = [line for line in output.splitlines() if line.startswith(("E   ", "[ERROR]   "))]
    return outcome(done.returncode, output), why[0].strip()[:160] if why else ""


def main() -> int:
    """Print a line for each row, and the counts."""
    words = " ".join(sys.argv[1:])
    counts: Counter[Outcome] = Counter()
    with code_before() as folder:
        for hole in holes(PAGE.read_text()):
            if words in f"{hole.what} {hole.test}":
                result, why = run(hole, folder)
                counts[result] += 1
                print(f"{result:8}  {hole.test}\n          {why}", flush=True)
    print("; ".join(f"{count} {name}" for name, count in counts.items()))
    return 1 if counts[Outcome.PASSES] else 0


if __name__ == "__main__":
    sys.exit(main())
