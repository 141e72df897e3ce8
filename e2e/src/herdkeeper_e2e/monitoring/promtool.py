"""Prometheus' own checker of rules and queries, as a process."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

_SCRIPT = Path(__file__).parents[3] / "bootstrap/promtool.sh"


class RefusedError(ValueError):
    """promtool found something wrong; the message is its own."""


@cache
def _program() -> str:
    return subprocess.run([str(_SCRIPT)], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def promtool(*arguments: str) -> str:
    """What it says. RefusedError when it finds something wrong."""
    ran = subprocess.run([_program(), *arguments], check=False, capture_output=True, text=True)
    if ran.returncode != 0:
        raise RefusedError(f"promtool {' '.join(arguments)}: {ran.stdout}{ran.stderr}")
    return ran.stdout
