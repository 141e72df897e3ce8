"""Compares a command's output with a tutorial. `...` within a line stands for any text, and alone on a line for any lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

ANY = "..."


def is_as_shown(printed: str, shown: Sequence[str]) -> bool:
    """True also if nothing is shown. Trailing empty lines and spaces don't count."""
    if not shown:
        return True
    lines = [line.rstrip() for line in printed.rstrip().splitlines()]
    text = "".join(f"{line}\n" for line in lines)
    return re.fullmatch("".join(_pattern(line.rstrip()) for line in shown), text) is not None


def _pattern(line: str) -> str:
    if line == ANY:
        return r"(?:[^\n]*\n)*?"
    return "[^\n]*?".join(re.escape(part) for part in line.split(ANY)) + "\n"
