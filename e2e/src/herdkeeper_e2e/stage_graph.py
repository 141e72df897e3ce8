"""Runs stages as a graph: each begins once its predecessors have passed and its lane is free. Each writes its own log.

It uses only Python's standard library, from 3.9 on: a stage makes the project's environment.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

# Linux may schedule sessions as groups; nice then orders only processes of one session.
_IN_LINE = 'nice=$1; shift; { echo "$nice" >/proc/self/autogroup; } 2>/dev/null; exec nice -n "$nice" "$@"'


class Kind(Enum):
    PREPARATION = "preparation"
    """It makes or finds what others need, and runs each time."""
    CHECK = "check"
    """It takes seconds. If it fails, the others are ended: they would only delay the result."""
    SUITE = "suite"
    """It takes minutes. If it fails, the others continue, so that one run shows all failures."""


class Outcome(Enum):
    PASSED = "passed"
    FAILED = "FAILED"
    ENDED = "ended: a check had failed"
    NOT_RUN = "not run: a stage that it needs did not pass"
    REMEMBERED = "passed in an earlier run of the same files"


@dataclass(frozen=True)
class Stage:
    """A command, and when it runs. Stages of one lane run one at a time, in declared order."""

    name: str
    command: Sequence[str]
    kind: Kind
    lane: str
    after: Collection[str] = ()
    """Stages that must pass first."""
    nice: int = 0
    """From 0, highest priority for a core, to 19."""


@dataclass(frozen=True)
class Result:
    """How a stage ended. CPU seconds are those of its processes, without containers of an engine."""

    stage: Stage
    outcome: Outcome
    log: Path
    seconds: float = 0
    cpu_seconds: float = 0


@dataclass(frozen=True)
class _Running:
    stage: Stage
    pid: int
    began: float


class Graph:
    """One run of stages. `tell` is called for each begin (name, no result) and end (name and result)."""

    def __init__(
        self, stages: Sequence[Stage], folder: Path, tell: Callable[[str, Result | None], None], remembered: Collection[str] = ()
    ) -> None:
        self._folder = folder
        self._tell = tell
        self._left = [stage for stage in stages if stage.name not in remembered]
        self._running: dict[str, _Running] = {}
        self._ended: queue.Queue[tuple[str, int, float]] = queue.Queue()
        self._failed_check = False
        self.results = {stage.name: self._without_run(stage, Outcome.REMEMBERED) for stage in stages if stage.name in remembered}

    @property
    def running(self) -> list[str]:
        """Returns the names of the running stages."""
        return list(self._running)

    def log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def run(self, each_seconds: float, heartbeat: Callable[[], None]) -> None:
        """Return when all stages have a result. `heartbeat` is called about each so many seconds while some run."""
        try:
            self._begin_what_may()
            while self._running:
                try:
                    self._end(*self._ended.get(timeout=each_seconds))
                except queue.Empty:
                    heartbeat()
                self._begin_what_may()
        finally:
            self._stop_all()

    def _begin_what_may(self) -> None:
        for stage in tuple(self._left):
            outcomes = [self.results[name].outcome if name in self.results else None for name in stage.after]
            if self._failed_check or any(each not in (None, Outcome.PASSED, Outcome.REMEMBERED) for each in outcomes):
                self._left.remove(stage)
                self._finish(self._without_run(stage, Outcome.ENDED if self._failed_check else Outcome.NOT_RUN))
            elif None not in outcomes and all(each.stage.lane != stage.lane for each in self._running.values()):
                self._left.remove(stage)
                self._begin(stage)

    def _begin(self, stage: Stage) -> None:
        with self.log(stage.name).open("wb") as log:
            process = subprocess.Popen(
                ["sh", "-c", _IN_LINE, "stage", str(stage.nice), *stage.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that all of its processes can be ended with it
            )
        self._running[stage.name] = _Running(stage, process.pid, time.monotonic())
        self._tell(stage.name, None)
        threading.Thread(target=self._wait, args=(stage.name, process), daemon=True).start()

    def _wait(self, name: str, process: subprocess.Popen[bytes]) -> None:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status  # otherwise it would itself ask for a status that is taken
        self._ended.put((name, status, usage.ru_utime + usage.ru_stime))

    def _end(self, name: str, status: int, cpu_seconds: float) -> None:
        running = self._running.pop(name)
        outcome = Outcome.PASSED if status == 0 else Outcome.ENDED if self._failed_check else Outcome.FAILED
        seconds = time.monotonic() - running.began
        self._finish(Result(running.stage, outcome, self.log(name), seconds, cpu_seconds))
        if outcome is Outcome.FAILED and running.stage.kind is Kind.CHECK:
            self._failed_check = True
            self._stop_all()

    def _finish(self, result: Result) -> None:
        self.results[result.stage.name] = result
        self._tell(result.stage.name, result)

    def _without_run(self, stage: Stage, outcome: Outcome) -> Result:
        return Result(stage, outcome, self.log(stage.name))

    def _stop_all(self) -> None:
        for each in self._running.values():
            with suppress(ProcessLookupError):
                os.killpg(each.pid, signal.SIGTERM)
