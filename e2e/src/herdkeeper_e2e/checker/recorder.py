"""Writes a history line by line, for several threads of one process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TextIO

from herdkeeper_e2e.checker.history import begin_line, end_line
from herdkeeper_e2e.checker.operation import Content, Operation, Outcome, Read


@dataclass
class Recorder:
    """Appends to a file; each line is written before the next attempt. Only successful writes count as acknowledged."""

    file: TextIO
    clock: Callable[[], float] = time.monotonic
    acknowledged: int = 0
    unknown: int = 0
    failed: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, process: str, number: int, content: Content) -> Operation:
        """Returns the operation, beginning now."""
        with self._lock:
            at = self.clock()
            self._append(begin_line(process, number, at, content))
        return Operation(process, number, content, at, None, Outcome.UNKNOWN)

    def end(self, operation: Operation) -> Operation:
        """Returns the operation with its outcome, ending now."""
        with self._lock:
            ended = replace(operation, ended=self.clock())
            self._append(end_line(ended))
            self.acknowledged += ended.outcome is Outcome.OK and not isinstance(ended.content, Read)
            self.unknown += ended.outcome is Outcome.UNKNOWN
            self.failed += ended.outcome is Outcome.FAIL
        return ended

    def _append(self, line: str) -> None:
        self.file.write(line + "\n")
        self.file.flush()
