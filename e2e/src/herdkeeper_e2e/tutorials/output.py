"""Whether a command printed what a tutorial shows. `...` within a line stands for any text, and alone on a line for any lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

ANY = "..."


def is_as_shown(printed: str, shown: Sequence[str]) -> bool:
    """True, too, when nothing is shown. Empty lines at the end, and spaces at a line's end, do not count."""
    if not shown:
        return True
    lines = [line.rstrip() for line in printed.rstrip().splitlines()]
    text = "".join(f"{line}\n" for line in lines)
    return re.fullmatch("".join(_pattern(line.rstrip()) for line in shown), text) is not None


def _pattern(line: str) -> str:
    if line == ANY:
        return r"(?:[^\n]*\n)*?"
    return "[^\n]*?".join(re.escape(part) for part in line.split(ANY)) + "\n"
