"""Runs the tests of docs/closed-holes.md against the code from before the holes were closed: each must fail there.

A row with a finding runs on the code of the review, any other one on the commit before the one that brought its test. The test's file is
that of the commit that brought it, with the test support of the old code where the test starts with that, else with the commit's. A test
that passes proves nothing, and one that is not found says nothing: both fail the run. What stops before the test is told apart.

Usage: python -m herdkeeper_e2e.closed_holes [WORDS]   (rows with all of the words; "finding:" means those with a finding, "finding:C5" one)
"""

from __future__ import annotations

import os
import re
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
REVIEWED = "866bbc2"
ABOUT_TESTS = "\n## Tests\n"
"""From here on the page has what only tests lacked."""
NAMED_ALIKE = "ffdc90a"
"""The last commit whose tests use the reviewed code's module names. Its version counts of a test whose name the reviewed code has."""
TESTS = ("conftest.py", "operator/tests", "spark-jobs/tests", "e2e/tests", "images/herddb/src/test")
_ROW = re.compile(r"^\| (?P<hole>[^|]+) \| `(?P<test>[^`|]+)`[^|]*\|(?P<finding>[^|]*)\|$", re.MULTILINE)
_LACKS_A_NAME = re.compile(
    r"ImportError|ModuleNotFoundError|AttributeError|NameError|unexpected keyword argument|positional arguments?|Extra inputs are not"
)
_NAME_OF_A_TEST = re.compile(r"(?:No module named|cannot import name '\w+' from) '(?!herdkeeper)|fixture '\w+' not found")
_NOT_FOUND = re.compile(
    r"^ERROR: (not found|file or directory not found)|no tests ran|No tests (matching|were executed|to run)", re.MULTILINE
)
_SECTION = re.compile(r"^_+ (.+) _+$", re.MULTILINE)
_FRAME = re.compile(r"^(?!/|\.\.)(\S+\.py):\d+: in ", re.MULTILINE)
"""A line of a traceback; those of the standard library and of packages have paths that lead out of the checkout."""


class Outcome(StrEnum):
    """Result of a test on the old code; the first of these that one of its parameters has counts."""

    FAILS = "fails"
    LACKS_A_NAME = "lacks a name"
    STOPS_OUTSIDE = "stops outside of the test"
    NOT_FOUND = "NOT FOUND"
    PASSES = "PASSES"


@dataclass(frozen=True)
class Hole:
    """A row of the page: what could happen, the test against it (a pytest id, or `path/Class.java#method`), and the findings it closes."""

    what: str
    test: str
    findings: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """The test's file, from the root of the checkout."""
        return re.split(r"::|#", self.test)[0]

    @property
    def name(self) -> str:
        """The name of the test's function."""
        return re.split(r"::|#", self.test)[1].partition("[")[0]

    @property
    def declared(self) -> str:
        """The text by which the test's function begins."""
        return f"void {self.name}(" if "#" in self.test else f"def {self.name}("


def holes(page: str) -> tuple[Hole, ...]:
    """The rows of the page."""
    return tuple(Hole(row["hole"], row["test"], tuple(re.findall(r"\w+", row["finding"]))) for row in _ROW.finditer(page))


def outcome(code: int, output: str, file: str) -> Outcome:
    """Returns the meaning of a test's exit code and output; the test is in this file."""
    if _NOT_FOUND.search(output) or (code == 0 and not re.search(r"\d passed|BUILD SUCCESS", output)):
        return Outcome.NOT_FOUND
    if code == 0:
        return Outcome.PASSES
    if file.endswith(".java"):
        return _java_outcome(output, file)
    parts = _SECTION.split(output)
    found = {_section_outcome(title, text, file) for title, text in zip(parts[1::2], parts[2::2], strict=True)}
    return next((each for each in Outcome if each in found), Outcome.STOPS_OUTSIDE)


def _java_outcome(output: str, file: str) -> Outcome:
    if "COMPILATION ERROR" in output:
        return Outcome.LACKS_A_NAME if re.search(rf"{re.escape(file)}:\[\d+,\d+\]", output) else Outcome.STOPS_OUTSIDE
    return Outcome.FAILS if re.search(rf"^\[ERROR\]   {Path(file).stem}\b", output, re.MULTILINE) else Outcome.STOPS_OUTSIDE


def _section_outcome(title: str, text: str, file: str) -> Outcome:
    """What one failure of pytest (with --tb=short) means: where it was raised tells whose name is missing."""
    why = "\n".join(line for line in text.splitlines() if line.startswith("E "))
    raised_in = (_FRAME.findall(text) or [""])[-1]
    lacks_a_name = _LACKS_A_NAME.search(why) and not re.match(r"E\s+assert", why, re.IGNORECASE)
    if _NAME_OF_A_TEST.search(why) or (lacks_a_name and "/tests/" in raised_in and raised_in != file):
        return Outcome.STOPS_OUTSIDE
    if lacks_a_name and raised_in == file:
        return Outcome.LACKS_A_NAME
    return Outcome.STOPS_OUTSIDE if title.startswith("ERROR ") else Outcome.FAILS


def _git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, text=True).stdout


@contextmanager
def a_checkout() -> Iterator[Path]:
    """A second checkout, for old code."""
    folder = Path(tempfile.mkdtemp(prefix="herdkeeper-before-"))
    _git(ROOT, "worktree", "add", "--quiet", "--detach", "--force", str(folder), REVIEWED)
    try:
        yield folder
    finally:
        _git(ROOT, "worktree", "remove", "--force", str(folder))


def brought_by(hole: Hole) -> str:
    """The commit that brought the test by this name, or what it asserts, where an earlier test has the name."""
    in_reviewed = subprocess.run(["git", "grep", "-qF", hole.declared, REVIEWED, "--", *TESTS], cwd=ROOT, check=False).returncode == 0
    if in_reviewed and hole.findings:
        return NAMED_ALIKE
    added = (hole.name, str(PAGE)) if in_reviewed else (hole.declared, *TESTS, "images")
    commits = _git(ROOT, "log", "--reverse", "--topo-order", "--format=%h", f"{REVIEWED}..HEAD", f"-S{added[0]}", "--", *added[1:])
    return (commits.split() or ["HEAD"])[0]


def run(hole: Hole, folder: Path) -> tuple[Outcome, str]:
    """Run one test on the old code; returns the outcome and the last line that explains a failure."""
    commit = brought_by(hole)
    found = subprocess.run(
        ["git", "grep", "-lF", hole.declared, commit, "--", *TESTS, "images"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if not found.stdout:
        return Outcome.NOT_FOUND, f"not in {commit}"
    files = [line.partition(":")[2] for line in found.stdout.splitlines()]
    file = min(files, key=lambda name: Path(name).name != Path(hole.file).name)
    before = REVIEWED if hole.findings else f"{commit}^"
    added = _git(ROOT, "diff", "--name-only", "--diff-filter=A", "--no-renames", before, commit, "--", *TESTS).splitlines()
    support = [name for name in added if not name.endswith("Test.java")]
    results = []
    for tests in (support, TESTS):
        _git(folder, "checkout", "--quiet", "--force", "--detach", before)
        _git(folder, "clean", "--quiet", "-fd")
        _git(folder, "checkout", "--quiet", commit, "--", *{name for name in (*tests, file) if _git(ROOT, "ls-tree", commit, name)})
        results.append(_run(hole.test.replace(hole.file, file), file, folder))
        if results[-1][0] in (Outcome.FAILS, Outcome.PASSES):
            return results[-1]
    return min(results, key=lambda result: list(Outcome).index(result[0]))


def _run(test: str, file: str, folder: Path) -> tuple[Outcome, str]:
    if "#" in test:
        command = ["mvn", "-B", "-ntp", "test", f"-Dtest={Path(file).stem}#{test.partition('#')[2]}"]
        cwd = folder / file.partition("/src/")[0]
    else:
        command, cwd = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", test], folder
    paths = os.pathsep.join(str(folder / part) for part in ("operator/src", "spark-jobs/src", "e2e/src"))
    done = subprocess.run(command, cwd=cwd, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    why = [line for line in output.splitlines() if line.startswith(("E   ", "[ERROR]   "))]
    return outcome(done.returncode, output, file), why[0].strip()[:160] if why else ""


def main() -> int:
    """Print a line for each row, and the counts."""
    counts: Counter[Outcome] = Counter()
    with a_checkout() as folder:
        for hole in holes(PAGE.read_text().partition(ABOUT_TESTS)[0]):
            row = " ".join((hole.what, hole.test, *(f"finding:{number}" for number in hole.findings)))
            if all(word in row for word in sys.argv[1:]):
                result, why = run(hole, folder)
                counts[result] += 1
                print(f"{result:8}  {hole.test}\n          {why}", flush=True)
    print("; ".join(f"{count} {name}" for name, count in counts.items()))
    return 1 if counts[Outcome.PASSES] or counts[Outcome.NOT_FOUND] else 0


if __name__ == "__main__":
    sys.exit(main())
