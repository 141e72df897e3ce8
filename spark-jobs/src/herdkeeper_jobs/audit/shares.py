"""Compares what each bookie should hold by the metadata with what was read, column by column. Pure.

A share is what one position of one segment should hold. A ledger of five replicas has five, so a cluster has tens of millions. So there are
no objects per share, only arithmetic over whole columns (docs/measurements.md). Only ledgers with a bad copy yield single holdings, for the
second pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from herdkeeper.codecs.bookkeeper.striping import segment_ranges
from herdkeeper_jobs.audit.bookie_health import BookieTally
from herdkeeper_jobs.copies.holding import CopyState
from herdkeeper_jobs.copies.plan import AuditedLedger

Numbers = npt.NDArray[np.int64]
_STATES = tuple(CopyState)
_IS_SUSPECT = np.array([state.is_suspect for state in _STATES])
_IS_INTACT = np.array([state.is_intact for state in _STATES])
_HIGHEST = np.uint64(2**64 - 1)
SEGMENTS = pa.schema(
    [
        pa.field("ledger_id", pa.int64(), nullable=False),
        pa.field("segment", pa.int32(), nullable=False),
        pa.field("first", pa.int64(), nullable=False),
        pa.field("last", pa.int64(), nullable=False),
        pa.field("write_quorum", pa.int32(), nullable=False),
        pa.field("bookies", pa.list_(pa.string()), nullable=False),
    ]
)
"""One row per segment with entries: `first` to `last`, and the ensemble in order."""


class CopiesLostError(RuntimeError):
    """Some copy was not read exactly once; the message names the first share."""


@dataclass(frozen=True, slots=True)
class Matched:
    """The result of a first pass."""

    tallies: dict[str, BookieTally]
    """By bookie: all copies of ledgers without a suspect, and the bytes read of all ledgers."""
    suspects: pa.Table
    """All holdings, good ones too, of ledgers with bad or disagreeing copies."""


def segments_of(ledgers: Iterable[AuditedLedger]) -> pa.Table:
    """The metadata's segments, up to the entry that each ledger is audited to."""
    rows = [
        (ledger.metadata.ledger_id, part.segment, part.entries.first, part.entries.last, ledger.metadata.write_quorum, part.bookies)
        for ledger in ledgers
        for part in segment_ranges(ledger.metadata, ledger.last_entry_id)
    ]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(SEGMENTS)
    return pa.Table.from_arrays([pa.array(column, field.type) for column, field in zip(columns, SEGMENTS, strict=True)], schema=SEGMENTS)


def match(segments: pa.Table, holdings: pa.Table) -> Matched:
    """Compares holdings (schema.HOLDINGS_ARROW, in any order) with the segments (SEGMENTS) that they should cover.

    Raises CopiesLostError unless each share's holdings have exactly its copies.
    """
    shares = _Shares.of(segments)
    found = _Found.of(holdings, shares)
    _require_no_losses(shares, found)
    suspect = np.zeros(len(shares.ledgers), bool)
    suspect[found.ledger[_IS_SUSPECT[found.state]]] = True
    suspect[_different_copies(shares, found, holdings)] = True
    suspect[_broken_lengths(found, holdings)] = True
    of_suspects = suspect[found.ledger]
    return Matched(_tallies(shares, found, suspect), holdings.filter(pa.array(of_suspects)))


@dataclass(frozen=True, slots=True)
class _Shares:
    """One element per share, except in the first three arrays."""

    ledgers: Numbers
    """Ids, ascending."""
    names: pa.Array
    """Bookie ids."""
    segment_keys: Numbers
    """Per row of SEGMENTS, a number for its ledger and segment."""
    first_share: Numbers
    """Per row of SEGMENTS."""
    most_segments: int
    ledger: Numbers
    """Index in `ledgers`."""
    bookie: Numbers
    """Index in `names`."""
    copies: Numbers
    row: Numbers
    """Row of SEGMENTS."""
    position: Numbers
    ensemble: Numbers
    quorum: Numbers

    @classmethod
    def of(cls, segments: pa.Table) -> _Shares:
        bookies = segments.column("bookies").combine_chunks()
        encoded = bookies.flatten().dictionary_encode()
        sizes = np.diff(bookies.offsets.to_numpy()).astype(np.int64)
        row = np.repeat(np.arange(len(sizes)), sizes)
        first_share = np.cumsum(sizes) - sizes
        position = np.arange(len(row)) - first_share[row]
        ledgers, ledger = np.unique(_column(segments, "ledger_id"), return_inverse=True)
        segment = _column(segments, "segment")
        most_segments = int(segment.max(initial=0)) + 1
        entries = (_column(segments, "first")[row], _column(segments, "last")[row])
        ensemble, quorum = sizes[row], _column(segments, "write_quorum")[row]
        return cls(
            ledgers=ledgers,
            names=encoded.dictionary,
            segment_keys=ledger * most_segments + segment,
            first_share=first_share,
            most_segments=most_segments,
            ledger=ledger[row],
            bookie=encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64),
            copies=_copies(position, entries, (ensemble, quorum)),
            row=row,
            position=position,
            ensemble=ensemble,
            quorum=quorum,
        )


@dataclass(frozen=True, slots=True)
class _Found:
    """One element per holding."""

    share: Numbers
    ledger: Numbers
    state: Numbers
    """Index in CopyState."""
    copies: Numbers
    bytes_read: Numbers

    @classmethod
    def of(cls, holdings: pa.Table, shares: _Shares) -> _Found:
        ledger_id = _column(holdings, "ledger_id")
        ledger = _place_in(shares.ledgers, ledger_id)
        row = _place_in(shares.segment_keys, ledger * shares.most_segments + _column(holdings, "segment"))
        share = shares.first_share[row] + _column(holdings, "position") if len(row) else row
        bookie = pc.index_in(holdings.column("bookie_id"), value_set=shares.names).fill_null(-1).to_numpy()
        if (shares.bookie[share] != bookie).any():
            stray = int(np.flatnonzero(shares.bookie[share] != bookie)[0])
            raise CopiesLostError(f"ledger {ledger_id[stray]}: copies came back from a bookie that got no request for them")
        state = pc.index_in(holdings.column("state"), value_set=pa.array(_STATES, pa.string()))
        return cls(share, ledger, state.to_numpy().astype(np.int64), _column(holdings, "copies"), _column(holdings, "bytes_read"))


def _copies(position: Numbers, entries: tuple[Numbers, Numbers], spread: tuple[Numbers, Numbers]) -> Numbers:
    """Vectorized `Striping.count_at`: each whole turn of E entries holds Wq copies; the rest is less than a turn.

    The rest's first entry is `ahead` positions before this one, the next one a position less, and so on around the ensemble. Entries less
    than Wq positions before are held here.
    """
    (first, last), (ensemble, quorum) = entries, spread
    turns, rest = np.divmod(last - first + 1, ensemble)
    ahead = (position - (last - rest + 1)) % ensemble
    down_to = np.maximum(ahead - rest + 1, 0)
    before_the_end = np.maximum(np.minimum(ahead, quorum - 1) - down_to + 1, 0)
    around = np.maximum(quorum - (ensemble - np.maximum(rest - ahead - 1, 0)), 0)
    counted: Numbers = turns * quorum + np.where(rest > 0, before_the_end + around, 0)
    return counted


def _place_in(known: Numbers, wanted: Numbers) -> Numbers:
    """The index of each wanted number, by hashing (a fifth of a binary search's time). Raises CopiesLostError for an unknown number."""
    place = pc.index_in(pa.array(wanted), value_set=pa.array(known))
    if place.null_count:
        raise CopiesLostError("copies came back from a segment that was not requested")
    found: Numbers = place.to_numpy().astype(np.int64)
    return found


def _require_no_losses(shares: _Shares, found: _Found) -> None:
    back = np.bincount(found.share, found.copies, len(shares.copies)).astype(np.int64)
    wrong = np.flatnonzero(back != shares.copies)
    if len(wrong):
        first = wrong[0]
        where = f"ledger {shares.ledgers[shares.ledger[first]]} on bookie {shares.names[int(shares.bookie[first])]}"
        raise CopiesLostError(
            f"{shares.copies.sum()} copies were to be read, {back.sum()} came back; {len(wrong)} shares are wrong, the first "
            f"in {where}: {shares.copies[first]} and {back[first]}"
        )


def _different_copies(shares: _Shares, found: _Found, holdings: pa.Table) -> Numbers:
    """Finds, as indexes in `ledgers`, those with two fully read, intact shares that differ in common entries.

    It compares sums over a share's entries of one class: entries with copies in the same positions.
    """
    content = holdings.column("content").combine_chunks()
    counts = np.diff(content.offsets.to_numpy()).astype(np.int64)
    if not counts.any():
        return np.empty(0, np.int64)
    width = int(counts.max())
    of_holding = np.repeat(np.arange(len(counts)), counts)
    own_class = np.arange(len(of_holding)) - (np.cumsum(counts) - counts)[of_holding]
    sums = np.zeros(len(shares.copies) * width, np.uint64)
    np.add.at(sums, found.share[of_holding] * width + own_class, content.flatten().to_numpy().view(np.uint64))
    intact = np.bincount(found.share, np.where(_IS_INTACT[found.state], found.copies, 0), len(shares.copies)).astype(np.int64)
    read = np.zeros(len(shares.copies), bool)
    read[found.share[counts > 0]] = True
    classes = np.arange(width)
    held = (shares.position[:, None] - classes) % shares.ensemble[:, None] < shares.quorum[:, None]
    held = np.where((shares.ensemble == shares.quorum)[:, None], classes == 0, held & (classes < shares.ensemble[:, None]))
    comparable = (held & (read & (intact == shares.copies))[:, None]).reshape(-1)
    place = (shares.row[:, None] * width + classes).reshape(-1)[comparable]
    rows = len(shares.segment_keys)
    lowest, highest = np.full(rows * width, _HIGHEST), np.zeros(rows * width, np.uint64)
    np.minimum.at(lowest, place, sums[comparable])
    np.maximum.at(highest, place, sums[comparable])
    different: Numbers = shares.segment_keys[np.flatnonzero(lowest < highest) // width] // shares.most_segments
    return different


def _broken_lengths(found: _Found, holdings: pa.Table) -> Numbers:
    """Finds, as indexes in `ledgers`, those with two lengths up to the same entry, or a length other than 0 before the first."""
    known = np.asarray(holdings.column("length_after").is_valid())
    if not known.any():
        return np.empty(0, np.int64)
    with_lengths = holdings.filter(pa.array(known))
    ledger = np.tile(found.ledger[known], 2)
    entry = np.concatenate([_column(with_lengths, "first") - 1, _column(with_lengths, "last")])
    length = np.concatenate([_column(with_lengths, "length_before"), _column(with_lengths, "length_after")])
    order = np.lexsort((length, entry, ledger))
    ledger, entry, length = ledger[order], entry[order], length[order]
    same = (ledger[1:] == ledger[:-1]) & (entry[1:] == entry[:-1])
    broken: Numbers = np.concatenate([ledger[1:][same & (length[1:] != length[:-1])], ledger[(entry == -1) & (length != 0)]])
    return broken


def _tallies(shares: _Shares, found: _Found, suspect: npt.NDArray[np.bool_]) -> dict[str, BookieTally]:
    bookies, states = len(shares.names), len(_STATES)
    of_holding = shares.bookie[found.share]
    bytes_read = np.bincount(of_holding, found.bytes_read, bookies).astype(np.int64)
    clean = ~suspect[found.ledger]
    copies = np.bincount(of_holding[clean] * states + found.state[clean], found.copies[clean], bookies * states).astype(np.int64)
    held = np.zeros((len(shares.ledgers), bookies), bool)
    held[shares.ledger[shares.copies > 0], shares.bookie[shares.copies > 0]] = True
    ledgers = held[~suspect].sum(axis=0)
    return {
        name: BookieTally(int(ledgers[place]), int(bytes_read[place]), tuple(copies[place * states : (place + 1) * states].tolist()))
        for place, name in enumerate(shares.names.to_pylist())
    }


def _column(table: pa.Table, name: str) -> Numbers:
    column: Numbers = table.column(name).to_numpy().astype(np.int64, copy=False)
    return column
