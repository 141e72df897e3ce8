"""Markdown as GitHub reads it, written as Python-Markdown reads it: lists and tables need an empty line in front of them there."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LIST = re.compile(r"(?:[-*+]|\d+\.) +\S")
_FENCE = re.compile(r" *(```|~~~)")


def with_blocks_apart(text: str) -> str:
    """The same text with an empty line before each list and table that follows a paragraph or a fenced block. These stay as they are."""
    return "\n".join(_lines(text.split("\n")))


def _lines(lines: list[str]) -> Iterator[str]:
    fenced, before = False, ""
    for line in lines:
        if not fenced and _begins_block(line) and _needs_gap(before):
            yield ""
        yield line
        if _FENCE.match(line):
            fenced = not fenced
        # a line that is indented goes on with what the line before it is part of
        before = before if line.startswith(" ") and not fenced else line


def _begins_block(line: str) -> bool:
    return bool(_LIST.match(line)) or line.startswith("|")


def _needs_gap(line: str) -> bool:
    return bool(line.strip()) and not (_begins_block(line) or line.startswith("#"))
