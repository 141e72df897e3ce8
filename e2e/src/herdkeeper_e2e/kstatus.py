"""kstatus's verdict on resources, by its own program (e2e/kstatus), as for Flux and other tools."""

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
    """Returns its path. It is built if missing, which takes half a minute."""
    return subprocess.run([str(_SCRIPT), "kstatus"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def judged(documents: Iterable[Mapping[str, Any]]) -> list[str]:
    """Returns the verdict on each resource: Current, InProgress, Failed or Terminating."""
    lines = "\n".join(map(json.dumps, documents))
    return subprocess.run([_program()], input=lines, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
