"""Blocks a job at a step, where it reads a file that a scenario has put there, until it is killed.

A step may be shorter than the time to detect it from outside. A blocked job can be inspected and killed at any speed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from herdkeeper_e2e.steered_process import SteeredProcess
from herdkeeper_e2e.tools_pod import ToolsPod
from herdkeeper_e2e.waiting import Limit

ARRIVAL = Limit(300, 0.1)
_MAKE = "import os, sys; os.mkfifo(sys.argv[1])"
_REMOVE = "import pathlib, sys; pathlib.Path(sys.argv[1]).unlink(missing_ok=True)"


class Hold(SteeredProcess):
    """A file, by its path in a pod that mounts it, that blocks its readers."""

    def __init__(self, tools: ToolsPod, path: str) -> None:
        self._tools, self._path = tools, path
        tools.script(_MAKE, path)
        super().__init__(tools.kubectl, tools.name, tools.program("held_file", path))

    @staticmethod
    @contextmanager
    def at(tools: ToolsPod, path: str) -> Iterator[Hold]:
        """Within the block; at its end no reader may be blocked."""
        hold = Hold(tools, path)
        try:
            yield hold
        finally:
            hold.give_up_the_name()
            hold.stop()

    @property
    def arrivals(self) -> int:
        """Returns how many readers have come so far, including killed ones."""
        return self.acknowledged

    def wait_for_arrival(self, number: int) -> None:
        """Wait until so many have come, and the last one is blocked. Raises WaitError, or ProgramEndedError."""
        self.has_acknowledged(number, ARRIVAL)

    def give_up_the_name(self) -> None:
        """Remove the name: later readers find no file, a blocked one stays."""
        self._tools.script(_REMOVE, self._path)
