"""How many copies of entries may be missing once bookies have stopped under load, and what an audit's findings say beyond that. Pure.

Only what was under way to a bookie when that stopped may lack a copy: an entry is acknowledged by Aq of its Wq bookies, and BookKeeper
replaces a bookie in its ledger from the first entry on that was not acknowledged (docs/limits.md). So may what was under way to the slowest
bookie when a leader stopped: the next one fences the ledger, and copies nothing that was acknowledged. Of striped ledgers an entry that
both of its bookies acknowledged may have one copy only, for a fault of BookKeeper's client, which it has in flight then.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

LAG_SECONDS = 2.0
"""For so long a bookie that serves may be behind the others with what it has yet to write."""
UNANSWERED = 16
"""Entries that a client of striped ledgers has in flight at most (`StripedLedgers.MOST_UNANSWERED`); a SQL writer has one."""


@dataclass(frozen=True)
class Stops:
    """What happened while clients wrote: how many times a bookie or a SQL node stopped, for how many seconds a bookie was silent before it
    was replaced (a machine that stands still; 0 when each ended), and how many entries a second the clients wrote, all together."""

    number: int
    silent_seconds: float
    entries_per_second: float

    @property
    def most(self) -> int:
        """Copies that may be missing."""
        return self.number * (UNANSWERED + math.ceil(self.entries_per_second * (LAG_SECONDS + self.silent_seconds)))

    @property
    def most_acknowledged_by_all(self) -> int:
        """Of them copies that had been acknowledged."""
        return self.number * UNANSWERED


def beyond(status: Mapping[str, Any], striped: Collection[int], stops: Stops) -> Iterator[str]:
    """What a repairing audit's status tells that these stops don't explain; what is said of the racks of striped ledgers left out.

    Args:
        status: of a ReplicationAudit with `repair: Repair`.
        striped: the ids of the ledgers whose entries are on fewer bookies than the ledger.
        stops: what happened before.
    """
    findings = [finding for finding in status.get("findings", []) if finding["kind"] != "TooFewRacks" or finding["ledgerId"] not in striped]
    written = int(status.get("replicasRepaired", 0))
    if written > stops.most:
        yield f"{written} copies were missing: {stops.number} stops explain {stops.most}"
    for finding in findings:
        is_striped = finding["ledgerId"] in striped
        if (finding["kind"], finding.get("repair")) != ("Missing", "Repaired"):
            yield f"it is no copy that was missing and is written: {finding}"
        elif finding["severity"] not in ("UnderReplicated", "Critical") or (finding["severity"] == "Critical" and not is_striped):
            yield f"it is more than a copy of several that was under way: {finding}"
    told = [finding for finding in findings if finding["severity"] == "Critical"]
    # the status has room for some findings only; each of the others is of one entry at least
    critical = sum(map(_entries, told)) + max(0, status.get("findingsBySeverity", {}).get("critical", 0) - len(told))
    if critical > stops.most_acknowledged_by_all:
        explained = f"{stops.number} stops explain {stops.most_acknowledged_by_all}"
        yield f"{critical} acknowledged copies of striped ledgers were missing: {explained}"


def _entries(finding: Mapping[str, Any]) -> int:
    return int(finding["lastEntry"]) - int(finding["firstEntry"]) + 1
