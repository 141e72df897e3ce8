"""kstatus's verdict on resources, by its own program (e2e/kstatus), as for Flux and other tools."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from typing import Any

from herdkeeper_e2e.go_module import go_program


def judged(documents: Iterable[Mapping[str, Any]]) -> list[str]:
    """Returns the verdict on each resource: Current, InProgress, Failed or Terminating."""
    lines = "\n".join(map(json.dumps, documents))
    return subprocess.run([str(go_program("kstatus"))], input=lines, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
