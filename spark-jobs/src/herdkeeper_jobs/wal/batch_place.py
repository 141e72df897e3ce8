"""Places all row changes of a batch by a timeline. Pure; runs in tasks.

The timeline's mappings by transaction id, name and uuid are columns here. A vectorized binary search finds the lines of all rows.
`timeline` defines what a row means, and the errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from herdkeeper.codecs.herddb.log_entry import ROW_CHANGES, LogEntryType
from herdkeeper_jobs.packed_bytes import Flags, Integers
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.spans import NOWHERE, Lsns, Spans
from herdkeeper_jobs.wal.timeline import Timeline, is_in_no_transaction, names_no_table

PLACED_SCHEMA = pa.schema(
    [
        ("table_index", pa.int32()),
        ("row_key", pa.binary()),
        ("row_value", pa.binary()),
        ("deleted", pa.bool_()),
        ("applied_ledger", pa.int64()),
        ("applied_entry", pa.int64()),
        ("ledger_id", pa.int64()),
        ("entry_id", pa.int64()),
    ]
)
"""Row changes that are part of the final state: index of their table in the timeline, LSN of application, and own LSN."""

_CHANGES = np.array([int(kind) for kind in ROW_CHANGES], np.int32)


class _Grouped:
    """Groups of LSNs; they ascend within a group."""

    def __init__(self, first: Integers, lsns: Lsns) -> None:
        """`first`: where each group begins in `lsns`, and where the last one ends."""
        self.first = first
        self.lsns = lsns.and_nowhere()

    @staticmethod
    def of(groups: Iterable[Sequence[Lsn]]) -> _Grouped:
        lists = [list(group) for group in groups]
        first = np.concatenate([[0], np.cumsum([len(group) for group in lists], dtype=np.int64)]).astype(np.int64)
        return _Grouped(first, Lsns.of([lsn for group in lists for lsn in group]))

    def last_before(self, groups: Integers, at: Lsns, or_at: Flags) -> Integers:
        """Returns, for each LSN of `at`, the index of its group's last LSN before it, or equal to it where `or_at`; -1 for none.

        Group -1 is empty.
        """
        known = groups >= 0
        begin, end = np.where(known, self.first[groups], 0), np.where(known, self.first[groups + 1], 0)
        # nearly always the last of its group
        found = end - 1
        rows = np.flatnonzero((begin < end) & ~self._is_below(found, at, or_at))
        low, high, at, or_at = begin[rows], found[rows], at.take(rows), or_at[rows]
        while (searching := low < high).any():
            middle = (low + high) >> 1
            below = self._is_below(middle, at, or_at)
            low, high = np.where(searching & below, middle + 1, low), np.where(searching & ~below, middle, high)
        found[rows] = low - 1
        return np.where(found >= begin, found, -1)

    def _is_below(self, positions: Integers, at: Lsns, or_at: Flags) -> Flags:
        lsns = self.lsns.take(positions)
        return lsns.is_before(at) | (or_at & lsns.is_at(at))


class _Ids:
    """The line of a transaction id; -1 for an unknown one."""

    def __init__(self, ids: Iterable[int]) -> None:
        self.sorted = np.array(sorted(ids), np.int64)

    def lines(self, ids: Integers) -> Integers:
        if not len(self.sorted):
            return np.full(len(ids), -1, np.int64)
        found = np.minimum(np.searchsorted(self.sorted, ids), len(self.sorted) - 1)
        return np.where(self.sorted[found] == ids, found, -1)


class _Needed:
    """Whether entries have an effect: they are later than the start, or belong to a transaction that was open there."""

    def __init__(self, timeline: Timeline) -> None:
        self._start = timeline.start
        begins = {} if self._start is None else {one.transaction_id: one.begin for one in self._start.state.transactions}
        self._ids = _Ids(identity for identity in begins if identity > 0)
        self._begins = Lsns.of([*(begins[int(identity)] for identity in self._ids.sorted), NOWHERE])

    def of(self, lsns: Lsns, transactions: Integers) -> Flags:
        if self._start is None:
            return np.ones(len(lsns), np.bool_)
        lines = self._ids.lines(transactions)
        return Lsns.of([self._start.at]).is_before(lsns) | ((lines >= 0) & self._begins.take(lines).is_before(lsns))


class _Commits:
    """Begins and ends of transactions by id."""

    def __init__(self, spans: Spans) -> None:
        ids, first = np.unique(spans.ids, return_index=True)
        self._ids = _Ids(ids.tolist())
        self._begins = _Grouped(np.append(first, len(spans.ids)), spans.begins)
        self._ends = spans.ends.and_nowhere()
        self._ended = np.append(spans.ended, False)
        self._committed = np.append(spans.committed, False)

    def of(self, lsns: Lsns, transactions: Integers) -> tuple[Lsns, Flags, Flags]:
        """Returns the COMMIT of each row's transaction, which rows have one, and which rows belong to no open transaction."""
        span = self._begins.last_before(self._ids.lines(transactions), lsns, np.ones(len(lsns), np.bool_))
        ends = self._ends.take(span)
        lost = (span < 0) | (self._ended[span] & ends.is_before(lsns))
        return ends, self._committed[span] & ~lost, lost


class _Tables:
    """Which table a name means, and which changes count at the end. Table numbers are arbitrary."""

    def __init__(self, timeline: Timeline) -> None:
        self._group_of_name = {name: number for number, name in enumerate(timeline.names)}
        self._changes = _Grouped.of(lsns for lsns, _ in timeline.names.values())
        uuids = [uuid for _, meanings in timeline.names.values() for uuid in meanings]
        number = {uuid: position for position, uuid in enumerate(dict.fromkeys(uuid for uuid in uuids if uuid is not None))}
        self._table_of_change = np.array([*(-1 if uuid is None else number[uuid] for uuid in uuids), -1], np.int64)
        # index -1 is the last line of each column: no table
        self.position = np.array([*(timeline.positions.get(uuid, -1) for uuid in number), -1], np.int64)
        self._truncated = Lsns.of([*(timeline.truncated.get(uuid, NOWHERE) for uuid in number), NOWHERE])
        makers = [timeline.made.get(uuid, (0, NOWHERE)) for uuid in number]
        self._maker = np.array([*(maker for maker, _ in makers), 0], np.int64)
        self._made = Lsns.of([*(lsn for _, lsn in makers), NOWHERE])

    def groups(self, names: pa.Array) -> Integers:
        """The line of each name in the timeline; -1 for an unknown name."""
        if len(names) and pc.all(pc.equal(names, names[0])).as_py():
            return np.full(len(names), self._group_of_name.get(names[0].as_py(), -1), np.int64)
        encoded = names.dictionary_encode()
        lines = np.array([*(self._group_of_name.get(name, -1) for name in encoded.dictionary.to_pylist()), -1], np.int64)
        found: Integers = lines[encoded.indices.to_numpy(zero_copy_only=False)]
        return found

    def meaning(self, groups: Integers, at: Lsns, or_at: Flags) -> Integers:
        """The table that each name meant before each LSN, or at it where `or_at`; -1 for none."""
        tables: Integers = self._table_of_change[self._changes.last_before(groups, at, or_at)]
        return tables

    def holds(self, tables: Integers, transactions: Integers, applied: Lsns) -> Flags:
        """Whether a change is still in its table at the end. A change before another transaction's table was committed is passed over."""
        passed_over = (transactions > 0) & (self._maker[tables] > 0) & (self._maker[tables] != transactions)
        passed_over &= applied.is_before(self._made.take(tables))
        held: Flags = (self.position[tables] >= 0) & ~passed_over & ~applied.is_before(self._truncated.take(tables))
        return held


class BatchPlacing:
    """Places the row changes of batches by one timeline."""

    def __init__(self, timeline: Timeline) -> None:
        self._needed = _Needed(timeline)
        self._commits = _Commits(timeline.spans)
        self._tables = _Tables(timeline)

    def place(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Converts entries (ledger_id, entry_id, type, transaction_id, table_name, row_key, row_value) to PLACED_SCHEMA, in the same order.
        Only row changes that are part of the final state remain.

        Raises:
            LogInconsistentError: a change's transaction never began, or its table does not exist outside of one.
        """
        ledgers, entries, transactions = (batch.column(name).to_numpy() for name in ("ledger_id", "entry_id", "transaction_id"))
        lsns = Lsns(ledgers, entries)
        needed = self._needed.of(lsns, transactions) & np.isin(batch.column("type").to_numpy(), _CHANGES)
        inside = transactions > 0
        applied, lives, lost = lsns, ~inside, np.zeros(len(lsns), np.bool_)
        if inside.any():
            commits, committed, lost = self._commits.of(lsns, transactions)
            applied, lives, lost = commits.or_else(inside, lsns), ~inside | committed, inside & lost
        # inside of a transaction: the name's meaning just before the COMMIT, whose own DROP TABLEs come last
        tables = self._tables.meaning(self._tables.groups(batch.column("table_name")), applied, ~inside)
        self._check(batch, needed & (lost | (~inside & (tables < 0))))
        kept = needed & lives & self._tables.holds(tables, transactions, applied)
        deleted = batch.column("type").to_numpy() == int(LogEntryType.DELETE)
        rows = batch.select(["row_key", "row_value"])
        if not kept.all():
            at = np.flatnonzero(kept)
            rows, tables, deleted, applied, lsns = rows.take(pa.array(at)), tables[at], deleted[at], applied.take(at), lsns.take(at)
        placed = [
            pa.array(self._tables.position[tables].astype(np.int32)),
            *rows.columns,
            pa.array(deleted),
            *(pa.array(column) for column in (applied.ledgers, applied.entries, lsns.ledgers, lsns.entries)),
        ]
        return pa.RecordBatch.from_arrays(placed, schema=PLACED_SCHEMA)

    def _check(self, batch: pa.RecordBatch, faulty: Flags) -> None:
        if not faulty.any():
            return
        row = {
            name: batch.column(name)[int(np.argmax(faulty))].as_py() for name in ("ledger_id", "entry_id", "transaction_id", "table_name")
        }
        lsn, transaction = Lsn(row["ledger_id"], row["entry_id"]), row["transaction_id"]
        raise is_in_no_transaction(lsn, transaction) if transaction > 0 else names_no_table(lsn, row["table_name"])
