"""What kstatus makes of resources, by its own program (e2e/kstatus): Flux and other tools judge by it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

_SCRIPT = Path(__file__).parents[2] / "bootstrap/go-program.sh"


@cache
def _program() -> str:
    """Its file. It is built when it is missing, which takes half a minute."""
    return subprocess.run([str(_SCRIPT), "kstatus"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def judged(documents: Iterable[Mapping[str, Any]]) -> list[str]:
    """Its word for each resource: Current, InProgress, Failed or Terminating."""
    lines = "\n".join(map(json.dumps, documents))
    return subprocess.run([_program()], input=lines, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
