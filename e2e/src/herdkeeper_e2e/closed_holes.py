"""Runs the tests of docs/closed-holes.md against the code from before the holes were closed: each must fail there.

A row with a finding runs on the code of the review. Any other one runs on the commit before the one that brought its test. Where the test
came later, it is the one before the commit that the row is "closed by". The test's file is that of the commit that brought it. Its test
support is that of the old code where the test starts with that, else the commit's. A test that passes proves nothing, and one that is not
found says nothing: both fail the run. What stops before the test is told apart.

Java tests run in the builder; those of one file that meet the same code run together. A member of their class that the old code can't
compile is left out, so that it stops no test but its own.

Usage: python -m herdkeeper_e2e.closed_holes [WORDS]   (rows with all of the words, and without those behind a "-"; "finding:" means those
with a finding, "finding:C5" one)
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

from herdkeeper_e2e import java_members
from herdkeeper_e2e.control_plane import binaries, helm
from herdkeeper_e2e.outcomes import Outcome, Result, compile_errors, of_maven, of_pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/closed-holes.md"
REVIEWED = "866bbc2"
ABOUT_TESTS = "\n## Tests\n"
"""From here on the page has what only tests lacked."""
NAMED_ALIKE = "ffdc90a"
"""The last commit whose tests use the reviewed code's module names. Its version counts of a test whose name the reviewed code has."""
PYTHON_TESTS = ("conftest.py", "operator/tests", "spark-jobs/tests", "e2e/tests")
TESTS = (*PYTHON_TESTS, "images")
MAVEN = (
    "mvn",
    "-B",
    "-C",
    "-ntp",
    # code in which a test waits for ever ends that test, not all of its class; then Maven, where not even that ends
    "-Djunit.jupiter.execution.timeout.default=120s",
    "-Djunit.jupiter.execution.timeout.thread.mode.default=SEPARATE_THREAD",
    "-Dsurefire.timeout=900",
)
_ROW = re.compile(
    r"^\| (?P<hole>[^|]+) \| `(?P<test>[^`|]+)`(?:, closed by (?P<closed_by>[0-9a-f]+))? \|(?P<finding>[^|]*)\|$", re.MULTILINE
)


@dataclass(frozen=True)
class Hole:
    """A row of the page: what could happen, the test against it (a pytest id, or `path/Class.java#method`), and the findings it closes.

    `closed_by` is the commit that closed it, where the test came later.
    """

    what: str
    test: str
    findings: tuple[str, ...] = ()
    closed_by: str | None = None

    @property
    def file(self) -> str:
        """The test's file, from the root of the checkout."""
        return re.split(r"::|#", self.test)[0]

    @property
    def test_in_file(self) -> str:
        """The name of the test in its file, with its parameter if it has one."""
        return re.split(r"::|#", self.test)[1]

    @property
    def name(self) -> str:
        """The name of the test's function."""
        return self.test_in_file.partition("[")[0]

    @property
    def declared(self) -> str:
        """The text by which the test's function begins."""
        return f"void {self.name}(" if "#" in self.test else f"def {self.name}("


def holes(page: str) -> tuple[Hole, ...]:
    """The rows of the page."""
    return tuple(Hole(row["hole"], row["test"], tuple(re.findall(r"\w+", row["finding"])), row["closed_by"]) for row in _ROW.finditer(page))


@dataclass(frozen=True)
class Origin:
    """The commit that brought a test, the test's file there, and the commit whose code it must fail on."""

    commit: str
    file: str
    before: str

    @property
    def module(self) -> str:
        """The folder of a Java test's Maven module; empty for a test in Python."""
        return self.file.partition("/src/")[0] if self.file.endswith(".java") else ""

    @property
    def tests(self) -> tuple[str, ...]:
        """Where this test and its support lie."""
        return (f"{self.module}/src/test",) if self.module else PYTHON_TESTS

    @property
    def support(self) -> tuple[tuple[str, ...], ...]:
        """What of the commit is put beside the test, one try after the other: what is new in it, then all where the old one differs."""
        changed = _git(
            ROOT, "diff", "--name-status", "--no-renames", "--diff-filter=d", self.before, self.commit, "--", *self.tests
        ).split()
        status = {name: letter for letter, name in zip(changed[::2], changed[1::2], strict=True) if not name.endswith("Test.java")}
        new = tuple(name for name, letter in status.items() if letter == "A")
        return (new,) if {*new, self.file}.issuperset(status) else (new, self.tests)


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


def _holding(hole: Hole, commit: str) -> list[str]:
    """The files of a commit's tests in which the test is declared."""
    command = ["git", "grep", "-lF", hole.declared, commit, "--", *TESTS]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    return [line.partition(":")[2] for line in found.splitlines()]


def brought_by(hole: Hole) -> str:
    """The commit that brought the test by this name, or what it asserts, where an earlier test has the name."""
    in_reviewed = bool(_holding(hole, REVIEWED))
    if in_reviewed and hole.findings:
        return NAMED_ALIKE
    added = (hole.name, str(PAGE)) if in_reviewed else (hole.declared, *TESTS)
    commits = _git(ROOT, "log", "--reverse", "--topo-order", "--format=%h", f"{REVIEWED}..HEAD", f"-S{added[0]}", "--", *added[1:])
    return (commits.split() or ["HEAD"])[0]


def origin(hole: Hole) -> Origin | None:
    """Where the test comes from; None if the commit that should have brought it has no such test."""
    commit = brought_by(hole)
    files = _holding(hole, commit)
    if not files:
        return None
    file = min(files, key=lambda name: Path(name).name != Path(hole.file).name)
    return Origin(commit, file, REVIEWED if hole.findings else f"{hole.closed_by or commit}^")


def run(origin: Origin, names: Sequence[str], folder: Path) -> dict[str, Result]:
    """Run tests of one file on the old code, in this checkout; returns their results by name. Names in Python may have a parameter."""
    results: dict[str, Result] = {}
    for support in origin.support:
        left = [name for name in names if name not in results or not results[name].is_of_the_body]
        if left:
            _check_out(origin, support, folder)
            found = _run_java(origin, left, folder) if origin.module else _run_python(origin, left, folder)
            results |= {name: result.better(results.get(name)) for name, result in found.items()}
    return results


def _check_out(origin: Origin, support: tuple[str, ...], folder: Path) -> None:
    _git(folder, "checkout", "--quiet", "--force", "--detach", origin.before)
    _git(folder, "clean", "--quiet", "-fdx")
    there = [name for name in {*support, origin.file} if _git(ROOT, "ls-tree", origin.commit, name)]
    _git(folder, "checkout", "--quiet", origin.commit, "--", *there)


def _run_python(origin: Origin, names: Sequence[str], folder: Path) -> dict[str, Result]:
    paths = os.pathsep.join(str(folder / part) for part in ("operator/src", "spark-jobs/src", "e2e/src"))
    environment = {**os.environ, "PYTHONPATH": paths}
    if "/integration/" in origin.file:
        environment["HERDKEEPER_CONTROL_PLANE_BIN"] = _programs(folder)
    results = {}
    for name in names:
        command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", f"{origin.file}::{name}"]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        results[name] = of_pytest(done.returncode, done.stdout + done.stderr, origin.file)
    return results


def _programs(folder: Path) -> str:
    """A folder with this checkout's etcd, kube-apiserver and Helm: old code would build its own, for many minutes."""
    linked = folder / "programs"
    linked.mkdir(exist_ok=True)
    for name, path in {**_built(), "helm": helm()}.items():
        (linked / name).unlink(missing_ok=True)
        (linked / name).symlink_to(path)
    return str(linked)


@cache
def _built() -> dict[str, Path]:
    return binaries()


def _run_java(origin: Origin, names: Sequence[str], folder: Path) -> dict[str, Result]:
    file = folder / origin.file
    for other in (folder / origin.tests[0]).rglob("*Test.java"):
        if other != file:
            other.unlink()
    results: dict[str, Result] = {}
    while True:
        left = [name for name in names if name not in results]
        output = _maven(origin, left, folder)
        source = file.read_text()
        rest = java_members.without(source, compile_errors(output, origin.file))
        if rest == source:
            reports = (folder / origin.module / "target/surefire-reports").glob("TEST-*.xml")
            cases = [case for report in reports for case in ElementTree.parse(report).iter("testcase")]
            return results | of_maven(left, output, cases, origin.file)
        file.write_text(rest)
        results |= of_maven([name for name in left if f"void {name}(" not in rest], output, (), origin.file)
        if len(results) == len(names):
            return results


def _maven(origin: Origin, names: Sequence[str], folder: Path) -> str:
    _start_engine()
    test = f"-Dtest={Path(origin.file).stem}#{'+'.join(names)}"
    command = [str(ROOT / "e2e/images/builder.sh"), str(folder), *MAVEN, "-f", f"/out/{origin.module}", "test", test]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@cache
def _start_engine() -> None:
    subprocess.run([ROOT / "e2e/bootstrap/engine.sh"], check=True, capture_output=True)


def _by_run(rows: Iterable[Hole]) -> Iterator[tuple[Origin | None, tuple[Hole, ...]]]:
    """The rows of Java tests that one run of Maven answers are together, any other row is by itself."""
    together: dict[Origin, list[Hole]] = {}
    for hole in rows:
        found = origin(hole)
        if found and found.module:
            together.setdefault(found, []).append(hole)
        else:
            yield found, (hole,)
    yield from ((found, tuple(group)) for found, group in together.items())


def chosen(hole: Hole, words: Sequence[str]) -> bool:
    """The row has all of these words, and none of those behind a "-"."""
    row = " ".join((hole.what, hole.test, *(f"finding:{number}" for number in hole.findings)))
    return all((word.removeprefix("-") in row) != word.startswith("-") for word in words)


def main() -> int:
    """Print a line for each row, and the counts."""
    counts: Counter[Outcome] = Counter()
    rows = [hole for hole in holes(PAGE.read_text().partition(ABOUT_TESTS)[0]) if chosen(hole, sys.argv[1:])]
    with a_checkout() as folder:
        for found, group in _by_run(rows):
            names = tuple(dict.fromkeys(hole.test_in_file for hole in group))
            results = run(found, names, folder) if found else dict.fromkeys(names, Result(Outcome.NOT_FOUND))
            for hole in group:
                result = results[hole.test_in_file]
                counts[result.outcome] += 1
                print(f"{result.outcome:8}  {hole.test}\n          {result.why}", flush=True)
    print("; ".join(f"{count} {name}" for name, count in counts.items()))
    return 1 if counts[Outcome.PASSES] or counts[Outcome.NOT_FOUND] else 0


if __name__ == "__main__":
    sys.exit(main())
