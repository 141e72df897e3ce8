"""All checks and tests of `make test`: `python3 -m herdkeeper_e2e.run_tests FOLDER [--resume]`.

FOLDER keeps the logs of the last runs, and the passed stages. Scenarios mostly wait for pods, so they have priority for a core; tests of
servers mostly wait, too; computing stages take the rest. It uses only Python's standard library: a stage makes the project's environment.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from herdkeeper_e2e.stage_graph import Graph, Kind, Outcome, Result, Stage
from herdkeeper_e2e.stages import clock_text

REPOSITORY = Path(__file__).resolve().parents[3]
BOOTSTRAP = REPOSITORY / "e2e/bootstrap"
CLUSTER = REPOSITORY / "e2e/kind/cluster.sh"
KEPT_RUNS = 10
HEARTBEAT_SECONDS = 60
MOST_FAILURE_LINES = 10
LOG_FOLDER = "HERDKEEPER_LOG_FOLDER"
"""Variable with the folder in which a failed scenario leaves conditions, events and logs."""
_CLOSING = re.compile(
    r"=+ .*\b(passed|failed|error|errors|no tests ran)\b.* =+|\[\w+\] Tests run: \d+, Failures: \d+, Errors: \d+, Skipped: \d+"
)
_SCENARIO = "scenario: "
_FAILURE = re.compile(r"(?:FAILED|ERROR) \S+::.*|\[ERROR\] +\w[\w$.]*[.:]\w+.*|.*: error: .*")


def _made(name: str, lane: str, kind: Kind, nice: int, after: Collection[str] = ("environment",)) -> Stage:
    """A target of the Makefile."""
    return Stage(name, ("make", "--no-print-directory", "-C", str(REPOSITORY), name), kind, lane, after, nice)


STAGES = (
    Stage("environment", (str(BOOTSTRAP / "run.sh"), "true"), Kind.PREPARATION, "computing"),
    Stage("cluster", (str(BOOTSTRAP / "prepare.sh"),), Kind.PREPARATION, "cluster", nice=5),
    *(_made(name, "computing", Kind.CHECK, 0) for name in ("lint", "imports", "types", "verify-generated")),
    _made("unit", "computing", Kind.SUITE, 10),
    *(_made(name, "cluster", Kind.SUITE, 0, ("environment", "cluster")) for name in ("e2e", "e2e-scenario")),
    Stage("cluster-pause", (str(CLUSTER), "pause"), Kind.PREPARATION, "cluster", ("e2e", "e2e-scenario")),
    # after the cluster, which makes the programs and the builder for them
    _made("integration-operator", "computing", Kind.SUITE, 10, ("environment", "cluster")),
    # not behind unit tests: servers, and Spark, give up what does not answer in seconds
    *(_made(name, "servers", Kind.SUITE, 0, ("environment", "cluster")) for name in ("unit-java", "integration-servers")),
)


@dataclass(frozen=True)
class Console:
    """Lines of progress, with the time since the start."""

    began: float
    write: Callable[[str], object]

    def say(self, line: str) -> None:
        self.write(f"[{clock_text(time.monotonic() - self.began):>7}] {line}\n")

    def tell(self, name: str, result: Result | None) -> None:
        """Report that a stage began or, with a result, ended; then with the summary lines of its test programs."""
        if result is None:
            self.say(f"{name}: begins")
            return
        self.say(f"{name}: {result.outcome.value}" + (f", {result.seconds:.0f} s" if result.seconds else ""))
        for line in closing_lines(_lines(result.log)):
            self.write(f"          {line}\n")


def _lines(log: Path) -> list[str]:
    return [line.rstrip() for line in log.read_text(errors="replace").splitlines()] if log.is_file() else []


def closing_lines(lines: Sequence[str]) -> list[str]:
    """Returns the summary lines of a stage's test programs: tests passed and their time, and the scenario of this turn."""
    return [line for line in lines if _CLOSING.fullmatch(line) or line.startswith(_SCENARIO)]


def failed_tests(lines: Sequence[str]) -> list[str]:
    """Returns a line for each failed test, or else the end of the log."""
    return [line for line in lines if _FAILURE.fullmatch(line)] or [line for line in lines if line][-3:]


def busy_seconds(stat: str) -> float:
    """Returns CPU seconds since the machine's start, of all cores and processes, from /proc/stat. Source: proc(5)."""
    ticks = [int(field) for field in stat.splitlines()[0].split()[1:9]]
    user, nice, system, _idle, _iowait, *interrupts = ticks
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def _machine_busy_seconds() -> float:
    stat = Path("/proc/stat")
    return busy_seconds(stat.read_text()) if stat.is_file() else 0


def table(results: Collection[Result], seconds: float, cpu_seconds: float) -> str:
    """Returns each stage with its seconds and the CPU seconds of its processes; the total covers the machine with containers."""
    rows = [f"{'stage':<22}{'seconds':>8}{'CPU':>8}"]
    rows += [f"{each.stage.name:<22}{each.seconds:>8.0f}{each.cpu_seconds:>8.0f}  {each.outcome.value}" for each in results]
    return "\n".join([*rows, f"{'in all':<22}{seconds:>8.0f}{cpu_seconds:>8.0f}"])


def what_failed(results: Collection[Result], folder: Path) -> list[str]:
    """Returns at most ten lines: failed stages and tests, their logs, and where conditions and events are."""
    failed = [each for each in results if each.outcome is Outcome.FAILED]
    explained = sorted(folder.glob("*.explained.txt"))
    last = [*(f"conditions, events, logs of pods: {path}" for path in explained[:1]), "go on with what has not passed: make test RESUME=1"]
    room = max(1, (MOST_FAILURE_LINES - len(last)) // max(1, len(failed)) - 1)
    lines: list[str] = []
    for each in failed:
        tests = failed_tests(_lines(each.log))
        more = f" (and {len(tests) - room} more)" if len(tests) > room else ""
        lines += [f"{each.stage.name} failed{more}; its log: {each.log}", *(f"  {line[:400]}" for line in tests[:room])]
    return [*lines[: MOST_FAILURE_LINES - len(last)], *last]


def content_key(repository: Path, *chosen: str) -> str:
    """Returns a key that changes with any file of the checkout that is not ignored, committed or not, and with this run's choices."""
    listed = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=repository, check=True, capture_output=True).stdout
    digest = hashlib.sha256(repr(chosen).encode())
    for name in sorted(set(listed.decode().split("\0"))):
        path = repository / name
        digest.update(name.encode() + b"\0" + (path.read_bytes() if path.is_file() else b"") + b"\0")
    return digest.hexdigest()


@dataclass(frozen=True)
class Passed:
    """Which stages have passed for which content, in a file."""

    file: Path

    def of(self, key: str) -> frozenset[str]:
        """Returns the stages that passed for exactly this content."""
        with suppress(FileNotFoundError):
            kept = json.loads(self.file.read_text())
            return frozenset(kept["stages"] if kept["key"] == key else ())
        return frozenset()

    def keep(self, key: str, stages: Collection[str]) -> None:
        self.file.write_text(json.dumps({"key": key, "stages": sorted(stages)}))


def _new_folder(runs: Path) -> Path:
    """Create the folder for this run's logs. The newest of earlier ones stay."""
    runs.mkdir(parents=True, exist_ok=True)
    for old in sorted(path for path in runs.iterdir() if path.is_dir())[: 1 - KEPT_RUNS]:
        shutil.rmtree(old, ignore_errors=True)
    folder = runs / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    folder.mkdir()
    return folder


def _say_what_runs(graph: Graph, console: Console) -> None:
    for name in graph.running:
        last = next((line for line in reversed(_lines(graph.log(name))) if line), "")
        console.say(f"{name}: {last[:140]}")


def run(runs: Path, *, resume: bool) -> int:
    """Run all stages. Returns 0 if all passed, now or, with `resume`, in the previous run with the same files."""
    began, busy = time.monotonic(), _machine_busy_seconds()
    console = Console(began, lambda text: print(text, end="", flush=True))
    folder = _new_folder(runs)
    os.environ[LOG_FOLDER] = str(folder)
    chosen, record = os.environ.get("SCENARIO", ""), Passed(runs / "passed.json")
    key = content_key(REPOSITORY, chosen)
    remembered = record.of(key) if resume else frozenset()
    console.say(f"logs: {folder}")

    graph = Graph(STAGES, folder, console.tell, remembered)
    try:
        graph.run(HEARTBEAT_SECONDS, lambda: _say_what_runs(graph, console))
    finally:
        if "cluster-pause" in graph.results:
            subprocess.run([str(CLUSTER), "resume"], check=False)
        results = [graph.results[stage.name] for stage in STAGES if stage.name in graph.results]
        passed = {each.stage.name for each in results if each.outcome in (Outcome.PASSED, Outcome.REMEMBERED)}
        if content_key(REPOSITORY, chosen) == key:  # otherwise it is unknown which content passed
            record.keep(key, {stage.name for stage in STAGES if stage.name in passed and stage.kind is not Kind.PREPARATION})
        print(f"\n{table(results, time.monotonic() - began, _machine_busy_seconds() - busy)}")
        print("\n".join(line for each in results for line in _lines(each.log) if line.startswith(_SCENARIO)))
    if len(passed) == len(STAGES):
        print("all stages passed")
        return 0
    print("\n".join(["", *what_failed(results, folder)]))
    return 1


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Runs all checks and tests.")
    parser.add_argument("runs", type=Path, help="folder for logs of runs")
    parser.add_argument("--resume", action="store_true", help="leave out what passed in the run before, when no file has changed since")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, _interrupt)
    for inherited in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"):
        os.environ.pop(inherited, None)
    try:
        sys.exit(run(arguments.runs, resume=arguments.resume))
    except KeyboardInterrupt:
        sys.exit(130)
