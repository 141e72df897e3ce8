"""A fold from a checkpoint, against the fold of the whole log."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from plain_placing import needs, place
from pyspark.sql import SparkSession
from test_wal_fold import (
    Log,
    Replay,
    Tables,
    collected,
    create,
    dice,
    entry,
    folded,
    in_one_ledger,
    insert,
    logs,
    replay_of,
    table,
    task_log,
    timeline_of,
)

from herdkeeper.codecs.herddb.index import IndexDefinition, encode_index
from herdkeeper.codecs.herddb.log_entry import ROW_CHANGES, LogEntry, LogEntryType
from herdkeeper.codecs.herddb.table import encode_table
from herdkeeper_jobs.manifests.continuation import Continuation
from herdkeeper_jobs.wal.fold import BaseChanges, highest_auto_increments, last_changes, place_changes, with_base
from herdkeeper_jobs.wal.log_state import LogState, StartingPoint
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.outline import log_timeline
from herdkeeper_jobs.wal.spans import LogInconsistentError
from herdkeeper_jobs.wal.timeline import Timeline

_BEFORE_EVERYTHING = Lsn(0, -1)


@st.composite
def logs_with_indexes(draw: st.DrawFn) -> Log:
    """Logs of the fold's own test, with indexes created and dropped in between."""
    replay = Replay()
    found: list[tuple[int, LogEntry]] = []
    log = draw(logs())
    for (lsn, item), thrown in zip(log, dice(draw, len(log)), strict=True):
        replay.apply(item)
        found.append((lsn.ledger_id, item))
        transaction = thrown.one_of([0, *sorted(replay.open)])
        name = thrown.one_of([*replay.visible(transaction), None])
        if name is not None and thrown.one_of([False, True]):
            index = IndexDefinition("demo", f"i{thrown.one_of(range(3))}", f"iu{len(found)}", name, "brin", (("v", 0, 1),))
            made = entry(LogEntryType.CREATE_INDEX, transaction, name, value=encode_index(index))
            dropped = entry(LogEntryType.DROP_INDEX, transaction, value=index.name.encode())
            found.append((lsn.ledger_id, thrown.one_of([made, dropped])))
    counts: dict[int, int] = {}
    numbered: Log = []
    for ledger, item in found:
        numbered.append((Lsn(ledger, counts.get(ledger, 0)), item))
        counts[ledger] = counts.get(ledger, 0) + 1
    return numbered


def starting_point(log: Log) -> StartingPoint:
    """A checkpoint's state at the end of a log. A log's beginning has one, too."""
    return StartingPoint(log[-1][0], timeline_of(log).state) if log else StartingPoint(_BEFORE_EVERYTHING)


def folded_on(base: Tables, start: StartingPoint, log: Log) -> tuple[Tables, Timeline]:
    """The fold of a base and of the part of the log that is read with it."""
    part = [(lsn, item) for lsn, item in log if lsn >= start.restart]
    timeline = timeline_of(part, start)
    tables: Tables = {live.uuid: {} for live in timeline.tables}
    for uuid, rows in base.items():
        if timeline.place_of_base(uuid) is not None:
            tables[uuid] = dict(rows)
    changes = []
    for lsn, item in part:
        if item.type in ROW_CHANGES and (placement := place(timeline, lsn, item.transaction_id, item.table)) is not None:
            changes.append((placement.applied, lsn, placement.table, item))
    for _, _, position, item in sorted(changes, key=lambda change: change[:2]):
        rows = tables[timeline.tables[position].uuid]
        if item.type is LogEntryType.DELETE:
            rows.pop(item.key, None)
        else:
            rows[item.key] = item.value
    return tables, timeline


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(logs_with_indexes())
def test_indexes_are_those_that_a_replay_in_order_gives(log: Log) -> None:
    replay, timeline = replay_of(log), timeline_of(log)
    assert {index.name: index.uuid for index in timeline.indexes} == replay.usable_indexes()
    assert {index.definition.name: index.definition.uuid for index in timeline.state.indexes} == {
        name: index.definition.uuid for name, index in replay.indexes.items()
    }
    assert folded(log) == replay.committed()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(logs_with_indexes())
def test_going_on_from_any_position_gives_what_the_whole_log_gives(log: Log) -> None:
    whole, tables = timeline_of(log), folded(log)
    for cut in range(len(log) + 1):
        start: StartingPoint = pickle.loads(pickle.dumps(starting_point(log[:cut])))
        on_tables, on = folded_on(folded(log[:cut]), start, log)
        assert on_tables == tables
        assert (on.tables, on.indexes, on.open_transactions, on.state) == (
            whole.tables,
            whole.indexes,
            whole.open_transactions,
            whole.state,
        )


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(logs(), st.data())
def test_a_chain_of_checkpoints_gives_what_the_whole_log_gives(log: Log, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(log)), max_size=5)))
    base, start = folded([]), starting_point([])
    for cut in [*cuts, len(log)]:
        base, timeline = folded_on(base, start, log[:cut])
        start = StartingPoint(log[cut - 1][0], timeline.state) if cut else start
    assert base == folded(log)


def test_what_an_open_transaction_changed_before_the_checkpoint_counts_once_it_commits() -> None:
    before = in_one_ledger(
        create("t", "u"),
        insert("t", b"k", b"committed"),
        entry(LogEntryType.BEGIN, 1),
        insert("t", b"k", b"of 1", 1),
        create("made", "m", 1),
        entry(LogEntryType.DROP_TABLE, 1, "t"),
        insert("t", b"later", b"outside"),
    )
    start = starting_point(before)
    assert start.restart == Lsn(1, 2)
    commit = [*before, (Lsn(3, 0), entry(LogEntryType.COMMIT, 1))]
    rollback = [*before, (Lsn(3, 0), entry(LogEntryType.ROLLBACK, 1))]
    assert folded_on(folded(before), start, commit)[0] == {"m": {}}
    assert folded_on(folded(before), start, rollback)[0] == {"u": {b"k": b"committed", b"later": b"outside"}}


def test_without_open_transactions_nothing_before_the_checkpoint_is_read() -> None:
    before = in_one_ledger(create("t", "u"), entry(LogEntryType.BEGIN, 1), insert("t", b"k", b"v", 1), entry(LogEntryType.COMMIT, 1))
    start = starting_point(before)
    assert start.restart == Lsn(1, 3)
    assert not any(needs(start, lsn, item.transaction_id) for lsn, item in before)
    assert needs(start, Lsn(1, 4), 0)


def test_a_truncate_empties_the_base_and_keeps_what_a_transaction_commits_later() -> None:
    before = in_one_ledger(create("t", "u"), insert("t", b"a", b"1"), entry(LogEntryType.BEGIN, 1), insert("t", b"b", b"2", 1))
    log = [*before, (Lsn(2, 0), entry(LogEntryType.TRUNCATE, 0, "t"))]
    assert folded_on(folded(before), starting_point(before), log)[0] == {"u": {}}
    log.append((Lsn(2, 1), entry(LogEntryType.COMMIT, 1)))
    assert folded_on(folded(before), starting_point(before), log)[0] == {"u": {b"b": b"2"}}


def test_a_change_of_columns_is_remembered_and_a_new_name_is_none() -> None:
    renamed = [*in_one_ledger(create("t", "u")), (Lsn(1, 1), entry(LogEntryType.ALTER_TABLE, value=encode_table(table("s", "u"))))]
    altered = encode_table(table("s", "u", columns=(*table("s", "u").columns[:1],)))
    changed = [*renamed, (Lsn(1, 2), entry(LogEntryType.ALTER_TABLE, value=altered))]
    later = [*changed, (Lsn(2, 0), create("other", "o"))]
    assert [table.altered for table in timeline_of(renamed).state.tables] == [False]
    on = folded_on(folded(changed), starting_point(changed), later)[1]
    assert {table.definition.name: table.altered for table in on.state.tables} == {"s": True, "other": False}


def test_a_manifest_keeps_the_maker_of_an_index() -> None:
    def made(name: str, transaction: int) -> LogEntry:
        index = IndexDefinition("demo", name, f"{name}u", "t", "brin", (("v", 0, 1),))
        return entry(LogEntryType.CREATE_INDEX, transaction, "t", value=encode_index(index))

    begun = [entry(LogEntryType.BEGIN, identity) for identity in (1, 2)]
    log = in_one_ledger(create("t", "u"), *begun, made("left", 1), made("mine", 2), made("there", 0), entry(LogEntryType.ROLLBACK, 1))
    state = timeline_of(log).state
    kept = Continuation.model_validate_json(Continuation.of(state).model_dump_json(by_alias=True)).state
    assert kept == state
    assert {index.definition.name: index.maker for index in kept.indexes} == {"left": 1, "mine": 2, "there": None}


def test_a_log_that_does_not_follow_on_the_checkpoint_is_inconsistent() -> None:
    before = in_one_ledger(create("t", "u"))
    log = [*before, (Lsn(2, 0), insert("never made", b"k", b"v"))]
    with pytest.raises(LogInconsistentError, match="entry 2,0 changes a row of table 'never made'"):
        folded_on(folded(before), starting_point(before), log)


@settings(max_examples=2, deadline=None, derandomize=True, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(log=logs())
def test_spark_goes_on_to_the_same_tables(spark: SparkSession, log: Log) -> None:
    start = starting_point(log[: len(log) // 2])
    timeline = log_timeline(task_log(spark, [(lsn, item) for lsn, item in log if lsn >= start.restart]), start)
    assert timeline == timeline_of([(lsn, item) for lsn, item in log if lsn >= start.restart], start)
    before = folded(log[: len(log) // 2])
    known = [(number, key, value) for number, rows in enumerate(before.values()) for key, value in rows.items()]
    positions = pa.array([position for position, _, _ in known], pa.int32())
    keys, values = pa.array([key for _, key, _ in known], pa.binary()), pa.array([value for *_, value in known], pa.binary())
    base = spark.createDataFrame(pa.table({"base_table": positions, "row_key": keys, "row_value": values}))
    placed = with_base(place_changes(task_log(spark, log), timeline), BaseChanges(base, list(before), start.at), timeline)
    tables: Tables = {live.uuid: {} for live in timeline.tables}
    for row in collected(last_changes(placed, 2)):
        tables[timeline.tables[row["table_index"]].uuid][bytes(row["row_key"])] = bytes(row["row_value"])
    assert tables == folded(log)


def test_a_base_may_have_many_hundred_tables(spark: SparkSession) -> None:
    before = in_one_ledger(*(create(f"t{number}", f"u{number}") for number in range(1_000)))
    start = starting_point(before)
    later = [(Lsn(2, 0), entry(LogEntryType.DROP_TABLE, 0, "t0")), (Lsn(2, 1), insert("t1", b"k", b"v"))]
    timeline = timeline_of(later, start)
    numbers = pa.array(range(1_000), pa.int32())
    base = spark.createDataFrame(pa.table({"base_table": numbers, "row_key": [b"k"] * 1_000, "row_value": [b"old"] * 1_000}))
    changes = BaseChanges(base, [f"u{number}" for number in range(1_000)], start.at)
    rows = collected(last_changes(with_base(place_changes(task_log(spark, later), timeline), changes, timeline), 2))
    found = {timeline.tables[row["table_index"]].name: bytes(row["row_value"]) for row in rows}
    assert found == {f"t{number}": b"old" if number > 1 else b"v" for number in range(1, 1_000)}


def test_the_highest_key_outlives_a_truncate_of_its_table_on_a_base_and_in_the_log(spark: SparkSession) -> None:
    keys = [number.to_bytes(8, "big", signed=True) for number in (5, 300)]
    definition = entry(LogEntryType.CREATE_TABLE, 0, "t", value=encode_table(table("t", "u", auto_increment=True)))
    before = in_one_ledger(definition, insert("t", keys[0], b"v"))
    start = StartingPoint(before[-1][0], timeline_of(before).state)
    on = [(Lsn(2, 0), insert("t", keys[1], b"v"))]
    emptied = [(Lsn(2, 0), entry(LogEntryType.TRUNCATE, 0, "t")), (Lsn(2, 1), insert("t", keys[0], b"v"))]
    emptied_later = [*on, (Lsn(2, 1), entry(LogEntryType.TRUNCATE, 0, "t")), (Lsn(2, 2), insert("t", keys[0], b"v"))]
    found = []
    for log in (on, emptied, emptied_later):
        decoded = task_log(spark, log)
        timeline = log_timeline(decoded, start)
        found.append([highest_auto_increments(place_changes(decoded, timeline), timeline, {"u": known}) for known in (7, 1000)])
    assert found == [[{"u": 300}, {"u": 1000}], [{"u": 7}, {"u": 1000}], [{"u": 300}, {"u": 1000}]]


def altered(auto_increment: bool) -> LogEntry:
    return entry(LogEntryType.ALTER_TABLE, 0, "t", value=encode_table(table("t", "u", auto_increment=auto_increment)))


def key_of(number: int) -> bytes:
    return number.to_bytes(8, "big", signed=True)


def made(auto_increment: bool) -> list[LogEntry]:
    """A table with the rows 5 and 1000."""
    created = entry(LogEntryType.CREATE_TABLE, 0, "t", value=encode_table(table("t", "u", auto_increment=auto_increment)))
    return [created, insert("t", key_of(5), b"v"), insert("t", key_of(1000), b"v")]


LAST_DELETED = entry(LogEntryType.DELETE, 0, "t", key_of(1000))
TRUNCATED = entry(LogEntryType.TRUNCATE, 0, "t")


@pytest.mark.parametrize(
    ("before", "later"),
    [
        ([*made(True), LAST_DELETED, altered(False)], [altered(True)]),
        ([*made(False), altered(True), LAST_DELETED, altered(False)], [altered(True)]),
        (made(False), [altered(True), TRUNCATED]),
        (made(False), [altered(True), LAST_DELETED, altered(False), altered(True)]),
    ],
    ids=["off at the base", "on for a while before the base", "on and truncated since the base", "on and off since the base"],
)
def test_the_highest_key_outlives_a_base_made_while_auto_increment_was_off(
    spark: SparkSession, before: list[LogEntry], later: list[LogEntry]
) -> None:
    log = in_one_ledger(*before)
    decoded = task_log(spark, log)
    timeline = log_timeline(decoded)
    placed = place_changes(decoded, timeline)
    rows = [(row["table_index"], bytes(row["row_key"]), bytes(row["row_value"])) for row in collected(last_changes(placed, 1))]
    base = BaseChanges(spark.createDataFrame(rows, "base_table int, row_key binary, row_value binary"), ["u"], log[-1][0])
    known = highest_auto_increments(placed, timeline)
    going_on = task_log(spark, [(Lsn(2, number), item) for number, item in enumerate(later)])
    then = log_timeline(going_on, StartingPoint(log[-1][0], timeline.state))
    assert highest_auto_increments(with_base(place_changes(going_on, then), base, then), then, known) == {"u": 1000}


def test_a_log_that_begins_with_nothing_leaves_its_whole_state() -> None:
    assert timeline_of([]).state == LogState()
