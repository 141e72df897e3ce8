"""Programs of the tests that are built from pinned Go modules, and files of such modules, such as the CRDs of other operators."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

_E2E = Path(__file__).parents[2]


def module_folder(program: str, module: str) -> Path:
    """Returns the folder with a module's files, in the version that e2e/PROGRAM/go.sum has; fetched if missing. Raises KeyError."""
    pinned = re.search(rf"^{re.escape(module)} (v[^\s/]+) (h1:\S+)$", (_E2E / program / "go.sum").read_text(), re.MULTILINE)
    if pinned is None:
        raise KeyError(f"e2e/{program}/go.sum has no {module}")
    version, checksum = pinned.groups()
    return _printed("go-module.sh", f"{module}@{version}", checksum)


@cache
def go_program(name: str, *system: str) -> Path:
    """Returns the file of a program, for this machine's system or another one (`linux`). It is built if missing, which takes minutes."""
    return _printed("go-program.sh", name, *system)


def _printed(script: str, *arguments: str) -> Path:
    command = [str(_E2E / "bootstrap" / script), *arguments]
    return Path(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip())
