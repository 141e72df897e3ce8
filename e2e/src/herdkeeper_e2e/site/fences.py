"""Fenced blocks of Markdown: which parts of a text they are."""

from __future__ import annotations

import re
from collections.abc import Iterator

_FENCED = re.compile(r"^(?P<fence>`{3,}).*?^(?P=fence)[^\n]*$", re.MULTILINE | re.DOTALL)


def outside_fences(text: str) -> Iterator[tuple[str, bool]]:
    """The text in parts, in order, each with whether it is a fenced block."""
    end = 0
    for found in _FENCED.finditer(text):
        yield text[end : found.start()], False
        yield found.group(), True
        end = found.end()
    yield text[end:], False
