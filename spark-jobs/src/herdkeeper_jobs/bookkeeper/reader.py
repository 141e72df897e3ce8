"""Reads confirmed entries of ledgers as Arrow record batches, from any replica that has them intact.

It never fences and never recovers: a closed ledger is read to its last entry, an open one to a LAC from `end_of_confirmed`. Every digest
is verified. An entry that is missing or damaged on one replica is read from the next one. If no replica has it, the read fails, naming the
ledger, the entry and each bookie's answer. A late bookie is not waited for: another one is asked, too (replicas.py).
"""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper.codecs.bookkeeper.entry import DigestMismatchError, Entry, EntryDigest, entry_digest
from herdkeeper.codecs.bookkeeper.metadata import DigestType, LedgerMetadata
from herdkeeper.codecs.bookkeeper.protocol import ReadCode
from herdkeeper.codecs.bookkeeper.striping import EntryRange, Striping, segment_ranges, striping
from herdkeeper_jobs.bookkeeper.connection import (
    FIRST_READS,
    BookieConnection,
    BookieUnreachableError,
    EntryAnswer,
    EntryRun,
    grouped,
    reads_at_once,
)
from herdkeeper_jobs.bookkeeper.rate_limit import RateLimit
from herdkeeper_jobs.bookkeeper.replicas import Asking, NobodyAnsweredError, Replicas, in_thread

_ENTRY_OVERHEAD = 64
"""Bytes added to an entry's payload when work is divided: header, digest, and the work per entry."""
_MISSES_BEFORE_MOVING = 3
"""After so many missing entries of a bookie, others are asked first."""
_Outcome = int | str | None
"""A bookie's LAC; None: it has no entry of the ledger; or why it does not tell, empty while it is asked."""

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
"""One row per entry; `length` is cumulative over the ledger, `bookie` is the id of the replica that was read."""


@dataclass(frozen=True, slots=True)
class ReadSettings:
    timeout_seconds: float = 15.0
    """For connecting and for each answer."""
    speculative_read_seconds: float = 0.5
    """After this silence a bookie is late: the next one is asked, too, and the first answer counts. Infinity: never."""
    batch_entries: int = 10_000
    batch_bytes: int = 8 * 1024 * 1024
    """A record batch ends at the first limit that it reaches."""
    bytes_per_second_per_bookie: float = math.inf


DEFAULT_SETTINGS = ReadSettings()


@dataclass(frozen=True, slots=True)
class LedgerPiece:
    """A range of entries within one segment, and all that is needed to read it."""

    ledger_id: int
    entries: EntryRange
    bookies: tuple[str, ...]
    striping: Striping
    digest: EntryDigest
    mean_payload: int | None = None
    """Average bytes of an entry of the ledger, rounded up; None if unknown, as for open ledgers."""


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """What one task reads, in order. Picklable, since executors need it."""

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
        """Executors pickle their exceptions for the driver; the default would rebuild from the message alone."""
        return EntryUnreadableError, (self.ledger_id, self.entry_id, self.reasons)


class LastConfirmedUnknownError(RuntimeError):
    """No bookie of an open ledger's last segment reported its last entry; a later retry can help."""


def read_partition(spec: PartitionSpec) -> Generator[pa.RecordBatch, None, None]:
    """Yields all entries of the pieces in order, as batches of ENTRY_SCHEMA.

    Raises EntryUnreadableError; batches yielded before are valid.
    """
    with _replicas(spec) as replicas:
        entries = itertools.chain.from_iterable(_read_piece(replicas, piece) for piece in spec.pieces)
        yield from _batches(entries, spec.settings)


def cut_pieces(
    pieces: Sequence[LedgerPiece],
    addresses: Mapping[str, BookieAddress],
    partitions: int,
    settings: ReadSettings = DEFAULT_SETTINGS,
) -> tuple[PartitionSpec, ...]:
    """Cuts pieces of ledgers into at most `partitions` specs of about equal bytes. The order is kept: spec i holds nothing that comes after
    anything in spec i+1.

    Within a ledger all entries count alike, as its length divided by their number, so nothing is read. Entries of an open ledger, whose
    length is unknown, count as the average of the others.
    """
    known = [piece for piece in pieces if piece.mean_payload is not None]
    counted = sum(len(piece.entries) for piece in known)
    typical = -(-sum(len(piece.entries) * (piece.mean_payload or 0) for piece in known) // counted) if counted else 0
    weights = [_ENTRY_OVERHEAD + (typical if piece.mean_payload is None else piece.mean_payload) for piece in pieces]
    share = -(-sum(len(piece.entries) * weight for piece, weight in zip(pieces, weights, strict=True)) // partitions)
    groups: list[list[LedgerPiece]] = []
    room = 0
    for piece, weight in zip(pieces, weights, strict=True):
        first = piece.entries.first
        while first <= piece.entries.last:
            if room <= 0:
                groups.append([])
                room = share
            # Rounded up: each group but the last has its full share, so there are not too many groups.
            last = min(piece.entries.last, first + -(-room // weight) - 1)
            groups[-1].append(replace(piece, entries=EntryRange(first, last)))
            room -= (last - first + 1) * weight
            first = last + 1
    return tuple(PartitionSpec(tuple(group), dict(addresses), settings) for group in groups)


def ledger_pieces(metadata: LedgerMetadata, last_entry_id: int, first_entry_id: int) -> tuple[LedgerPiece, ...]:
    """Returns one piece per segment with entries from `first_entry_id` to `last_entry_id` (-1: none)."""
    return tuple(
        LedgerPiece(
            metadata.ledger_id,
            EntryRange(max(first_entry_id, segment.entries.first), segment.entries.last),
            segment.bookies,
            striping(metadata),
            digest_of(metadata),
            _mean_payload(metadata),
        )
        for segment in segment_ranges(metadata, last_entry_id)
        if segment.entries.last >= first_entry_id
    )


def _mean_payload(metadata: LedgerMetadata) -> int | None:
    if metadata.length is None or metadata.last_entry_id is None:
        return None
    return -(-metadata.length // (metadata.last_entry_id + 1)) if metadata.last_entry_id >= 0 else 0


def digest_of(metadata: LedgerMetadata) -> EntryDigest:
    """How to verify a ledger's entries. Old metadata has no type: then CRC32, the default of BookKeeper's client."""
    return entry_digest(metadata.digest_type or DigestType.CRC32, metadata.password)


@dataclass(frozen=True, slots=True)
class LastConfirmed:
    """The last certainly confirmed entry of a ledger, -1 for none. `doubt`: why later ones may be confirmed, too; empty if none was."""

    entry_id: int
    doubt: str = ""


def end_of_confirmed(
    metadata: LedgerMetadata, addresses: Mapping[str, BookieAddress], settings: ReadSettings = DEFAULT_SETTINGS
) -> LastConfirmed:
    """Returns the last certainly confirmed entry: a closed ledger's last entry, else a LAC, without fencing.

    The maximum over the answering bookies is safe. The writer puts its current LAC into each entry, so each such value was confirmed.
    Recovery never closes a ledger below a confirmed entry. Fewer answers only give an older LAC: if as many bookies as the ack quorum don't
    answer, later entries may be on them alone. A bookie that has nothing, though it should have confirmed entries, counts as one of these:
    it lost them, perhaps with later ones. The entry before the last segment is confirmed, too, since a writer starts a segment after its
    LAC. An entry's own id proves nothing: it may not be acknowledged yet.

    All bookies are asked at once; late ones are left out once enough others have answered. Raises LastConfirmedUnknownError if no bookie of
    the last segment answered.
    """
    if metadata.last_entry_id is not None:
        return LastConfirmed(metadata.last_entry_id)
    ask = partial(_lac_or_reason, metadata.ledger_id, digest_of(metadata), addresses, settings.timeout_seconds)
    asked = [in_thread(partial(ask, bookie_id)) for bookie_id in metadata.segments[-1].bookies]
    _wait_for_enough(metadata, asked, settings.speculative_read_seconds)
    outcomes = _outcomes(asked)
    if all(isinstance(outcome, str) for outcome in outcomes):
        reasons = "; ".join(reason for reason in outcomes if isinstance(reason, str) and reason)
        raise LastConfirmedUnknownError(f"open ledger {metadata.ledger_id}: no bookie reported its LAC: {reasons}")
    untold = _untold(metadata, outcomes)
    doubt = (
        f"{len(untold)} of {len(asked)} bookies of the open ledger {metadata.ledger_id} don't tell what is confirmed: {', '.join(untold)}"
    )
    return LastConfirmed(_highest_lac(metadata, outcomes), doubt if len(untold) >= metadata.ack_quorum else "")


def _wait_for_enough(metadata: LedgerMetadata, asked: Sequence[Future[_Outcome]], patience_seconds: float) -> None:
    """Waits until all have answered or failed. Late ones are skipped once fewer than the ack quorum are missing: then the others hold every
    acknowledged entry between them."""
    late_at = time.monotonic() + patience_seconds
    pending = set(asked)
    while pending:
        late_in = late_at - time.monotonic()
        if late_in <= 0 and len(_untold(metadata, _outcomes(asked))) < metadata.ack_quorum:
            return
        pending = wait(pending, None if math.isinf(late_in) or late_in <= 0 else late_in, FIRST_COMPLETED).not_done


def _outcomes(asked: Sequence[Future[_Outcome]]) -> list[_Outcome]:
    return [answer.result() if answer.done() else "" for answer in asked]


def _highest_lac(metadata: LedgerMetadata, outcomes: Sequence[_Outcome]) -> int:
    return max([metadata.segments[-1].first_entry_id - 1, *(lac for lac in outcomes if isinstance(lac, int))])


def _untold(metadata: LedgerMetadata, outcomes: Sequence[_Outcome]) -> list[str]:
    """Names the bookies of the last segment that may have had later confirmed entries, and don't tell them."""
    holders = _holders_of_confirmed(metadata, _highest_lac(metadata, outcomes)) if None in outcomes else set()
    untold = []
    for bookie_id, outcome in zip(metadata.segments[-1].bookies, outcomes, strict=True):
        if isinstance(outcome, str):
            untold.append(bookie_id)
        elif outcome is None and bookie_id in holders:
            untold.append(f"{bookie_id} (lacks what it should have)")
    return untold


def _holders_of_confirmed(metadata: LedgerMetadata, last_confirmed: int) -> set[str]:
    """The bookies that should have an entry up to `last_confirmed`. One that the writer never sent any to has nothing in health."""
    spread = striping(metadata)
    return {
        bookie_id
        for segment in segment_ranges(metadata, last_confirmed)
        for position, bookie_id in enumerate(segment.bookies)
        if spread.count_at(position, segment.entries)
    }


def _lac_or_reason(
    ledger_id: int, digest: EntryDigest, addresses: Mapping[str, BookieAddress], timeout_seconds: float, bookie_id: str
) -> _Outcome:
    """Returns the LAC in this bookie's last entry, None without an entry; or the reason why it is unknown."""
    try:
        with BookieConnection(bookie_id, addresses.get(bookie_id), timeout_seconds) as connection:
            answer = connection.read_last_entry(ledger_id)
        if answer.code.means_absent:
            return None
        if answer.code is not ReadCode.OK:
            return f"bookie {bookie_id} answered {answer.code.name}"
        entry = digest.verify(answer.data)
    except (BookieUnreachableError, DigestMismatchError) as error:
        return str(error)
    return entry.lac if entry.ledger_id == ledger_id else f"bookie {bookie_id} answered with an entry of ledger {entry.ledger_id}"


class _NotReadError(Exception):
    """One replica did not give the entry; the message names the bookie and the reason."""


def _replicas(spec: PartitionSpec) -> Replicas:
    settings = spec.settings

    def connect(bookie_id: str, limit: RateLimit) -> BookieConnection:
        return BookieConnection(bookie_id, spec.addresses.get(bookie_id), settings.timeout_seconds, limit)

    return Replicas(connect, settings.bytes_per_second_per_bookie, settings.speculative_read_seconds)


def _verified(piece: LedgerPiece, bookie_id: str, answer: EntryAnswer) -> Entry:
    if answer.code is not ReadCode.OK:
        raise _NotReadError(f"bookie {bookie_id} answered {answer.code.name}")
    try:
        return piece.digest.verify_as(piece.ledger_id, answer.entry_id, answer.data)
    except DigestMismatchError as error:
        raise _NotReadError(f"bookie {bookie_id} has it damaged: {error}") from error


def _read_piece(replicas: Replicas, piece: LedgerPiece) -> Iterator[tuple[Entry, str]]:
    """Yields entries, each with its bookie."""
    holders = _Holders(replicas, piece)
    return _read_contiguous(holders) if piece.striping.contiguous else _read_striped(holders)


class _Holders:
    """The bookies of a piece, in the order in which to ask them."""

    def __init__(self, replicas: Replicas, piece: LedgerPiece) -> None:
        self.replicas = replicas
        self.piece = piece
        self._lacking: Counter[str] = Counter()

    def lacks(self, bookie_id: str) -> None:
        """Notes that the bookie lacked, or had damaged, several entries: others are asked before it."""
        self._lacking[bookie_id] += 1

    def in_order(self, bookies: Sequence[str]) -> list[str]:
        """A slow bookie comes before one that lacks entries: each lacking entry costs a request elsewhere."""
        return sorted(bookies, key=lambda bookie_id: (self._lacking[bookie_id], self.replicas.is_slow(bookie_id)))

    def of(self, entry_id: int) -> list[str]:
        """The bookies that should hold an entry, in the order of the ledger's striping."""
        return [self.piece.bookies[position] for position in self.piece.striping.write_set(entry_id)]


def _read_contiguous(holders: _Holders) -> Iterator[tuple[Entry, str]]:
    """Reads runs from one bookie. The first one depends on the piece, so that tasks don't all read from the same.

    Another bookie continues the run if it answers first, or if this one lacks entries.
    """
    replicas, piece = holders.replicas, holders.piece
    next_id, last = piece.entries.first, piece.entries.last
    turn = (piece.ledger_id + next_id) % len(piece.bookies)
    bookies = piece.bookies[turn:] + piece.bookies[:turn]
    asking: Asking[EntryRun | EntryAnswer] | None = None
    misses: Counter[str] = Counter()
    while next_id <= last:
        try:
            asking, part = replicas.next_part(asking, holders.in_order(bookies), partial(_run, piece.ledger_id, next_id, last))
        except NobodyAnsweredError as error:
            raise EntryUnreadableError(piece.ledger_id, next_id, tuple(error.reasons.values())) from error
        for answer in part.answers() if isinstance(part, EntryRun) else (part,):
            read = _verified_or_elsewhere(holders, asking.bookie_id, answer)
            misses[asking.bookie_id] += read[1] != asking.bookie_id
            yield read
            next_id += 1
        if next_id <= last and misses[asking.bookie_id] >= _MISSES_BEFORE_MOVING:
            holders.lacks(asking.bookie_id)
            del misses[asking.bookie_id]
            replicas.leave(asking)
            asking = None
    if asking is not None:
        replicas.finish(asking)


def _run(ledger_id: int, first: int, last: int, connection: BookieConnection) -> Iterator[EntryRun | EntryAnswer]:
    """Yields the connection's parts, with single entries joined: each part costs a thread."""
    for part in grouped(connection.read_runs(ledger_id, first, last)):
        yield EntryRun(part[0].entry_id, tuple(answer.data for answer in part)) if isinstance(part, list) else part


def _read_striped(holders: _Holders) -> Iterator[tuple[Entry, str]]:
    """Reads windows of entries; requests those of the same bookies together."""
    piece = holders.piece
    start, size = piece.entries.first, FIRST_READS if piece.mean_payload is None else reads_at_once(piece.mean_payload)
    while start <= piece.entries.last:
        window = range(start, min(start + size, piece.entries.last + 1))
        entries: dict[int, tuple[Entry, str]] = {}
        reasons: dict[int, dict[str, str]] = {}
        for offset in range(piece.striping.classes):
            read = _read_from_any(holders, list(window[offset :: piece.striping.classes]), {})
            entries |= read.entries
            reasons |= read.reasons
        for entry_id in window:
            if entry_id not in entries:
                raise EntryUnreadableError(piece.ledger_id, entry_id, tuple(reasons[entry_id].values()))
            yield entries[entry_id]
        start, size = window.stop, reads_at_once(sum(len(entry.payload) for entry, _ in entries.values()) // len(window))


@dataclass(frozen=True, slots=True)
class _ReadEntries:
    """Intact entries with their bookies; for each other entry, what every bookie answered."""

    entries: dict[int, tuple[Entry, str]]
    reasons: dict[int, dict[str, str]]


def _read_from_any(holders: _Holders, entry_ids: list[int], tried: Mapping[str, str]) -> _ReadEntries:
    """Reads entries with the same bookies, from those not in `tried`: the next one is asked for what one lacks."""
    replicas, piece = holders.replicas, holders.piece
    found: dict[int, tuple[Entry, str]] = {}
    reasons = {entry_id: dict(tried) for entry_id in entry_ids}
    untried = [bookie_id for bookie_id in holders.of(entry_ids[0]) if bookie_id not in tried] if entry_ids else []
    while reasons and untried:
        try:
            asking, answers = replicas.next_part(None, holders.in_order(untried), partial(_entries, piece.ledger_id, list(reasons)))
        except NobodyAnsweredError as error:
            reasons = {entry_id: earlier | error.reasons for entry_id, earlier in reasons.items()}
            break
        replicas.finish(asking)
        untried.remove(asking.bookie_id)
        for answer in answers:
            try:
                found[answer.entry_id] = _verified(piece, asking.bookie_id, answer), asking.bookie_id
                del reasons[answer.entry_id]
            except _NotReadError as error:
                reasons[answer.entry_id][asking.bookie_id] = str(error)
        if len(reasons) >= _MISSES_BEFORE_MOVING:
            holders.lacks(asking.bookie_id)
    return _ReadEntries(found, reasons)


def _entries(ledger_id: int, entry_ids: list[int], connection: BookieConnection) -> Iterator[list[EntryAnswer]]:
    """Yields all answers as one part."""
    yield list(connection.read_entries(ledger_id, entry_ids, len(entry_ids)))


def _verified_or_elsewhere(holders: _Holders, bookie_id: str, answer: EntryAnswer) -> tuple[Entry, str]:
    """Verifies an entry; reads it from another bookie if it is missing or damaged. Raises EntryUnreadableError with each bookie's
    answer."""
    try:
        return _verified(holders.piece, bookie_id, answer), bookie_id
    except _NotReadError as error:
        read = _read_from_any(holders, [answer.entry_id], {bookie_id: str(error)})
    if not read.entries:
        raise EntryUnreadableError(holders.piece.ledger_id, answer.entry_id, tuple(read.reasons[answer.entry_id].values()))
    return read.entries[answer.entry_id]


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
    values = [(entry.ledger_id, entry.entry_id, entry.lac, entry.length, entry.payload, bookie_id) for entry, bookie_id in rows]
    arrays = [pa.array(column, field.type) for column, field in zip(zip(*values, strict=True), ENTRY_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ENTRY_SCHEMA)
