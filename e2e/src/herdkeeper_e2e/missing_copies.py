"""How many copies may be missing after bookies stopped under load, and which findings of an audit exceed that. Pure.

Only entries in flight to a stopped bookie may lack a copy: Aq of Wq bookies acknowledge an entry. BookKeeper replaces a bookie in a ledger
from the first unacknowledged entry on (docs/limits/other-clients.md). So may entries in flight to the slowest bookie when a leader stopped:
the next leader fences the ledger, and copies nothing that was acknowledged. In striped ledgers, an entry in flight then may have a single
copy although both bookies acknowledged it: a fault of BookKeeper's client.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

LAG_SECONDS = 2.0
"""How far a serving bookie may be behind the others."""
UNANSWERED = 16
"""Maximum entries in flight of a client of striped ledgers (`StripedLedgers.MOST_UNANSWERED`); a SQL writer has one."""


@dataclass(frozen=True)
class Stops:
    """What happened during the writes: how often a bookie or a SQL node stopped, and the clients' total entries per second. Also for how
    many seconds a bookie was silent before its replacement (a frozen machine; 0 if it ended).
    """

    number: int
    silent_seconds: float
    entries_per_second: float

    @property
    def most(self) -> int:
        """Maximum number of missing copies."""
        return self.number * (UNANSWERED + math.ceil(self.entries_per_second * (LAG_SECONDS + self.silent_seconds)))

    @property
    def most_acknowledged_by_all(self) -> int:
        """Of these, copies that had been acknowledged."""
        return self.number * UNANSWERED


def beyond(status: Mapping[str, Any], striped: Collection[int], stops: Stops) -> Iterator[str]:
    """Yields what a repairing audit's status reports beyond these stops, except for racks of striped ledgers.

    Args:
        status: of a ReplicationAudit with `repair: Repair`.
        striped: the ids of ledgers with more bookies than copies of an entry.
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
    # the status has room for only some findings; each of the others covers at least one entry
    critical = sum(map(_entries, told)) + max(0, status.get("findingsBySeverity", {}).get("critical", 0) - len(told))
    if critical > stops.most_acknowledged_by_all:
        explained = f"{stops.number} stops explain {stops.most_acknowledged_by_all}"
        yield f"{critical} acknowledged copies of striped ledgers were missing: {explained}"


def _entries(finding: Mapping[str, Any]) -> int:
    return int(finding["lastEntry"]) - int(finding["firstEntry"]) + 1
