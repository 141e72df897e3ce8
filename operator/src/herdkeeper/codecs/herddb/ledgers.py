"""HerdDB's list of a tablespace's log ledgers, `<herd root>/ledgers/<tablespace uuid>`: the write-ahead log, in order.

JSON: activeLedgers, ledgersTimestamps (milliseconds, when each was added), firstLedger (the first one ever, -1 = none yet), zkVersion (a
stale, meaningless copy of the znode's version; compare-and-set needs the znode's own).

Our node program drops ledgers from the beginning on. HerdDB alone, and older versions of that program, dropped them by the clocks of their
writers, so perhaps in the middle. The list does not show that. The znode's version shows it: each write adds or removes one ledger, and the
first write leaves it at 1 (create, set). An editor other than the leader fences the leader.

Source: herddb.cluster.LedgersInfo, ZookeeperMetadataStorageManager.saveActualLedgersList and BookkeeperCommitLog of HerdDB 0.29.0.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata
from herdkeeper.codecs.java_data import MalformedDataError

_TABLESPACE = "tablespaceuuid"
"""In a ledger's custom metadata, by HerdDB's BookkeeperCommitLog."""


@dataclass(frozen=True)
class LedgerList:
    """The ledgers of a log. `active` and `added_millis` are parallel; `first` is None before the first leader. `version`: the znode's."""

    active: tuple[int, ...]
    added_millis: tuple[int, ...]
    first: int | None
    version: int | None = None

    @property
    def begins(self) -> bool:
        """Whether the log still begins with its first ledger."""
        return self.first is None or (bool(self.active) and self.active[0] == self.first)

    @property
    def unexplained_writes(self) -> int | None:
        """How many writes of the list are not explained by its ledgers; None if its version is unknown.

        A drop makes two: adding the ledger, and removing it (measured on 147 lists). A single one is the first write, repeated after a lost
        answer. Below zero, not only HerdDB wrote the list.
        """
        return None if self.version is None else self.version - len(self.active)

    @property
    def complete(self) -> bool:
        """Whether no ledger was ever dropped, so that a replay from nothing gives the whole state. False if the version is unknown."""
        return self.first is None or (self.begins and self.unexplained_writes in (0, 1))


def ledgers_path(herd_root: str, tablespace_uuid: str) -> str:
    return f"{herd_root}/ledgers/{tablespace_uuid}"


def tablespace_of(metadata: LedgerMetadata) -> str | None:
    """Returns the uuid of the tablespace whose log a ledger belongs to, by the ledger's own metadata. None if it names none.

    Ledger ids restart in another BookKeeper cluster: a list of before then names ledgers of others.
    """
    named = metadata.custom(_TABLESPACE)
    return None if named is None else named.decode(errors="replace")


def decode_ledgers(data: bytes, version: int | None = None) -> LedgerList:
    """Decode the list in a znode of that version. An empty znode is an empty list, as for HerdDB.

    Raises MalformedDataError for invalid JSON or fields, lists of different lengths, or ids that don't ascend.
    """
    if not data:
        return LedgerList((), (), None, version)
    try:
        document = json.loads(data)
        active = tuple(int(ledger) for ledger in document["activeLedgers"])
        added = tuple(int(moment) for moment in document["ledgersTimestamps"])
        first = int(document["firstLedger"])
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise MalformedDataError(f"ledger list {data[:200]!r}: expected JSON with activeLedgers, ledgersTimestamps, firstLedger") from error
    if len(active) != len(added):
        raise MalformedDataError(f"ledger list with {len(active)} activeLedgers but {len(added)} ledgersTimestamps: expected as many")
    if list(active) != sorted(set(active)):
        raise MalformedDataError(f"activeLedgers {list(active)}: expected ascending ledger ids, since LSNs are ordered by them")
    return LedgerList(active, added, None if first < 0 else first, version)
