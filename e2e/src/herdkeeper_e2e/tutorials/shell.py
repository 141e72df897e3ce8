"""A shell that keeps variables and folder between commands, like a person's."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


class ShellError(RuntimeError):
    """The shell ended: a command took too long, was unreadable, or left the shell. The message has its output."""


@dataclass(frozen=True)
class Ended:
    """The combined output of a command, and its exit code."""

    printed: str
    code: int


class Shell:
    """One bash. A command's standard input is empty."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # child processes end with it
            start_new_session=True,
        )

    def run(self, command: str, limit_seconds: float) -> Ended:
        """Run a command to its end.

        Raises ShellError if it exceeds the limit, or the shell ends.
        """
        if self._process.stdin is None or self._process.stdout is None:
            raise ShellError("the shell has no pipes")
        mark = f"end-of-command-{uuid.uuid4()}"
        # the shell's own answer may come before all of this is written
        with suppress(BrokenPipeError):
            self._process.stdin.write(f"{{ {command}\n}} </dev/null\nprintf '\\n%s %s\\n' {mark} $?\n")
            self._process.stdin.flush()
        watch = threading.Timer(limit_seconds, self.close)
        watch.start()
        lines: list[str] = []
        try:
            for line in self._process.stdout:
                if line.startswith(mark):
                    return Ended("".join(lines).removesuffix("\n"), int(line.split()[1]))
                lines.append(line)
        finally:
            watch.cancel()
        raise ShellError(f"`{command}` did not end within {limit_seconds:g} s, or ended the shell: {''.join(lines).strip()[-2000:]}")

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
