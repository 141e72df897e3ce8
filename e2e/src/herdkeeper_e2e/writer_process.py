"""The writer running in the tools pod, steered from outside the cluster, and what the reader says of it."""

from __future__ import annotations

import json
from typing import Any

from herdkeeper_e2e.steered_process import SteeredProcess
from herdkeeper_e2e.tools_pod import ToolsPod


class WriterProcess(SteeredProcess):
    """Writes rows into a table until it is stopped; a line `mark NAME` tells it of a fault. `more` are further arguments of the program."""

    def __init__(self, tools: ToolsPod, table: str, *more: str) -> None:
        self._tools = tools
        self._arguments = ("--table", table, "--history", f"/tmp/history-of-{table}")
        super().__init__(tools.kubectl, tools.name, tools.program("writer", *self._arguments, *more))

    def read(self, *arguments: str) -> dict[str, Any]:
        """What the reader finds: the verdict, its violation or None, and the gaps."""
        found: dict[str, Any] = json.loads(self._tools.run("reader", *self._arguments, *arguments))
        return found
