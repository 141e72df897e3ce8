"""How a checkpoint was verified, in the words of its manifest, and which of them is a proof.

A job that reads its own files again proves that they were written, and not that their rows are the database's; a follower proves nothing of
tables that were taken from itself. Rows that were counted at the leader, which may stand behind either, don't make it a proof.
"""

from __future__ import annotations

REREAD = "files re-read"
ALONE = "alone, whose tables it begins with"


def is_proof(verified: str | None) -> bool:
    """Whether somebody else than the job and its source had the same rows."""
    return bool(verified) and not str(verified).startswith(REREAD) and ALONE not in str(verified)
