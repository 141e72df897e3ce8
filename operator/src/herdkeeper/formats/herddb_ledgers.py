"""HerdDB's list of a tablespace's log ledgers, `<herd root>/ledgers/<tablespace uuid>`: the write-ahead log, in order.

JSON: activeLedgers, ledgersTimestamps (milliseconds, when each was added), firstLedger (the first one ever, -1 = none yet), zkVersion
(a stale copy of the znode's version, of no meaning; the znode's own version is what compare-and-set needs).
Source: herddb.cluster.LedgersInfo of HerdDB 0.29.0. An editor other than the leader fences the leader.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from herdkeeper.formats.java_data import MalformedDataError


@dataclass(frozen=True)
class LedgerList:
    """The ledgers of a log. `active` and `added_millis` go together; `first` is None before the first leader."""

    active: tuple[int, ...]
    added_millis: tuple[int, ...]
    first: int | None

    @property
    def complete(self) -> bool:
        """Whether the log still begins with its first ledger, so that a replay from nothing gives the whole state."""
        return self.first is None or (bool(self.active) and self.active[0] == self.first)


def ledgers_path(herd_root: str, tablespace_uuid: str) -> str:
    """Path of the list of a tablespace."""
    return f"{herd_root}/ledgers/{tablespace_uuid}"


def decode_ledgers(data: bytes) -> LedgerList:
    """The list in a znode. An empty znode is an empty list, as for HerdDB.

    Raises:
        MalformedDataError: no JSON object, a field of another type, lists of different lengths, or ids that do not ascend.
    """
    if not data:
        return LedgerList((), (), None)
    try:
        document = json.loads(data)
        active = tuple(int(ledger) for ledger in document["activeLedgers"])
        added = tuple(int(moment) for moment in document["ledgersTimestamps"])
        first = int(document["firstLedger"])
    except (ValueError, TypeError, KeyError) as error:
        raise MalformedDataError(f"ledger list {data[:200]!r}: expected JSON with activeLedgers, ledgersTimestamps, firstLedger") from error
    if len(active) != len(added):
        raise MalformedDataError(f"ledger list with {len(active)} activeLedgers but {len(added)} ledgersTimestamps: expected as many")
    if list(active) != sorted(set(active)):
        raise MalformedDataError(f"activeLedgers {list(active)}: expected ascending ledger ids, since LSNs are ordered by them")
    return LedgerList(active, added, None if first < 0 else first)
