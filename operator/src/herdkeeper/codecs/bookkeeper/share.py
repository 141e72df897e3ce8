"""What one bookie holds of a ledger, by the ledger's metadata; and a drain's record of it while ledgers move.

A moved ledger's metadata no longer names the bookie, so its content must be recorded before. A record is text, one line per ledger,
`<ledger id> <first entry of the segment>:<position in its ensemble> …`. The operator writes it; the job that reads everything back from the
new bookies (herdkeeper_jobs.audit.read_back) reads it. Segments keep their first entry and positions their number when a bookie is replaced
(LedgerFragmentReplicator, BookKeeper 4.18).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata, LedgerState
from herdkeeper.codecs.bookkeeper.striping import segment_ranges, striping

TABLESPACE, WRITER = "tablespacename", "leader"
"""Keys of a ledger's custom metadata with which HerdDB 0.29 names its tablespace and its writer."""
_LINE = re.compile(r"\d+( \d+:\d+)+")


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A position of a segment's ensemble. The segment is named by its first entry."""

    first_entry_id: int
    position: int


@dataclass(frozen=True, slots=True)
class Share:
    """The places of one bookie in one ledger. `payload_bytes` is an estimate: the ledger's mean entry size times the number of entries."""

    ledger_id: int
    places: tuple[Place, ...]
    closed: bool
    written: bool
    """Whether a writer may still send entries: the ledger is open (not in recovery), and its last segment names the bookie."""
    payload_bytes: int = 0
    tablespace: str | None = None
    """The tablespace of the log, None for other ledgers."""
    writer: str | None = None
    """The SQL node that opened the ledger."""


def share_of(metadata: LedgerMetadata, bookie_id: str) -> Share | None:
    """Returns what a bookie holds of a ledger, or None. An open ledger counts up to its last segment."""
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
    return "".join(
        f"{share.ledger_id} {' '.join(f'{place.first_entry_id}:{place.position}' for place in share.places)}\n" for share in shares
    )


def read_record(text: str) -> dict[int, tuple[Place, ...]]:
    """Returns the places by ledger. Raises ValueError naming an invalid line."""
    record: dict[int, tuple[Place, ...]] = {}
    for line in text.splitlines():
        if not _LINE.fullmatch(line):
            raise ValueError(f"line {line[:80]!r} of the record: expected a ledger id and places, like 12 0:1 5000:2")
        ledger_id, *places = line.split(" ")
        record[int(ledger_id)] = tuple(Place(*map(int, place.split(":"))) for place in places)
    return record


def unread_shares(rounds: Iterable[tuple[str, frozenset[int]]]) -> tuple[Share, ...]:
    """Returns the places that no round has read back for certain, of ledgers that autorecovery may have moved since.

    `rounds` are, in their order, the record of each and the ids of its ledgers that were still written. A round leaves such a ledger out
    as long as it is open, and reads all others. Raises ValueError naming an invalid line.
    """
    unread: dict[int, tuple[Place, ...]] = {}
    for record, written in rounds:
        ids = {str(ledger_id) for ledger_id in {*written, *unread}}
        lines = "".join(line for line in record.splitlines(keepends=True) if line.partition(" ")[0] in ids)
        for ledger_id, places in read_record(lines).items():
            before = unread.pop(ledger_id, ())
            if ledger_id in written:
                unread[ledger_id] = tuple(sorted({*before, *places}))
    return tuple(Share(ledger_id, places, closed=True, written=False) for ledger_id, places in sorted(unread.items()))


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
