"""Takes members out of a Java class, so that the others compile where those can't."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

_AROUND_EACH_TEST = re.compile(r"@(Before|After)(Each|All)\b")


def without(source: str, lines: Collection[int]) -> str:
    """The source with blank lines for the members and imports at these lines (from 1): other lines keep their numbers.

    Unchanged where such a line is neither, or runs around each test: without that, a test would be another one.
    """
    text = source.splitlines()
    taken = {number for number in lines if text[number - 1].startswith("import ")}
    for member in _members(text):
        if not member.isdisjoint(lines):
            if _AROUND_EACH_TEST.search("\n".join(text[number - 1] for number in member)):
                return source
            taken |= member
    if not taken.issuperset(lines):
        return source
    return "".join(("" if number in taken else line) + "\n" for number, line in enumerate(text, 1))


def _members(text: list[str]) -> Iterator[set[int]]:
    """The lines of each member of a class, from its comment or annotation to its closing brace or semicolon, by their indentation."""
    begun = 0
    has_body = False
    for number, line in enumerate(text, 1):
        if not begun and re.match(r" {4}[^\s}]", line):
            begun, has_body = number, False
        has_body = has_body or line.endswith("{")
        if begun and (re.match(r" {4}};?$", line) or (line.endswith(";") and not has_body)):
            yield set(range(begun, number + 1))
            begun = 0
