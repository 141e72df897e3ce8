"""The statements of a text, and which of them answer with rows. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PIECE = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|--[^\n]*|/\*.*?\*/|;|[^'\"`;\-/]+|.", re.DOTALL)
_NO_PLACEHOLDERS = ("'", '"', "`", "--", "/*")
_BEGINNING = re.compile(r"(?:\s|\(|--[^\n]*(?:\n|$)|/\*.*?\*/)*(?P<word>\w*)", re.DOTALL)
_WITH_ROWS = ("SELECT", "WITH", "VALUES", "EXPLAIN", "SHOW")


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
    return first_word(statement) in _WITH_ROWS


def placeholders(statement: str) -> int:
    """How many parameters it takes: each `?` that is in no text, name or comment."""
    if "?" not in statement:
        return 0
    return sum(piece.count("?") for piece in _PIECE.findall(statement) if not piece.startswith(_NO_PLACEHOLDERS))


def locks_rows(statement: str) -> bool:
    """Whether a query locks the rows that it reads."""
    return statement.upper().endswith(" FOR UPDATE")


def changes_rows(statement: str) -> bool:
    """Whether it changes rows, and the server counts them; of a definition it says 1."""
    return first_word(statement) in ("INSERT", "UPSERT", "UPDATE", "DELETE", "MERGE")


def first_word(statement: str) -> str:
    """What kind of statement it is, in capitals; empty where there is none."""
    found = _BEGINNING.match(statement)
    return found["word"].upper() if found else ""
