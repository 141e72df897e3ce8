"""Reads confirmed entries of ledgers as Arrow record batches, from whichever replica has them intact.

It never fences and never recovers: a closed ledger is read to its last entry, an open one to a LAC that the caller learned by
`last_confirmed`. Every digest is verified. An entry that one replica lacks, or holds damaged, is read from the next one; only when no replica
has it the read fails, naming the ledger, the entry and what each bookie said.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from herdkeeper.domain.replication import EntryRange, SegmentRange, Striping, segment_ranges, striping
from herdkeeper.formats.bookkeeper_bookie_address import BookieAddress
from herdkeeper.formats.bookkeeper_entry import DigestMismatchError, Entry, EntryDigest, entry_digest
from herdkeeper.formats.bookkeeper_metadata import NO_ENTRY, DigestType, LedgerMetadata
from herdkeeper.formats.bookkeeper_protocol import ReadCode
from herdkeeper_jobs.bookkeeper.connection import BookieConnection, BookieUnreachableError, EntryAnswer
from herdkeeper_jobs.bookkeeper.rate_limit import RateLimit

ENTRY_SCHEMA = pa.schema(
    [
        pa.field("ledger_id", pa.int64(), nullable=False),
        pa.field("entry_id", pa.int64(), nullable=False),
        pa.field("lac", pa.int64(), nullable=False),
        pa.field("length", pa.int64(), nullable=False),
        pa.field("payload", pa.binary(), nullable=False),
        pa.field("bookie", pa.string(), nullable=False),
    ]
)
"""One row per entry; `length` is cumulative over the ledger, `bookie` is the id of the one that the entry was read from."""


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """Limits of a reader."""

    timeout_seconds: float = 15.0
    """For connecting and for each answer."""
    batch_entries: int = 10_000
    batch_bytes: int = 8 * 1024 * 1024
    """A record batch ends at whichever of the two comes first."""
    bytes_per_second_per_bookie: float = float("inf")


@dataclass(frozen=True, slots=True)
class LedgerPiece:
    """A range of entries within one segment, and all that is needed to read it."""

    ledger_id: int
    entries: EntryRange
    bookies: tuple[str, ...]
    striping: Striping
    digest: EntryDigest


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """What one task reads, in order. Picklable: it travels to executors."""

    pieces: tuple[LedgerPiece, ...]
    addresses: Mapping[str, BookieAddress]
    settings: ReadSettings = field(default_factory=ReadSettings)


class EntryUnreadableError(RuntimeError):
    """No replica gave the entry intact."""

    def __init__(self, ledger_id: int, entry_id: int, reasons: tuple[str, ...]) -> None:
        super().__init__(f"entry {entry_id} of ledger {ledger_id} cannot be read: {'; '.join(reasons)}")
        self.ledger_id = ledger_id
        self.entry_id = entry_id
        self.reasons = reasons

    def __reduce__(self) -> tuple[type[EntryUnreadableError], tuple[int, int, tuple[str, ...]]]:
        """Executors send their exceptions to the driver pickled, and the default rebuilds from the message alone."""
        return EntryUnreadableError, (self.ledger_id, self.entry_id, self.reasons)


def read_partition(spec: PartitionSpec) -> Iterator[pa.RecordBatch]:
    """All entries of the pieces, in the order of the pieces and by entry id within them, as batches of ENTRY_SCHEMA.

    Raises EntryUnreadableError; what was yielded before is right all the same.
    """
    raise NotImplementedError


def plan_partitions(
    ledgers: Sequence[tuple[LedgerMetadata, int]],
    addresses: Mapping[str, BookieAddress],
    partitions: int,
    settings: ReadSettings | None = None,
) -> tuple[PartitionSpec, ...]:
    """Cuts ledgers, each with the last entry to read (-1: none), into at most `partitions` specs of about equal numbers of entries.

    The order of entries is kept: spec i holds nothing that comes after anything in spec i+1.
    """
    raise NotImplementedError


def last_confirmed(metadata: LedgerMetadata, addresses: Mapping[str, BookieAddress], settings: ReadSettings | None = None) -> int:
    """The last entry that is confirmed for certain, -1 for none: a closed ledger's last entry, else a LAC, learned without fencing.

    A lower bound that only grows. Raises LastConfirmedUnknownError when no bookie of the last segment answered.
    """
    raise NotImplementedError
