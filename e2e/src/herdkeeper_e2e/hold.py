"""Holds a job at a step: where it reads a file that a scenario has put there, it stands still until it is killed.

A step may take less time than it takes to look for it from outside. Who is held there can be looked at, and killed, at any speed.
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
    """A file, by its path in a pod that mounts it, at which whoever reads it is held."""

    def __init__(self, tools: ToolsPod, path: str) -> None:
        self._tools, self._path = tools, path
        tools.kubectl.exec(tools.name, "python3", "-c", _MAKE, path)
        super().__init__(tools.kubectl, tools.name, tools.program("held_file", path))

    @staticmethod
    @contextmanager
    def at(tools: ToolsPod, path: str) -> Iterator[Hold]:
        """For as long as the block lasts, at whose end nobody may be held any more."""
        hold = Hold(tools, path)
        try:
            yield hold
        finally:
            hold.give_up_the_name()
            hold.stop()

    @property
    def arrivals(self) -> int:
        """How many have come so far, those who were killed meanwhile included."""
        return self.acknowledged

    def wait_for_arrival(self, number: int) -> None:
        """So many have come, and the last one of them is held. Raises WaitError, or ProgramEndedError."""
        self.has_acknowledged(number, ARRIVAL)

    def give_up_the_name(self) -> None:
        """Whoever comes from now on finds no such file; who is held there stays."""
        self._tools.kubectl.exec(self._tools.name, "python3", "-c", _REMOVE, self._path)
