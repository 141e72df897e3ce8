"""How a checkpoint was verified, in its manifest's words, and which of them is a proof.

Rereading its own files proves only that a job wrote them, not that the rows are the database's. A follower proves nothing about tables that
were read from itself. Rows counted at the leader, which both may mention, are no proof either.
"""

from __future__ import annotations

REREAD = "files re-read"
ALONE = "alone, whose tables it begins with"


def alone(follower: str) -> str:
    """Returns the words for a checkpoint that was compared only with the follower, at host:port, with whose tables its chain begins."""
    return f"compared with the follower {follower} {ALONE}"


def is_proof(verified: str | None) -> bool:
    """Returns whether a party other than the job and its source had the same rows."""
    return bool(verified) and not str(verified).startswith(REREAD) and ALONE not in str(verified)
