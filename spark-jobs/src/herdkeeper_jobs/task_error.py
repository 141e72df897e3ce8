"""What a person needs to know of an error that happened in a task: Spark hands it on as the text of a traceback."""

from __future__ import annotations

import re

_OURS = re.compile(r"(herdkeeper[\w.]*\.\w+|\w+Error): ")


def essence(text: str) -> str:
    """The line that names the cause: the last one that names an error of ours, or of Python, else the first."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if _OURS.match(line)]
    return (named or lines or ["failed without a message"])[-1 if named else 0]
