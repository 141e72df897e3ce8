"""A number with the words for what it counts."""

from __future__ import annotations


def counted(count: int, one: str, more: str | None = None) -> str:
    """Returns a number and its words: `1 ledger`, `2 ledgers`. `more` are the words for any number but one; by default `one` with an s."""
    return f"{count} {one if count == 1 else more or f'{one}s'}"
