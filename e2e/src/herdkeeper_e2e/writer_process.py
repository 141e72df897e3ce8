"""The writer running in the tools pod, steered from outside the cluster, and what the reader says of it."""

from __future__ import annotations

import json
import subprocess
import threading
from typing import Any

from herdkeeper_e2e.tools_pod import ToolsPod
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

PATIENCE = Limit(180, 0.2)
"""For further rows: longer than any fault that a client may see."""


class WriterEndedError(RuntimeError):
    """The writer is not there any more; the message is its last line."""


class WriterProcess:
    """Writes rows into a table until it is stopped. `acknowledged` counts those that the database promised to keep.

    `more` are further arguments of the program.
    """

    def __init__(self, tools: ToolsPod, table: str, *more: str) -> None:
        self._tools = tools
        self._arguments = ("--table", table, "--history", f"/tmp/history-of-{table}")
        self._process: subprocess.Popen[str] = tools.kubectl.start(
            "exec", "-i", tools.name, "--", *tools.program("writer", *self._arguments, *more)
        )
        self.acknowledged = 0
        self._last = ""
        threading.Thread(target=self._listen, daemon=True).start()

    def order(self, line: str) -> None:
        """`mark NAME`, or `stop`."""
        if self._process.stdin is None:
            raise WriterEndedError("it has no standard input")
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def acknowledges(self, more: int) -> None:
        """Waits until that many further rows were acknowledged."""
        wanted = self.acknowledged + more

        def enough() -> bool | Pending:
            if self._process.poll() is not None:
                raise WriterEndedError(self._last)
            return True if self.acknowledged >= wanted else Pending(f"{self.acknowledged} of {wanted} rows")

        wait_for("acknowledged writes", enough, PATIENCE)

    def stop(self) -> None:
        """Ends it. Raises WriterEndedError when it ended with an error."""
        self.order("stop")
        if self._process.wait(timeout=60) != 0:
            raise WriterEndedError(self._last)

    def read(self, *arguments: str) -> dict[str, Any]:
        """What the reader finds: the verdict, its violation or None, and the gaps."""
        found: dict[str, Any] = json.loads(self._tools.run("reader", *self._arguments, *arguments))
        return found

    def _listen(self) -> None:
        for line in self._process.stdout or ():
            self._last = line
            if line.startswith("{"):
                self.acknowledged = int(json.loads(line)["acknowledged"])
