"""What one bookie holds of a ledger, by the ledger's metadata; and the record of it that a drain keeps while the ledgers move.

Once a ledger has moved, its metadata does not name the bookie any more, so what was there must be written down before: a drain's record is
text, one line a ledger, `<ledger id> <first entry of the segment>:<position in its ensemble> …`. The operator writes it, the job that reads
everything back from its new bookies (herdkeeper_jobs.audit.read_back) reads it. Segments keep their first entry and positions their number
when a bookie is replaced (LedgerFragmentReplicator, BookKeeper 4.18).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata, LedgerState
from herdkeeper.codecs.bookkeeper.striping import segment_ranges, striping

TABLESPACE, WRITER = "tablespacename", "leader"
"""The keys of a ledger's custom metadata under which HerdDB 0.29 names the tablespace that it belongs to, and the node that writes it."""
_LINE = re.compile(r"\d+( \d+:\d+)+")


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """One position of one segment's ensemble; the segment is named by its first entry."""

    first_entry_id: int
    position: int


@dataclass(frozen=True, slots=True)
class Share:
    """The places of one bookie in one ledger. `payload_bytes` is an estimate: the ledger's mean entry times the entries of the places."""

    ledger_id: int
    places: tuple[Place, ...]
    closed: bool
    written: bool
    """Whether a writer may still send entries to it: the ledger is open (not in recovery), and its last segment names the bookie."""
    payload_bytes: int = 0
    tablespace: str | None = None
    """The tablespace whose log the ledger is; None when it is none of HerdDB's."""
    writer: str | None = None
    """The SQL node that opened it."""


def share_of(metadata: LedgerMetadata, bookie_id: str) -> Share | None:
    """What a bookie holds of a ledger; None when the ledger does not name it. An open ledger is counted up to its last segment."""
    places = tuple(
        Place(segment.first_entry_id, position)
        for segment in metadata.segments
        for position, other in enumerate(segment.bookies)
        if other == bookie_id
    )
    if not places:
        return None
    tablespace, writer = metadata.custom(TABLESPACE), metadata.custom(WRITER)
    return Share(
        ledger_id=metadata.ledger_id,
        places=places,
        closed=metadata.closed,
        written=metadata.state is LedgerState.OPEN and bookie_id in metadata.segments[-1].bookies,
        payload_bytes=_payload_bytes(metadata, bookie_id),
        tablespace=None if tablespace is None else tablespace.decode(errors="replace"),
        writer=None if writer is None else writer.decode(errors="replace"),
    )


def record_of(shares: Iterable[Share]) -> str:
    """The record's text."""
    return "".join(
        f"{share.ledger_id} {' '.join(f'{place.first_entry_id}:{place.position}' for place in share.places)}\n" for share in shares
    )


def read_record(text: str) -> dict[int, tuple[Place, ...]]:
    """The places by ledger. Raises ValueError naming the line that is none."""
    record: dict[int, tuple[Place, ...]] = {}
    for line in text.splitlines():
        if not _LINE.fullmatch(line):
            raise ValueError(f"line {line[:80]!r} of the record: expected a ledger id and places, like 12 0:1 5000:2")
        ledger_id, *places = line.split(" ")
        record[int(ledger_id)] = tuple(Place(*map(int, place.split(":"))) for place in places)
    return record


def _payload_bytes(metadata: LedgerMetadata, bookie_id: str) -> int:
    if metadata.length is None or metadata.last_entry_id is None or metadata.last_entry_id < 0:
        return 0
    spread = striping(metadata)
    entries = sum(
        spread.count_at(position, segment.entries)
        for segment in segment_ranges(metadata, metadata.last_entry_id)
        for position, other in enumerate(segment.bookies)
        if other == bookie_id
    )
    return metadata.length * entries // (metadata.last_entry_id + 1)
