"""Programs that a script calls, played: each writes down how it was called, and does what a line of shell says."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from herdkeeper_e2e.release.source import REPOSITORY


@dataclass(frozen=True)
class PlayedPrograms:
    """Those of a folder. Scripts of the checkout are run with them and the system's own programs, and an empty cache."""

    folder: Path

    def play(self, name: str, body: str) -> None:
        """Has a program, by what it does after it has written down its call."""
        file = self.folder / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f'#!/bin/bash\necho "{name} $*" >> {self.folder}/calls\n{body}\n')
        file.chmod(0o755)

    def run(self, script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """A script, named relative to the repository, run to its end."""
        told = {"PATH": f"{self.folder / 'bin'}:/usr/bin:/bin", "HERDKEEPER_CACHE": str(self.folder / "cache"), **environment}
        return subprocess.run([str(REPOSITORY / script), *arguments], env=told, capture_output=True, text=True, check=False)

    def calls(self) -> list[str]:
        """How programs were called, in that order."""
        file = self.folder / "calls"
        return file.read_text().splitlines() if file.exists() else []
