"""Files of Go modules that a program of the tests pins, such as the CRDs of other operators."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

_E2E = Path(__file__).parents[2]


def module_folder(program: str, module: str) -> Path:
    """Returns the folder with a module's files, in the version that e2e/PROGRAM/go.sum has; fetched if missing. Raises KeyError."""
    pinned = re.search(rf"^{re.escape(module)} (v[^\s/]+) (h1:\S+)$", (_E2E / program / "go.sum").read_text(), re.MULTILINE)
    if pinned is None:
        raise KeyError(f"e2e/{program}/go.sum has no {module}")
    version, checksum = pinned.groups()
    command = [str(_E2E / "bootstrap/go-module.sh"), f"{module}@{version}", checksum]
    return Path(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip())
