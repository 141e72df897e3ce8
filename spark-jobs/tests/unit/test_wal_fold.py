"""The fold against a plain replay: HerdDB's own rules, one entry after the other, in dictionaries."""

from __future__ import annotations

import sys
import tracemalloc
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from plain_placing import place
from pyspark.sql import Row, SparkSession

from herdkeeper.codecs.herddb.index import IndexDefinition, decode_index, encode_index
from herdkeeper.codecs.herddb.log_entry import ROW_CHANGES, LogEntry, LogEntryType, encode_log_entry
from herdkeeper.codecs.herddb.table import Column, ColumnType, TableDefinition, decode_table, encode_table
from herdkeeper_jobs.spark_tasks import RowsInTasks, map_in_tasks
from herdkeeper_jobs.wal.blocks import Blocks, blocks_of
from herdkeeper_jobs.wal.decode import LOG_SCHEMA, decode_batches
from herdkeeper_jobs.wal.fold import _highest_keys, highest_auto_increments, last_changes, place_changes
from herdkeeper_jobs.wal.last_writer import LAST_SCHEMA
from herdkeeper_jobs.wal.log_state import StartingPoint, StateTransaction
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.outline import log_extent, log_outline, log_timeline
from herdkeeper_jobs.wal.spans import BOUNDARY_SCHEMA, Control, ControlEntry, LogInconsistentError
from herdkeeper_jobs.wal.task_log import TaskLog
from herdkeeper_jobs.wal.timeline import Timeline, walk

T = TypeVar("T")
Log = list[tuple[Lsn, LogEntry]]
Tables = dict[str, dict[bytes, bytes]]
"""Key to value, by table uuid."""


COLUMNS = (Column("k", ColumnType.LONG, 0, nullable=False), Column("v", ColumnType.STRING, 1))


def table(name: str, uuid: str, *, auto_increment: bool = False, columns: tuple[Column, ...] = COLUMNS) -> TableDefinition:
    return TableDefinition("demo", name, uuid, columns, ("k",), auto_increment, 1)


def entry(kind: LogEntryType, transaction: int = 0, name: str = "", key: bytes = b"", value: bytes = b"") -> LogEntry:
    return LogEntry(1000, kind, transaction, name, key, value)


def create(name: str, uuid: str, transaction: int = 0) -> LogEntry:
    return entry(LogEntryType.CREATE_TABLE, transaction, name, value=encode_table(table(name, uuid)))


def insert(name: str, key: bytes, value: bytes, transaction: int = 0) -> LogEntry:
    return entry(LogEntryType.INSERT, transaction, name, key, value)


def in_one_ledger(*entries: LogEntry) -> Log:
    return [(Lsn(1, number), item) for number, item in enumerate(entries)]


@dataclass
class _Buffered:
    changes: list[LogEntry] = field(default_factory=list)
    created: set[str] = field(default_factory=set)
    """Table names, as in `dropped`: HerdDB uses names here."""
    dropped: set[str] = field(default_factory=set)
    dropped_indexes: set[str] = field(default_factory=set)


@dataclass
class _Index:
    definition: IndexDefinition
    table: str
    """Its uuid."""
    created_in: int
    """`createdInTransaction`: 0 once it is committed, or was made outside of transactions."""


class Replay:
    """Applies a log as HerdDB does: a change resolves names when applied, a COMMIT applies the buffered changes."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.tables: Tables = {}
        self.created_in: dict[str, int] = {}
        """`createdInTransaction` of uncommitted tables, by uuid."""
        self.indexes: dict[str, _Index] = {}
        self.open: dict[int, _Buffered] = {}

    def apply(self, item: LogEntry) -> None:
        match item.type:
            case LogEntryType.BEGIN:
                self.open[item.transaction_id] = _Buffered()
            case LogEntryType.COMMIT:
                self._commit(item.transaction_id)
            case LogEntryType.ROLLBACK:
                self._rollback(item.transaction_id)
            case LogEntryType.INSERT | LogEntryType.UPDATE | LogEntryType.DELETE:
                if item.transaction_id > 0:
                    self.open[item.transaction_id].changes.append(item)
                else:
                    self._change(item)
            case LogEntryType.CREATE_INDEX | LogEntryType.DROP_INDEX:
                self._define_index(item)
            case _:
                self._define(item)

    def _define(self, item: LogEntry) -> None:
        buffered = self.open.get(item.transaction_id)
        match item.type:
            case LogEntryType.CREATE_TABLE:
                uuid = decode_table(item.value).uuid
                self.names[item.table] = uuid
                self.tables[uuid] = {}
                if buffered is not None:
                    buffered.created.add(item.table)
                    buffered.dropped.discard(item.table)
                    self.created_in[uuid] = item.transaction_id
            case LogEntryType.ALTER_TABLE:
                altered = decode_table(item.value)
                if self.names.get(altered.name, altered.uuid) != altered.uuid:
                    self._drop(self.names[altered.name])
                self.names = {name: uuid for name, uuid in self.names.items() if uuid != altered.uuid} | {altered.name: altered.uuid}
            case LogEntryType.DROP_TABLE if buffered is not None:
                buffered.created.discard(item.table)
                buffered.dropped.add(item.table)
            case LogEntryType.DROP_TABLE:
                self._drop(self.names[item.table])
            case LogEntryType.TRUNCATE:
                self.tables[self.names[item.table]].clear()

    def _define_index(self, item: LogEntry) -> None:
        buffered = self.open.get(item.transaction_id)
        if item.type is LogEntryType.CREATE_INDEX:
            index = decode_index(item.value)
            self.indexes[index.name] = _Index(index, self.names[index.table], item.transaction_id)
            if buffered is not None:
                buffered.dropped_indexes.discard(index.name)
        elif buffered is not None:
            buffered.dropped_indexes.add(item.value.decode())
        else:
            self.indexes.pop(item.value.decode(), None)

    def _commit(self, transaction: int) -> None:
        buffered = self.open.pop(transaction)
        for change in buffered.changes:
            # skips a table of that name that another transaction has not committed
            if change.table in self.visible(transaction):
                self._change(change)
        self.created_in = {uuid: maker for uuid, maker in self.created_in.items() if maker != transaction}
        for index in self.indexes.values():
            index.created_in = 0 if index.created_in == transaction else index.created_in
        for name in buffered.dropped & self.names.keys():
            self._drop(self.names[name])
        for name in buffered.dropped_indexes & self.indexes.keys():
            del self.indexes[name]

    def _rollback(self, transaction: int) -> None:
        for name in self.open.pop(transaction).created & self.names.keys():
            if self.created_in.get(self.names[name], transaction) == transaction:
                self._drop(self.names[name])

    def _drop(self, uuid: str) -> None:
        self.tables.pop(uuid, None)
        self.indexes = {name: index for name, index in self.indexes.items() if index.table != uuid}
        self.names = {name: owner for name, owner in self.names.items() if owner != uuid}

    def _change(self, change: LogEntry) -> None:
        rows = self.tables[self.names[change.table]]
        if change.type is LogEntryType.DELETE:
            rows.pop(change.key, None)
        else:
            rows[change.key] = change.value

    def committed(self) -> Tables:
        return {uuid: rows for uuid, rows in self.tables.items() if uuid not in self.created_in}

    def usable_indexes(self) -> dict[str, str]:
        """Uuids of usable indexes, by name."""
        return {name: index.definition.uuid for name, index in self.indexes.items() if not index.created_in}

    def visible(self, transaction: int = 0) -> list[str]:
        """The names that statements inside this transaction, or outside of any, can use."""
        return sorted(name for name, uuid in self.names.items() if self.created_in.get(uuid, transaction) == transaction)


def replay_of(log: Log) -> Replay:
    replay = Replay()
    for _, item in log:
        replay.apply(item)
    return replay


def replayed(log: Log) -> Tables:
    return replay_of(log).committed()


def timeline_of(log: Log, start: StartingPoint | None = None) -> Timeline:
    control = [
        ControlEntry(lsn, item.type, item.transaction_id, item.table, item.value) for lsn, item in log if item.type not in ROW_CHANGES
    ]
    return walk(Control.of(control), start)


def collected(rows: RowsInTasks) -> list[Row]:
    """A fold's result, fetched from Spark's tasks."""
    return map_in_tasks(rows, iter, LAST_SCHEMA).collect()


def folded(log: Log) -> Tables:
    """What Spark computes, in plain Python: each change is placed alone, the highest place wins."""
    timeline = timeline_of(log)
    last: dict[tuple[int, bytes], tuple[tuple[Lsn, Lsn], LogEntry]] = {}
    for lsn, item in log:
        if item.type in ROW_CHANGES and (placement := place(timeline, lsn, item.transaction_id, item.table)) is not None:
            key = placement.table, item.key
            last[key] = max(last.get(key, ((placement.applied, lsn), item)), ((placement.applied, lsn), item), key=lambda pair: pair[0])
    tables: Tables = {live.uuid: {} for live in timeline.tables}
    for (position, key_), (_, item) in last.items():
        if item.type is not LogEntryType.DELETE:
            tables[timeline.tables[position].uuid][key_] = item.value
    return tables


class Dice:
    """What the numbers of one step decide, one choice after the other: each draw of Hypothesis takes more time than a step's test."""

    def __init__(self, drawn: int) -> None:
        self._left = drawn

    def one_of(self, options: Sequence[T]) -> T:
        self._left, place = divmod(self._left, len(options))
        return options[place]


def dice(draw: st.DrawFn, steps: int) -> list[Dice]:
    """One for each step. Below 2**24 Hypothesis draws all numbers alike, and no step has more outcomes."""
    return [Dice(drawn) for drawn in draw(st.lists(st.integers(0, 2**24 - 1), min_size=steps, max_size=steps))]


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """Logs as leaders may write them, and also some that none writes: a BEGIN of an open id."""
    replay = Replay()
    log: Log = []
    ledger, number = 1, 0
    for step, thrown in enumerate(dice(draw, draw(st.integers(5, 60)))):
        names, open_ids = sorted(replay.names), sorted(replay.open)
        choices = ["begin", "create"] + ["change", "change", "change", "define"] * bool(names) + ["end"] * bool(open_ids) + ["roll"]
        choice = thrown.one_of(choices)
        if choice == "roll":
            ledger, number = ledger + thrown.one_of((1, 2, 3)), 0
        item = next_entry(thrown, choice, step, replay)
        if item is not None:
            replay.apply(item)
            log.append((Lsn(ledger, number), item))
            number += 1
    return log


def next_entry(thrown: Dice, choice: str, step: int, replay: Replay) -> LogEntry | None:
    """One more entry of that kind, None if none is possible."""
    open_ids = sorted(replay.open)
    transaction = thrown.one_of([0, *open_ids])
    visible = replay.visible(transaction)
    match choice:
        case "begin" | "roll":
            return entry(LogEntryType.BEGIN, thrown.one_of((1, 2, 3, 4))) if choice == "begin" else entry(LogEntryType.NOOP, -1)
        case "end":
            return entry(thrown.one_of([LogEntryType.COMMIT, LogEntryType.ROLLBACK]), thrown.one_of(open_ids))
        case "create":
            free = [name for name in ("a", "b", "c", "d") if name not in replay.names]
            return create(thrown.one_of(free), f"u{step}", transaction) if free else None
        case "change" if visible:
            kind = thrown.one_of([LogEntryType.INSERT, LogEntryType.UPDATE, LogEntryType.DELETE])
            value = b"" if kind is LogEntryType.DELETE else bytes([step])
            return entry(kind, transaction, thrown.one_of(visible), bytes([thrown.one_of(range(4))]), value)
        case "define":
            return definition(thrown, step, replay, transaction)
        case _:
            return None


def definition(thrown: Dice, step: int, replay: Replay, transaction: int) -> LogEntry:
    """A statement about an existing table. HerdDB also drops another transaction's uncommitted table."""
    dropped = entry(LogEntryType.DROP_TABLE, transaction, thrown.one_of(sorted(replay.names)))
    visible = replay.visible()
    if not visible:
        return dropped
    name = thrown.one_of(visible)
    renamed = thrown.one_of([f"r{step}", *(free for free in ("a", "b") if free not in replay.names)])
    return thrown.one_of(
        [
            dropped,
            entry(LogEntryType.TRUNCATE, 0, name),
            entry(LogEntryType.ALTER_TABLE, 0, name, value=encode_table(table(renamed, replay.names[name]))),
            entry(LogEntryType.CONSISTENCY_CHECK, 0, name),
        ]
    )


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(logs())
def test_placing_each_change_by_itself_gives_what_a_replay_in_order_gives(log: Log) -> None:
    assert folded(log) == replayed(log)


def test_a_commit_after_another_one_wins_though_its_changes_were_logged_before() -> None:
    log = in_one_ledger(
        create("t", "u"),
        entry(LogEntryType.BEGIN, 1),
        insert("t", b"k", b"early change, late commit", 1),
        insert("t", b"k", b"late change, early commit"),
        entry(LogEntryType.COMMIT, 1),
    )
    assert folded(log) == {"u": {b"k": b"early change, late commit"}}


def test_a_begin_on_an_open_id_discards_what_the_previous_leader_left() -> None:
    log = in_one_ledger(
        create("t", "u"),
        entry(LogEntryType.BEGIN, 1),
        insert("t", b"a", b"of the old leader", 1),
        entry(LogEntryType.BEGIN, 1),
        insert("t", b"b", b"of the new leader", 1),
        entry(LogEntryType.COMMIT, 1),
    )
    assert folded(log) == {"u": {b"b": b"of the new leader"}}


def test_open_transactions_are_listed_with_their_begin_and_not_applied() -> None:
    log = in_one_ledger(create("t", "u"), entry(LogEntryType.BEGIN, 9), insert("t", b"k", b"v", 9), create("new", "n", 9))
    timeline = timeline_of(log)
    assert timeline.open_transactions == (StateTransaction(9, Lsn(1, 1), new_tables=("new",)),)
    assert [live.name for live in timeline.tables] == ["t"]
    assert folded(log) == {"u": {}}


def test_a_truncate_beside_a_transaction_empties_the_table_for_its_commit() -> None:
    log = in_one_ledger(
        create("t", "u"),
        insert("t", b"a", b"1"),
        entry(LogEntryType.BEGIN, 1),
        insert("t", b"b", b"2", 1),
        entry(LogEntryType.TRUNCATE, 0, "t"),
        entry(LogEntryType.COMMIT, 1),
    )
    assert folded(log) == {"u": {b"b": b"2"}}


def test_a_truncate_behind_an_index_that_a_transaction_left_takes_effect() -> None:
    index = IndexDefinition("demo", "i", "iu", "t", "brin", (("v", 0, 1),))
    log = in_one_ledger(
        create("t", "u"),
        insert("t", b"a", b"1"),
        entry(LogEntryType.BEGIN, 1),
        entry(LogEntryType.CREATE_INDEX, 1, "t", value=encode_index(index)),
        entry(LogEntryType.ROLLBACK, 1),
        entry(LogEntryType.TRUNCATE, 0, "t"),
        insert("t", b"b", b"2"),
    )
    assert folded(log) == {"u": {b"b": b"2"}}
    assert timeline_of(log).indexes == ()


def test_a_drop_inside_a_transaction_drops_what_has_the_name_at_the_commit() -> None:
    begun = [create("t", "u"), entry(LogEntryType.BEGIN, 1), entry(LogEntryType.DROP_TABLE, 1, "t")]
    renamed = entry(LogEntryType.ALTER_TABLE, 0, "t", value=encode_table(table("s", "u")))
    commit = entry(LogEntryType.COMMIT, 1)
    assert folded(in_one_ledger(*begun, renamed, commit)) == {"u": {}}
    assert folded(in_one_ledger(*begun, renamed, create("t", "v"), commit)) == {"u": {}}


def test_changes_that_commit_before_their_table_skip_it() -> None:
    log = in_one_ledger(
        create("t", "u"),
        entry(LogEntryType.BEGIN, 1),
        entry(LogEntryType.BEGIN, 2),
        insert("t", b"k", b"of the table that was dropped", 1),
        entry(LogEntryType.DROP_TABLE, 0, "t"),
        create("t", "v", 2),
        entry(LogEntryType.COMMIT, 1),
        entry(LogEntryType.COMMIT, 2),
    )
    assert folded(log) == {"v": {}}


def test_a_table_made_again_under_its_name_starts_empty() -> None:
    log = in_one_ledger(create("t", "one"), insert("t", b"k", b"v"), entry(LogEntryType.DROP_TABLE, 0, "t"), create("t", "two"))
    assert folded(log) == {"two": {}}


def test_indexes_follow_their_table() -> None:
    index = IndexDefinition("demo", "i", "iu", "t", "brin", (("v", 0, 1),))
    made = in_one_ledger(create("t", "u"), entry(LogEntryType.CREATE_INDEX, 0, "t", value=encode_index(index)))
    renamed = [*made, (Lsn(1, 2), entry(LogEntryType.ALTER_TABLE, 0, "t", value=encode_table(table("s", "u"))))]
    assert timeline_of(renamed).indexes == (replace(index, table="s"),)
    assert timeline_of([*made, (Lsn(1, 2), entry(LogEntryType.DROP_INDEX, value=b"i"))]).indexes == ()
    assert timeline_of([*made, (Lsn(1, 2), entry(LogEntryType.DROP_TABLE, 0, "t"))]).indexes == ()


@pytest.mark.parametrize("dropped_again", [False, True])
def test_an_index_that_is_made_again_in_the_transaction_that_dropped_it_is_there(dropped_again: bool) -> None:
    before = IndexDefinition("demo", "i", "iu", "t", "brin", (("v", 0, 1),))
    after = replace(before, uuid="ju", table="s", unique=True)
    log = in_one_ledger(
        create("t", "u"),
        create("s", "v"),
        entry(LogEntryType.CREATE_INDEX, 0, "t", value=encode_index(before)),
        entry(LogEntryType.BEGIN, 1),
        entry(LogEntryType.DROP_INDEX, 1, value=b"i"),
        entry(LogEntryType.CREATE_INDEX, 1, "s", value=encode_index(after)),
        *([entry(LogEntryType.DROP_INDEX, 1, value=b"i")] if dropped_again else []),
        entry(LogEntryType.COMMIT, 1),
    )
    assert timeline_of(log).indexes == (() if dropped_again else (after,))


@pytest.mark.parametrize("dropped_for_good", [False, True])
def test_a_rollback_brings_back_an_index_only_while_nobody_else_has_dropped_it(dropped_for_good: bool) -> None:
    """Only then is the name free for the transaction's own index."""
    before = IndexDefinition("demo", "i", "iu", "t", "brin", (("v", 0, 1),))
    after = replace(before, uuid="ju", unique=True)
    again = [entry(LogEntryType.DROP_INDEX, value=b"i"), entry(LogEntryType.CREATE_INDEX, 1, "t", value=encode_index(after))]
    log = in_one_ledger(
        create("t", "u"),
        entry(LogEntryType.CREATE_INDEX, 0, "t", value=encode_index(before)),
        entry(LogEntryType.BEGIN, 1),
        entry(LogEntryType.DROP_INDEX, 1, value=b"i"),
        *(again if dropped_for_good else []),
        entry(LogEntryType.ROLLBACK, 1),
    )
    assert timeline_of(log).indexes == (() if dropped_for_good else (before,))


@pytest.mark.parametrize("committed", [False, True])
def test_an_index_is_committed_by_its_own_transaction_not_by_one_that_once_made_another_of_its_name(committed: bool) -> None:
    of_one = IndexDefinition("demo", "i", "iu", "t", "brin", (("v", 0, 1),))
    of_two = replace(of_one, uuid="ju", unique=True)
    log = in_one_ledger(
        create("t", "u"),
        entry(LogEntryType.BEGIN, 1),
        entry(LogEntryType.BEGIN, 2),
        entry(LogEntryType.CREATE_INDEX, 1, "t", value=encode_index(of_one)),
        entry(LogEntryType.DROP_INDEX, value=b"i"),
        entry(LogEntryType.CREATE_INDEX, 2, "t", value=encode_index(of_two)),
        entry(LogEntryType.COMMIT, 1),
        entry(LogEntryType.COMMIT if committed else LogEntryType.ROLLBACK, 2),
    )
    assert timeline_of(log).indexes == ((of_two,) if committed else ())


def test_an_index_that_is_dropped_before_its_maker_commits_is_gone() -> None:
    index = IndexDefinition("demo", "i", "iu", "t", "brin", (("v", 0, 1),))
    log = in_one_ledger(
        create("t", "u"),
        entry(LogEntryType.BEGIN, 1),
        entry(LogEntryType.BEGIN, 2),
        entry(LogEntryType.DROP_INDEX, 1, value=b"i"),
        entry(LogEntryType.CREATE_INDEX, 2, "t", value=encode_index(index)),
        entry(LogEntryType.COMMIT, 1),
    )
    assert timeline_of(log).indexes == ()


def test_a_rename_to_a_tables_name_drops_that_table() -> None:
    index = IndexDefinition("demo", "i", "iu", "t", "brin", (("v", 0, 1),))
    log = in_one_ledger(
        create("t", "old"),
        entry(LogEntryType.CREATE_INDEX, 0, "t", value=encode_index(index)),
        insert("t", b"a", b"of the old one"),
        create("s", "new"),
        insert("s", b"b", b"of the new one"),
        entry(LogEntryType.ALTER_TABLE, 0, "t", value=encode_table(table("t", "new"))),
        insert("t", b"c", b"of the new one"),
    )
    assert folded(log) == {"new": {b"b": b"of the new one", b"c": b"of the new one"}}
    assert timeline_of(log).indexes == ()
    assert timeline_of(log).state.indexes == ()


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (in_one_ledger(entry(LogEntryType.COMMIT, 5)), "transaction 5, which is not open"),
        (in_one_ledger(entry(LogEntryType.TRUNCATE, 0, "t")), "table 't', which does not exist"),
        (in_one_ledger(entry(LogEntryType.ALTER_TABLE, 0, "t", value=encode_table(table("t", "u")))), "alters table 't'"),
        (in_one_ledger(insert("t", b"k", b"v")), "table 't', which does not exist"),
        (in_one_ledger(create("t", "u"), insert("t", b"k", b"v", 3)), "transaction 3, which is not open"),
    ],
)
def test_a_log_without_its_beginning_is_inconsistent_and_the_entry_is_named(log: Log, words: str) -> None:
    with pytest.raises(LogInconsistentError, match=words) as caught:
        folded(log)
    assert f"entry {log[-1][0]}" in str(caught.value)


def log_batch(log: Log) -> pa.RecordBatch:
    payloads = pa.RecordBatch.from_pydict(
        {
            "ledger_id": [lsn.ledger_id for lsn, _ in log],
            "entry_id": [lsn.entry_id for lsn, _ in log],
            "payload": [encode_log_entry(item) for _, item in log],
        }
    )
    (decoded,) = decode_batches([payloads])
    return decoded


def task_log(spark: SparkSession, log: Log) -> TaskLog:
    """A log whose tasks get its entries as Spark's rows."""
    rows = spark.createDataFrame(pa.Table.from_batches([log_batch(log)], schema=LOG_SCHEMA)).repartition(2)
    return TaskLog(rows, lambda batches, _: iter(batches))


def folded_by_spark(spark: SparkSession, log: Log, blocks: Blocks) -> Tables:
    decoded = replace(task_log(spark, log), blocks=blocks)
    timeline = log_timeline(decoded)
    rows = collected(last_changes(place_changes(decoded, timeline), 2))
    tables: Tables = {live.uuid: {} for live in timeline.tables}
    for row in rows:
        tables[timeline.tables[row["table_index"]].uuid][bytes(row["row_key"])] = bytes(row["row_value"])
    return tables


@settings(max_examples=2, deadline=None, derandomize=True, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(log=logs())
def test_spark_folds_to_the_same_tables(spark: SparkSession, log: Log) -> None:
    with blocks_of(spark) as in_files:
        assert folded_by_spark(spark, log, Blocks()) == folded_by_spark(spark, log, in_files) == replayed(log)
    assert in_files.folder is not None
    assert not in_files.folder.exists()


def test_an_outline_serves_each_part_of_its_log(spark: SparkSession) -> None:
    log = in_one_ledger(
        create("t", "u"), entry(LogEntryType.BEGIN, 1), insert("t", b"k", b"v", 1), entry(LogEntryType.COMMIT, 1), create("later", "w")
    )
    decoded = task_log(spark, log)
    outline = log_outline(decoded)
    assert outline.extent == log_extent(decoded)
    assert outline.extent.entries == len(log)
    for number, (lsn, _) in enumerate(log, start=1):
        prefix = decoded.up_to(lsn)
        assert log_timeline(prefix, outline=outline) == log_timeline(prefix) == timeline_of(log[:number])
        assert log_extent(prefix).entries == number


def test_names_and_values_are_read_only_where_definitions_are(spark: SparkSession) -> None:
    parts = [
        in_one_ledger(create("t", "u"), entry(LogEntryType.BEGIN, 1)),
        [(Lsn(2, 0), insert("t", b"k", b"v", 1)), (Lsn(2, 1), entry(LogEntryType.COMMIT, 1)), (Lsn(2, 2), entry(LogEntryType.NOOP, -1))],
    ]
    batches = [log_batch(part) for part in parts]

    def read(tasks: Iterable[pa.RecordBatch], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for task in tasks:
            for number in task.column(0).to_pylist():
                assert number == 0 or not {"table_name", "row_value"} & set(columns), "nothing is defined there"
                yield batches[number].select(columns)

    timeline = log_timeline(TaskLog(spark.range(0, 2, 1, 2).toDF("task"), read))
    assert timeline == timeline_of([item for part in parts for item in part])


def test_the_highest_key_of_a_table_with_auto_increment_outlives_its_row(spark: SparkSession) -> None:
    definition = entry(LogEntryType.CREATE_TABLE, 0, "t", value=encode_table(table("t", "u", auto_increment=True)))
    keys = [number.to_bytes(8, "big", signed=True) for number in (-1, 5, 300)]
    log = in_one_ledger(definition, *(insert("t", key, b"v") for key in keys), entry(LogEntryType.DELETE, 0, "t", keys[2]))
    decoded = task_log(spark, log)
    timeline = log_timeline(decoded)
    assert highest_auto_increments(place_changes(decoded, timeline), timeline) == {"u": 300}


@pytest.mark.parametrize(("kind", "largest", "highest"), [(ColumnType.LONG, 2**63 - 1, 300), (ColumnType.INTEGER, 2**31 - 1, 2**31 - 1)])
def test_the_largest_long_is_no_highest_key_since_herddb_does_not_continue_above_it(
    spark: SparkSession, kind: ColumnType, largest: int, highest: int
) -> None:
    numbered = table("t", "u", auto_increment=True, columns=(Column("k", kind, 0), *COLUMNS[1:]))
    keys = [number.to_bytes(8 if kind is ColumnType.LONG else 4, "big", signed=True) for number in (5, 300, largest, -1)]
    log = in_one_ledger(
        entry(LogEntryType.CREATE_TABLE, 0, "t", value=encode_table(numbered)),
        *(insert("t", key, b"v") for key in keys),
        entry(LogEntryType.DELETE, 0, "t", keys[1]),
    )
    decoded = task_log(spark, log)
    timeline = log_timeline(decoded)
    placed = place_changes(decoded, timeline)
    found = [highest_auto_increments(placed, timeline, known) for known in ({}, {"u": 7}, {"u": 2**63 - 1})]
    assert found == [{"u": highest}] * 3


def test_a_text_that_is_declared_auto_increment_is_no_highest_key(spark: SparkSession) -> None:
    text = table("t", "u", auto_increment=True, columns=(Column("k", ColumnType.STRING, 0), *COLUMNS[1:]))
    log = in_one_ledger(entry(LogEntryType.CREATE_TABLE, 0, "t", value=encode_table(text)), insert("t", b"zzzz", b"v"))
    decoded = task_log(spark, log)
    timeline = log_timeline(decoded)
    assert highest_auto_increments(place_changes(decoded, timeline), timeline, {"u": 2_054_847_098}) == {}


def test_the_highest_keys_of_many_tables_cost_no_work_for_each_of_them() -> None:
    """A tablespace may have thousands, each with rows in each batch."""

    def calls(tables: int) -> int:
        indexes, keys = [number % tables for number in range(2_000)], [number.to_bytes(8, "big") for number in range(2_000)]
        batch = pa.RecordBatch.from_pydict({"table_index": pa.array(indexes, pa.int32()), "row_key": keys})
        wanted, counted = pa.array(range(tables), pa.int32()), Counter[str]()
        sys.setprofile(lambda frame, event, argument: counted.update([event]))
        try:
            found = _highest_keys(batch, wanted)
        finally:
            sys.setprofile(None)
        rows = [row for part in found for row in part.to_pylist()]
        assert sorted((row["table_index"], int.from_bytes(row["highest"], "big")) for row in rows) == [
            (table, 2_000 - tables + table) for table in range(tables)
        ]
        return counted["call"]

    calls(2)  # the first one imports
    assert calls(1_000) == calls(2)


def test_an_lsn_is_parsed_and_printed_alike() -> None:
    assert str(Lsn.parse(" 12,345 ")) == "12,345"
    with pytest.raises(ValueError, match="'12' is not an LSN"):
        Lsn.parse("12")


def test_a_transaction_that_defines_nothing_costs_the_driver_some_columns_and_no_object() -> None:
    """100,000 transactions, and one that creates a table."""
    count = 100_000
    ids = np.arange(1, count + 1)
    begins = [np.full(count, 7), 3 * ids, np.full(count, int(LogEntryType.BEGIN)), ids]
    commits = [np.full(count, 7), 3 * ids + 2, np.full(count, int(LogEntryType.COMMIT)), ids]
    arrays = [
        pa.array(np.concatenate(pair)).cast(field.type)
        for pair, field in zip(zip(begins, commits, strict=True), BOUNDARY_SCHEMA, strict=True)
    ]
    made = encode_table(table("t", "u"))
    definition = ControlEntry(Lsn(7, 3 * count + 1), LogEntryType.CREATE_TABLE, count, "t", made)
    control = Control(pa.RecordBatch.from_arrays(arrays, schema=BOUNDARY_SCHEMA), (definition,))
    tracemalloc.start()
    try:
        timeline = walk(control)
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    print(f"{held / count:.0f} bytes a transaction are kept, {most / count:.0f} at most while it is walked")
    assert [live.name for live in timeline.tables] == ["t"]
    assert len(timeline.spans.ids) == count
    assert timeline.open_transactions == ()
    assert held < 100 * count
