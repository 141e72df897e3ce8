"""Reads confirmed entries of ledgers as Arrow record batches, from whichever replica has them intact.

It never fences and never recovers: a closed ledger is read to its last entry, an open one to a LAC that the caller learned by
`last_confirmed`. Every digest is verified. An entry that one replica lacks, or holds damaged, is read from the next one; only when no
replica has it the read fails, naming the ledger, the entry and what each bookie said.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType

import pyarrow as pa

from herdkeeper.domain.replication import EntryRange, Striping, segment_ranges, striping
from herdkeeper.formats.bookkeeper_bookie_address import BookieAddress
from herdkeeper.formats.bookkeeper_entry import DigestMismatchError, Entry, EntryDigest, entry_digest
from herdkeeper.formats.bookkeeper_metadata import NO_ENTRY, DigestType, LedgerMetadata
from herdkeeper.formats.bookkeeper_protocol import ReadCode
from herdkeeper_jobs.bookkeeper.connection import BookieConnection, BookieUnreachableError, EntryAnswer
from herdkeeper_jobs.bookkeeper.rate_limit import RateLimit

_STRIPED_WINDOW = 256

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


DEFAULT_SETTINGS = ReadSettings()


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
    settings: ReadSettings = DEFAULT_SETTINGS


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


class LastConfirmedUnknownError(RuntimeError):
    """No bookie of an open ledger's last segment told what it has; trying again later can help."""


def read_partition(spec: PartitionSpec) -> Iterator[pa.RecordBatch]:
    """All entries of the pieces, in the order of the pieces and by entry id within them, as batches of ENTRY_SCHEMA.

    Raises EntryUnreadableError; what was yielded before is right all the same.
    """
    with _Replicas(spec) as replicas:
        entries = itertools.chain.from_iterable(_read_piece(replicas, piece) for piece in spec.pieces)
        yield from _batches(entries, spec.settings)


def plan_partitions(
    ledgers: Sequence[tuple[LedgerMetadata, int]],
    addresses: Mapping[str, BookieAddress],
    partitions: int,
    settings: ReadSettings = DEFAULT_SETTINGS,
    first_entries: Mapping[int, int] | None = None,
) -> tuple[PartitionSpec, ...]:
    """Cuts ledgers, each with the last entry to read (-1: none), into at most `partitions` specs of about equal numbers of entries.

    `first_entries`: per ledger the first entry to read, 0 where it names none.
    The order of entries is kept: spec i holds nothing that comes after anything in spec i+1.
    """
    first = first_entries or {}
    pieces = [piece for metadata, last in ledgers for piece in ledger_pieces(metadata, last, first.get(metadata.ledger_id, 0))]
    return cut_pieces(pieces, addresses, partitions, settings)


def cut_pieces(
    pieces: Sequence[LedgerPiece],
    addresses: Mapping[str, BookieAddress],
    partitions: int,
    settings: ReadSettings = DEFAULT_SETTINGS,
) -> tuple[PartitionSpec, ...]:
    """The same for pieces of ledgers, which are read in the order given."""
    share = max(1, -(-sum(len(piece.entries) for piece in pieces) // partitions))
    groups: list[list[LedgerPiece]] = []
    room = 0
    for piece in pieces:
        first = piece.entries.first
        while first <= piece.entries.last:
            if room == 0:
                groups.append([])
                room = share
            last = min(piece.entries.last, first + room - 1)
            groups[-1].append(replace(piece, entries=EntryRange(first, last)))
            room -= last - first + 1
            first = last + 1
    return tuple(PartitionSpec(tuple(group), dict(addresses), settings) for group in groups)


def ledger_pieces(metadata: LedgerMetadata, last_entry_id: int, first_entry_id: int = 0) -> tuple[LedgerPiece, ...]:
    """One piece per segment that holds entries from `first_entry_id` to `last_entry_id` (-1: none)."""
    return tuple(
        LedgerPiece(
            metadata.ledger_id,
            EntryRange(max(first_entry_id, segment.entries.first), segment.entries.last),
            segment.bookies,
            striping(metadata),
            digest_of(metadata),
        )
        for segment in segment_ranges(metadata, last_entry_id)
        if segment.entries.last >= first_entry_id
    )


def digest_of(metadata: LedgerMetadata) -> EntryDigest:
    """How to verify a ledger's entries; CRC32, the BookKeeper client's default, where old metadata doesn't say."""
    return entry_digest(metadata.digest_type or DigestType.CRC32, metadata.password)


def last_confirmed(metadata: LedgerMetadata, addresses: Mapping[str, BookieAddress], settings: ReadSettings = DEFAULT_SETTINGS) -> int:
    """The last entry that is confirmed for certain, -1 for none: a closed ledger's last entry, else a LAC, learned without fencing.

    Why the maximum over whichever bookies answer is sound: the writer puts into each entry the LAC that it had when it sent it, so every
    such value was confirmed, and a confirmed entry stays confirmed: recovery never closes a ledger below it. Fewer answers only give
    an older LAC. The same holds for the entry before the last segment, since a writer starts a segment behind its LAC. An entry's own id
    proves nothing, it may not be acknowledged yet. Raises LastConfirmedUnknownError when no bookie of the last segment answered.
    """
    if metadata.last_entry_id is not None:
        return metadata.last_entry_id
    segment = metadata.segments[-1]
    digest = digest_of(metadata)
    lacs: list[int] = []
    reasons: list[str] = []
    for bookie_id in segment.bookies:
        try:
            lacs.append(_lac_at(bookie_id, metadata.ledger_id, digest, (addresses, settings)))
        except (BookieUnreachableError, DigestMismatchError, _NotReadError) as error:
            reasons.append(str(error))
    if not lacs:
        raise LastConfirmedUnknownError(f"open ledger {metadata.ledger_id}: no bookie told its LAC: {'; '.join(reasons)}")
    return max(segment.first_entry_id - 1, *lacs)


def _lac_at(bookie_id: str, ledger_id: int, digest: EntryDigest, how: tuple[Mapping[str, BookieAddress], ReadSettings]) -> int:
    """The LAC in the last entry that this bookie has, -1 when it has none."""
    with _connect(bookie_id, *how) as connection:
        answer = connection.read_last_entry(ledger_id)
    if answer.code.means_absent:
        return NO_ENTRY
    if answer.code is not ReadCode.OK:
        raise _NotReadError(f"bookie {bookie_id} answered {answer.code.name}")
    entry = digest.verify(answer.data)
    if entry.ledger_id != ledger_id:
        raise DigestMismatchError(f"bookie {bookie_id} answered with an entry of ledger {entry.ledger_id}")
    return entry.lac


class _NotReadError(Exception):
    """One replica did not give the entry; the message says which bookie and why."""


class _Replicas:
    """The connections of one task, opened when first needed. A bookie that failed once is not asked again by this task."""

    def __init__(self, spec: PartitionSpec) -> None:
        self._spec = spec
        self._open: dict[str, BookieConnection] = {}
        self._failed: dict[str, BookieUnreachableError] = {}

    def __enter__(self) -> _Replicas:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for connection in self._open.values():
            connection.close()

    def usable(self, bookie_id: str) -> bool:
        """Whether this bookie has not failed yet."""
        return bookie_id not in self._failed

    def connection(self, bookie_id: str) -> BookieConnection:
        """Raises BookieUnreachableError, the same again for a bookie that failed before."""
        if bookie_id in self._failed:
            raise self._failed[bookie_id]
        if bookie_id not in self._open:
            try:
                self._open[bookie_id] = _connect(bookie_id, self._spec.addresses, self._spec.settings)
            except BookieUnreachableError as error:
                raise self.fail(error) from error
        return self._open[bookie_id]

    def fail(self, error: BookieUnreachableError) -> BookieUnreachableError:
        """Remembers that a bookie is of no use to this task."""
        self._failed[error.bookie_id] = error
        return error

    def read_one(self, piece: LedgerPiece, entry_id: int, bookie_id: str) -> Entry:
        """One entry from one bookie, verified. Raises _NotReadError."""
        try:
            answer = next(self.connection(bookie_id).read_entries(piece.ledger_id, [entry_id]))
        except BookieUnreachableError as error:
            raise _NotReadError(str(self.fail(error))) from error
        return _verified(piece, bookie_id, answer)


def _connect(bookie_id: str, addresses: Mapping[str, BookieAddress], settings: ReadSettings) -> BookieConnection:
    address = addresses.get(bookie_id)
    if address is None:
        raise BookieUnreachableError(bookie_id, "not registered in ZooKeeper")
    return BookieConnection(bookie_id, address, settings.timeout_seconds, RateLimit(settings.bytes_per_second_per_bookie))


def _verified(piece: LedgerPiece, bookie_id: str, answer: EntryAnswer) -> Entry:
    if answer.code is not ReadCode.OK:
        raise _NotReadError(f"bookie {bookie_id} answered {answer.code.name}")
    try:
        return piece.digest.verify_as(piece.ledger_id, answer.entry_id, answer.data)
    except DigestMismatchError as error:
        raise _NotReadError(f"bookie {bookie_id} has it damaged: {error}") from error


def _read_piece(replicas: _Replicas, piece: LedgerPiece) -> Iterator[tuple[Entry, str]]:
    """Entries with the bookie that each came from."""
    return _read_contiguous(replicas, piece) if piece.striping.contiguous else _read_striped(replicas, piece)


def _read_contiguous(replicas: _Replicas, piece: LedgerPiece) -> Iterator[tuple[Entry, str]]:
    """Runs from one bookie; which one begins depends on the piece, so that tasks don't all read from the first of an ensemble."""
    next_id, last = piece.entries.first, piece.entries.last
    turn = (piece.ledger_id + next_id) % len(piece.bookies)
    reasons: list[str] = []
    for bookie_id in piece.bookies[turn:] + piece.bookies[:turn]:
        try:
            for answer in replicas.connection(bookie_id).read_run(piece.ledger_id, next_id, last):
                yield _verified_or_elsewhere(replicas, piece, bookie_id, answer)
                next_id += 1
        except BookieUnreachableError as error:
            reasons.append(str(replicas.fail(error)))
        else:
            return
    raise EntryUnreadableError(piece.ledger_id, next_id, tuple(reasons))


def _read_striped(replicas: _Replicas, piece: LedgerPiece) -> Iterator[tuple[Entry, str]]:
    """Windows of entries, each entry asked from the first usable bookie of its write set."""
    for start in range(piece.entries.first, piece.entries.last + 1, _STRIPED_WINDOW):
        window = range(start, min(start + _STRIPED_WINDOW, piece.entries.last + 1))
        by_bookie: dict[str, list[int]] = {}
        for entry_id in window:
            by_bookie.setdefault(_first_usable(replicas, piece, entry_id), []).append(entry_id)
        entries: dict[int, tuple[Entry, str]] = {}
        for bookie_id, entry_ids in by_bookie.items():
            for answer in _answers(replicas, piece, bookie_id, entry_ids):
                entries[answer.entry_id] = _verified_or_elsewhere(replicas, piece, bookie_id, answer)
        yield from (entries[entry_id] if entry_id in entries else _elsewhere(replicas, piece, entry_id, ()) for entry_id in window)


def _answers(replicas: _Replicas, piece: LedgerPiece, bookie_id: str, entry_ids: list[int]) -> list[EntryAnswer]:
    """A window's answers of one bookie; none when it fails, since its entries are then read one by one elsewhere."""
    try:
        return list(replicas.connection(bookie_id).read_entries(piece.ledger_id, entry_ids))
    except BookieUnreachableError as error:
        replicas.fail(error)
        return []


def _first_usable(replicas: _Replicas, piece: LedgerPiece, entry_id: int) -> str:
    holders = [piece.bookies[position] for position in piece.striping.write_set(entry_id)]
    return next((bookie_id for bookie_id in holders if replicas.usable(bookie_id)), holders[0])


def _verified_or_elsewhere(replicas: _Replicas, piece: LedgerPiece, bookie_id: str, answer: EntryAnswer) -> tuple[Entry, str]:
    try:
        return _verified(piece, bookie_id, answer), bookie_id
    except _NotReadError as error:
        return _elsewhere(replicas, piece, answer.entry_id, ((bookie_id, str(error)),))


def _elsewhere(replicas: _Replicas, piece: LedgerPiece, entry_id: int, tried: tuple[tuple[str, str], ...]) -> tuple[Entry, str]:
    """The entry from another bookie of its write set than those tried. Raises EntryUnreadableError with what each of them said."""
    reasons = dict(tried)
    for position in piece.striping.write_set(entry_id):
        bookie_id = piece.bookies[position]
        if bookie_id in reasons:
            continue
        try:
            return replicas.read_one(piece, entry_id, bookie_id), bookie_id
        except _NotReadError as error:
            reasons[bookie_id] = str(error)
    raise EntryUnreadableError(piece.ledger_id, entry_id, tuple(reasons.values()))


def _batches(entries: Iterator[tuple[Entry, str]], settings: ReadSettings) -> Iterator[pa.RecordBatch]:
    rows: list[tuple[Entry, str]] = []
    size = 0
    for row in entries:
        rows.append(row)
        size += len(row[0].payload)
        if len(rows) >= settings.batch_entries or size >= settings.batch_bytes:
            yield _to_batch(rows)
            rows, size = [], 0
    if rows:
        yield _to_batch(rows)


def _to_batch(rows: list[tuple[Entry, str]]) -> pa.RecordBatch:
    columns: list[list[object]] = [
        [entry.ledger_id for entry, _ in rows],
        [entry.entry_id for entry, _ in rows],
        [entry.lac for entry, _ in rows],
        [entry.length for entry, _ in rows],
        [entry.payload for entry, _ in rows],
        [bookie_id for _, bookie_id in rows],
    ]
    arrays = [pa.array(column, type=schema_field.type) for column, schema_field in zip(columns, ENTRY_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ENTRY_SCHEMA)
