"""Prometheus' own checker of rules and queries, as a process, and where it and Prometheus are."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

_SCRIPT = Path(__file__).parents[3] / "bootstrap/promtool.sh"


class RefusedError(ValueError):
    """promtool found an error. The message is its own."""


@cache
def program(name: str) -> str:
    """Returns the path of promtool or prometheus."""
    return subprocess.run([str(_SCRIPT), name], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def promtool(*arguments: str) -> str:
    """Returns its output. Raises RefusedError if it finds an error."""
    ran = subprocess.run([program("promtool"), *arguments], check=False, capture_output=True, text=True)
    if ran.returncode != 0:
        raise RefusedError(f"promtool {' '.join(arguments)}: {ran.stdout}{ran.stderr}")
    return ran.stdout
