"""How an LSN (ledger id, entry id) is written."""

from __future__ import annotations


def lsn_text(lsn: tuple[int, int]) -> str:
    """Returns an LSN as people and annotations write it: `12,345`."""
    return f"{lsn[0]},{lsn[1]}"


def lsn_fields(lsn: tuple[int, int]) -> dict[str, int]:
    """Returns an LSN as a status has it."""
    return {"ledgerId": lsn[0], "entryId": lsn[1]}
