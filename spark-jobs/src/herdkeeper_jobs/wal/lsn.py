"""A position in a tablespace's log."""

from __future__ import annotations

import re
from typing import NamedTuple

_TEXT = re.compile(r"(\d+),(\d+)")


class Lsn(NamedTuple):
    """Ledger and entry. Compares in log order: ledger ids ascend along a log, and HerdDB compares the same way."""

    ledger_id: int
    entry_id: int

    def __str__(self) -> str:
        return f"{self.ledger_id},{self.entry_id}"

    @staticmethod
    def parse(text: str) -> Lsn:
        """Parses `LEDGER,ENTRY`. Raises ValueError, naming the text and the form."""
        match = _TEXT.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"{text!r} is not an LSN: expected LEDGER,ENTRY, for example 12,345")
        return Lsn(int(match.group(1)), int(match.group(2)))
