"""The statements of a text. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PIECE = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|;|[^'\";\-/]+|.", re.DOTALL)


@dataclass(frozen=True)
class Split:
    """Statements that are ended by `;`, and what is written behind the last of them."""

    statements: tuple[str, ...]
    rest: str


def split(text: str) -> Split:
    """Cuts a text at each `;` that is in no text, name or comment."""
    statements, current = [], ""
    for piece in _PIECE.findall(text):
        if piece == ";":
            statements.append(current.strip())
            current = ""
        elif not piece.startswith(("--", "/*")):
            current += piece
        else:
            current += " "
    return Split(tuple(statement for statement in statements if statement), current.strip())


def all_statements(text: str) -> tuple[str, ...]:
    """The statements of a whole text, the last of which needs no `;`."""
    found = split(text)
    return (*found.statements, found.rest) if found.rest else found.statements


def has_rows(statement: str) -> bool:
    """Whether a statement answers with rows: HerdDB executes all others."""
    return statement.lstrip("( \n\t").split(None, 1)[0].upper() == "SELECT" if statement.strip("( \n\t") else False
