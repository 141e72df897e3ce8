"""A program inside a pod that writes until stopped, steered from outside the cluster.

It takes orders as lines of standard input; `stop`, or its end, stops it. It prints the number of acknowledged writes as lines of JSON
(`acknowledged`).
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections import deque
from collections.abc import Sequence
from typing import Self

from herdkeeper_e2e.kubectl import Kubectl
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

PATIENCE = Limit(180, 0.2)
"""For further rows: longer than any fault visible to a client."""
MOST_LINES = 40
SOME = 50


class ProgramEndedError(RuntimeError):
    """The program has ended. The message is its last lines: of a Python program the traceback."""


class SteeredProcess:
    """Runs until stopped. `acknowledged` counts the acknowledged writes."""

    def __init__(self, kubectl: Kubectl, pod: str, command: Sequence[str]) -> None:
        self._process: subprocess.Popen[str] = kubectl.start("exec", "-i", pod, "--", *command)
        self.acknowledged = 0
        self._last_lines: deque[str] = deque(maxlen=MOST_LINES)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def last_line(self) -> str:
        """Its last output but for those numbers."""
        return self._last_lines[-1] if self._last_lines else ""

    def order(self, line: str) -> None:
        """One order, such as `stop`."""
        if self._process.stdin is None:
            raise ProgramEndedError("it has no standard input")
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def acknowledges(self, more: int = SOME, limit: Limit = PATIENCE) -> Self:
        """Wait until so many further writes are acknowledged. Returns itself."""
        self.has_acknowledged(self.acknowledged + more, limit)
        return self

    def has_acknowledged(self, wanted: int, limit: Limit = PATIENCE) -> None:
        """Wait until so many writes are acknowledged in total."""

        def enough() -> bool | Pending:
            if self._process.poll() is not None:
                raise ProgramEndedError("".join(self._last_lines))
            return True if self.acknowledged >= wanted else Pending(f"{self.acknowledged} of {wanted} rows")

        wait_for("acknowledged writes", enough, limit)

    def stop(self, patience_seconds: float = 60.0) -> None:
        """Stop it. Raises ProgramEndedError if it ended with an error."""
        self.order("stop")
        code = self._process.wait(timeout=patience_seconds)
        self._listener.join(timeout=patience_seconds)  # otherwise its last output may not be read yet
        if code != 0:
            raise ProgramEndedError("".join(self._last_lines))

    def _listen(self) -> None:
        for line in self._process.stdout or ():
            acknowledged = acknowledged_in(line)
            if acknowledged is None:
                self._last_lines.append(line)
            else:
                self.acknowledged = acknowledged


def acknowledged_in(line: str) -> int | None:
    """Returns how many writes a line reports as acknowledged. None for other lines, and for one merged with a warning: both outputs share
    one stream, and the next report follows soon.
    """
    try:
        return int(json.loads(line)["acknowledged"])
    except (ValueError, KeyError, TypeError):
        return None
