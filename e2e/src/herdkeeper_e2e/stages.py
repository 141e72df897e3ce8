"""Progress of a long run: numbered stages, and lines with the elapsed time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TextIO


class StageError(RuntimeError):
    """A stage could not be completed; names the stage, its cause is the error."""

    def __init__(self, stage: str, reason: str) -> None:
        super().__init__(f"stage '{stage}' failed: {reason}")
        self.stage = stage
        self.reason = reason


def clock_text(seconds: float) -> str:
    """Seconds as minutes and seconds, e.g. `3:07`; from an hour on with hours."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


@dataclass
class Progress:
    """Prints one line per thing worth knowing, and remembers how long each stage took."""

    stages: tuple[str, ...]
    output: TextIO = field(default_factory=lambda: sys.stdout)
    now: Callable[[], float] = time.monotonic
    durations: dict[str, float] = field(default_factory=dict)
    current: str = ""
    earlier: float = 0
    """Seconds that the run took before this process."""

    def __post_init__(self) -> None:
        self._start = self.now() - self.earlier
        self._width = max(len(stage) for stage in self.stages)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self.now() - self._start

    def say(self, message: str) -> None:
        """One line of the current stage."""
        number = self.stages.index(self.current) + 1 if self.current else 0
        place = f"{number}/{len(self.stages)}" if number else "-"
        print(f"[{clock_text(self.elapsed):>5}] {place:>5} {self.current:<{self._width}}  {message}", file=self.output, flush=True)

    @contextmanager
    def stage(self, name: str, intent: str) -> Iterator[None]:
        """Runs a stage; says at its beginning what it does, and at its end how long it took.

        Raises:
            StageError: the block raised; the error is the cause.
        """
        self.current = name
        began = self.now()
        self.say(intent)
        try:
            yield
        except Exception as error:
            self.say(f"failed after {clock_text(self.now() - began)}")
            raise StageError(name, str(error) or type(error).__name__) from error
        self.durations[name] = self.now() - began
        self.say(f"done in {clock_text(self.durations[name])}")
        self.current = ""
