"""The writer in the tools pod, steered from outside the cluster, and the reader's verdict."""

from __future__ import annotations

import json
from typing import Any

from herdkeeper_e2e.history import Event, EventKind, parse_history
from herdkeeper_e2e.steered_process import PATIENCE, SteeredProcess
from herdkeeper_e2e.tools_pod import ToolsPod
from herdkeeper_e2e.waiting import Pending, wait_for

READ_SECONDS = 300.0
"""For a final read that waits for a leader."""


class ReaderProcess(SteeredProcess):
    """Reads a writer's table until stopped. `acknowledged` counts its reads."""

    def violation(self) -> str | None:
        """Stop it; returns its first violation, or None."""
        self.stop(READ_SECONDS)
        found: str | None = json.loads(self.last_line)["violation"]
        return found


class WriterProcess(SteeredProcess):
    """Writes rows into a table until stopped; a line `mark NAME` announces a fault. `more` are further arguments of the program."""

    def __init__(self, tools: ToolsPod, table: str, *more: str) -> None:
        self._tools = tools
        self._history = f"/tmp/history-of-{table}"
        self._arguments = ("--table", table, "--history", self._history)
        super().__init__(tools.kubectl, tools.name, tools.program("writer", *self._arguments, *more))

    def read(self, *arguments: str) -> dict[str, Any]:
        """Returns the reader's result: the verdict, its violation or None, and the gaps."""
        found: dict[str, Any] = json.loads(self._tools.run("reader", *self._arguments, *arguments))
        return found

    def read_meanwhile(self) -> ReaderProcess:
        """Start a reader that compares repeatedly while this writes."""
        program = self._tools.program("reader", *self._arguments, "--repeat")
        return ReaderProcess(self._tools.kubectl, self._tools.name, program)

    def events(self) -> list[Event]:
        """Returns what it has recorded so far, even after it was stopped."""
        text = self._tools.kubectl.exec(self._tools.name, "cat", self._history)
        return parse_history(text.split("\n")[:-1])  # the piece after the last line end is an incomplete event

    def marked(self, name: str) -> None:
        """Return once the mark is recorded, so that it precedes the next requests to the cluster. Names are unique."""

        def ask() -> bool | Pending:
            found = any(event.kind is EventKind.MARK and event.name == name for event in self.events())
            return True if found else Pending(f"the last line was: {self.last_line}")

        self.order(f"mark {name}")
        wait_for(f"the mark {name!r}", ask, PATIENCE)


def write_rows(tools: ToolsPod, table: str, rows: int) -> None:
    """Write so many rows, or a few more, into a table of their own."""
    writer = WriterProcess(tools, table)
    writer.acknowledges(rows)
    writer.stop()
