"""Splits texts into statements, and classifies them. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PIECE = re.compile(
    r"'(?:[^']|'')*(?:'|\Z)|\"(?:[^\"]|\"\")*(?:\"|\Z)|`[^`]*(?:`|\Z)|(?:--|//)[^\n\r]*|/\*.*?(?:\*/|\Z)|;|[^'\"`;\-/]+|.", re.DOTALL
)
"""A string, a name or a comment that has no end goes to the end of the text. Comments as in Calcite's Parser.jj, which HerdDB uses."""
_COMMENT = re.compile(r"(?:--|//).*|/\*.*\*/", re.DOTALL)
_NO_WORDS = ("'", '"', "`", "--", "//", "/*")
_GAP = r"\s|(?:--|//)[^\n\r]*(?:[\n\r]|$)|/\*.*?\*/"
_SPACE = rf"(?:\(|{_GAP})*+"
"""Possessive: a comment ends at its first end, whatever follows."""
_BEGINNING = re.compile(_SPACE + r"(?P<word>\w*)", re.DOTALL)
_EXECUTE = rf"{_SPACE}(?:EXEC|EXECUTE|CALL)\b{_SPACE}"
_TRANSACTION = re.compile(rf"(?:{_EXECUTE}|{_SPACE})(?:BEGIN|COMMIT|ROLLBACK)", re.DOTALL | re.IGNORECASE)
_ALTER = re.compile(rf"(?:{_SPACE}ALTER|{_EXECUTE}RENAMETABLE)\b", re.DOTALL | re.IGNORECASE)
_QUERY = re.compile(r"\b(?:SELECT|TABLE)\b", re.IGNORECASE)
_VALUES = re.compile(r"\bVALUES?\b", re.IGNORECASE)
_INNERMOST = re.compile(r"\([^()]*\)")
_WITH_ROWS = ("SELECT", "WITH", "VALUES", "EXPLAIN", "SHOW")


@dataclass(frozen=True)
class Split:
    """Statements that end with `;`, and the rest after the last one."""

    statements: tuple[str, ...]
    rest: str


def split(text: str) -> Split:
    """Split a text at each `;` outside of strings, names and comments. One of them that has no end belongs to the rest."""
    statements, current = [], ""
    for piece in _PIECE.findall(text):
        if piece == ";":
            statements.append(current.strip())
            current = ""
        else:
            current += " " if _COMMENT.fullmatch(piece) else piece
    return Split(tuple(statement for statement in statements if statement), current.lstrip())


def all_statements(text: str) -> tuple[str, ...]:
    """Returns the statements of a whole text; the last one needs no `;`."""
    found = split(text)
    return (*found.statements, found.rest.rstrip()) if found.rest else found.statements


def has_rows(statement: str) -> bool:
    """Returns whether a statement returns rows; HerdDB executes all others."""
    return first_word(statement) in _WITH_ROWS


def placeholders(statement: str) -> int:
    """Returns the number of parameters: each `?` outside of strings, names and comments."""
    return _words(statement).count("?") if "?" in statement else 0


def locks_rows(statement: str) -> bool:
    """Whether a query locks the rows that it reads."""
    return statement.upper().endswith(" FOR UPDATE")


def alters(statement: str) -> bool:
    """Whether HerdDB commits the open transaction before it executes this, and refuses it only then: EXECUTE RENAMETABLE, too."""
    return _ALTER.match(statement) is not None


def is_about_a_transaction(statement: str) -> bool:
    """Whether it begins or ends a transaction by SQL, of which a client would not know. EXECUTE COMMITTRANSACTION is HerdDB's form."""
    return _TRANSACTION.match(statement) is not None


def changes_rows(statement: str) -> bool:
    """Returns whether it changes rows, which the server counts; for DDL it reports 1."""
    return first_word(statement) in ("INSERT", "UPSERT", "UPDATE", "DELETE", "MERGE")


def changes_row_by_row(statement: str) -> bool:
    """Whether it may be an INSERT of several rows, or a change with a query: where HerdDB refuses it at one row, those before it count.

    Rows need no parentheses (`VALUES 1, 2`), may be written as `ROW(1), ROW(2)`, and `TABLE t` is a query.
    """
    if not changes_rows(statement):
        return False
    words = outer = _words(statement)
    while (shorter := _INNERMOST.sub(" ", outer)) != outer:
        outer = shorter
    rows = _VALUES.split(outer, maxsplit=1)[1:]
    one_row = bool(rows) and "," not in rows[0]
    return _QUERY.search(words) is not None or (_VALUES.search(words) is not None and not one_row)


def first_word(statement: str) -> str:
    """Returns the first keyword in capitals, or an empty string."""
    found = _BEGINNING.match(statement)
    return found["word"].upper() if found else ""


def _words(statement: str) -> str:
    """The statement without strings, quoted names and comments."""
    return "".join(" " if piece.startswith(_NO_WORDS) else piece for piece in _PIECE.findall(statement))
