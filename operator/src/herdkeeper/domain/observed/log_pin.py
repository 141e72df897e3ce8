"""What was seen of a pin of the operator's on a tablespace's log."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LogPin:
    """The log is kept from `lsn` (ledger id, entry id) on; None when the znode holds something else, and the whole log is kept. `version`
    is the znode's."""

    lsn: tuple[int, int] | None
    version: int
