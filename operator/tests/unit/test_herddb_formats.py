"""HerdDB's bytes: vectors that HerdDB's own classes wrote, and round trips of everything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdkeeper.codecs.herddb.index import IndexDefinition, decode_index, encode_index
from herdkeeper.codecs.herddb.ledgers import LedgerList, decode_ledgers
from herdkeeper.codecs.herddb.log_entry import ROW_CHANGES, LogEntry, LogEntryType, decode_log_entry, encode_log_entry
from herdkeeper.codecs.herddb.node import NodeRecord, decode_node, encode_node
from herdkeeper.codecs.herddb.record import RowDecoder, Stored, encode_row
from herdkeeper.codecs.herddb.row_digest import RowDigest, digest_of_rows
from herdkeeper.codecs.herddb.table import Column, ColumnType, ForeignKey, TableDefinition, decode_table, encode_table
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord, decode_tablespace, encode_tablespace
from herdkeeper.codecs.java_data import JavaDataWriter, MalformedDataError

GOLDEN_TABLESPACE = bytes.fromhex("0100000361626300046865726400026e30020200026e3000026e319875")
GOLDEN_INSERT = bytes.fromhex(
    "0000018bcfe56800000200000000000000010000000274310800000000000001022c01000663616666c3a8020cfffffffb03040000018bcfe5687b04070105063f"
    "f8000000000000060303010203"
)
T1 = TableDefinition(
    "herd",
    "t1",
    "uuid-1",
    (
        Column("id", ColumnType.LONG, 0, nullable=False),
        Column("s", ColumnType.STRING, 1),
        Column("i", ColumnType.INTEGER, 2, nullable=False),
        Column("t", ColumnType.TIMESTAMP, 3),
        Column("b", ColumnType.BOOLEAN, 4),
        Column("d", ColumnType.DOUBLE, 5),
        Column("x", ColumnType.BYTES, 6),
    ),
    ("id",),
)


def test_the_tablespace_record_that_herddb_wrote_is_read_and_written_alike() -> None:
    record = decode_tablespace(GOLDEN_TABLESPACE)
    assert record == TablespaceRecord("abc", "herd", "n0", ("n0", "n1"), 2, 15000)
    assert encode_tablespace(record) == GOLDEN_TABLESPACE


def test_the_insert_that_herddb_wrote_is_read_and_written_alike() -> None:
    entry = decode_log_entry(GOLDEN_INSERT)
    assert (entry.timestamp_millis, entry.type, entry.transaction_id, entry.table) == (1700000000000, LogEntryType.INSERT, 1, "t1")
    assert encode_log_entry(entry) == GOLDEN_INSERT


def test_the_row_of_that_insert_has_the_values_that_were_inserted() -> None:
    entry = decode_log_entry(GOLDEN_INSERT)
    row: list[Stored] = [258, "caffè", -5, 1700000000123, True, 1.5, b"\1\2\3"]
    assert RowDecoder(T1).decode(entry.key, entry.value) == row
    assert encode_row(T1, dict(zip([column.name for column in T1.columns], row, strict=True))) == (entry.key, entry.value)


texts = st.text(max_size=20)
names = st.text(min_size=1, max_size=12)
blobs = st.binary(max_size=40)
i64 = st.integers(-(1 << 63), (1 << 63) - 1)


@given(st.builds(TablespaceRecord, texts, texts, texts, st.tuples(texts, texts), st.integers(0, 99), st.integers(0, 1 << 60)))
def test_any_tablespace_record_is_read_back(record: TablespaceRecord) -> None:
    assert decode_tablespace(encode_tablespace(record)) == record


@given(st.builds(NodeRecord, texts, texts, st.integers(0, 65535), st.booleans()))
def test_any_node_record_is_read_back(record: NodeRecord) -> None:
    assert decode_node(encode_node(record)) == record


def entry_of(kind: LogEntryType, table: str, key: bytes, value: bytes) -> LogEntry:
    with_table = kind not in (LogEntryType.BEGIN, LogEntryType.COMMIT, LogEntryType.ROLLBACK, LogEntryType.NOOP, LogEntryType.DROP_INDEX)
    with_value = kind not in (
        LogEntryType.BEGIN,
        LogEntryType.COMMIT,
        LogEntryType.ROLLBACK,
        LogEntryType.NOOP,
        LogEntryType.DELETE,
        LogEntryType.DROP_TABLE,
        LogEntryType.TRUNCATE,
    )
    return LogEntry(1, kind, 7, table if with_table else "", key if kind in ROW_CHANGES else b"", value if with_value else b"")


@given(st.builds(entry_of, st.sampled_from(LogEntryType), texts, blobs, blobs))
def test_any_log_entry_is_read_back(entry: LogEntry) -> None:
    assert decode_log_entry(encode_log_entry(entry)) == entry


@pytest.mark.parametrize("cut", [1, 10, 17, len(GOLDEN_INSERT) - 1])
def test_a_log_entry_that_was_cut_is_malformed(cut: int) -> None:
    with pytest.raises(MalformedDataError):
        decode_log_entry(GOLDEN_INSERT[:cut])


def test_an_unknown_log_entry_type_is_named() -> None:
    with pytest.raises(MalformedDataError, match="type 99"):
        decode_log_entry(JavaDataWriter().i64(1).i16(99).i64(0).utf("").to_bytes())


def test_bytes_after_a_log_entry_are_malformed() -> None:
    with pytest.raises(MalformedDataError, match="1 bytes after its end"):
        decode_log_entry(GOLDEN_INSERT + b"\0")


VALUES: dict[ColumnType, st.SearchStrategy[Any]] = {
    ColumnType.STRING: st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    ColumnType.LONG: i64,
    ColumnType.INTEGER: st.integers(-(1 << 31), (1 << 31) - 1),
    ColumnType.BYTES: blobs,
    ColumnType.TIMESTAMP: i64,
    ColumnType.DOUBLE: st.floats(allow_nan=False),
    ColumnType.BOOLEAN: st.booleans(),
    ColumnType.FLOAT_ARRAY: st.lists(st.floats(width=32, allow_nan=False), max_size=5).map(tuple),
}
stored_types = st.sampled_from(list(VALUES))


@st.composite
def tables(draw: st.DrawFn) -> TableDefinition:
    kinds = draw(st.lists(st.tuples(stored_types, st.booleans()), min_size=1, max_size=6))
    positions = draw(st.lists(st.integers(0, 300), min_size=len(kinds), max_size=len(kinds), unique=True))
    columns = tuple(
        Column(f"c{index}", kind, position, nullable, draw(st.none() | blobs))
        for index, ((kind, nullable), position) in enumerate(zip(kinds, positions, strict=True))
    )
    keys = draw(st.lists(st.sampled_from([column.name for column in columns]), min_size=1, max_size=3, unique=True))
    foreign = draw(st.lists(st.builds(ForeignKey, names, names, st.just(("c0",)), st.just(("p",)), st.integers(0, 3)), max_size=2))
    return TableDefinition("demo", draw(names), draw(names), columns, tuple(keys), draw(st.booleans()), max(positions), tuple(foreign))


@given(tables())
def test_any_table_definition_is_read_back(table: TableDefinition) -> None:
    assert decode_table(encode_table(table)) == table


@given(tables(), st.data())
def test_any_row_of_any_table_is_read_back(table: TableDefinition, data: st.DataObject) -> None:
    row = {
        column.name: data.draw(VALUES[column.type] if column.name in table.primary_key else st.none() | VALUES[column.type])
        for column in table.columns
    }
    assert RowDecoder(table).decode(*encode_row(table, row)) == list(row.values())


def test_a_value_of_a_dropped_column_is_passed_over() -> None:
    key, value = encode_row(T1, {"id": 1, "s": "x", "i": 2})
    without = TableDefinition("herd", "t1", "uuid-1", tuple(column for column in T1.columns if column.name != "s"), ("id",))
    assert RowDecoder(without).decode(key, value)[:2] == [1, 2]


def test_a_value_that_does_not_fit_its_column_is_named() -> None:
    key, value = encode_row(T1, {"id": 1, "s": "x"})
    columns = tuple(Column("s", ColumnType.LONG, 1) if column.name == "s" else column for column in T1.columns)
    with pytest.raises(MalformedDataError, match="'s' is LONG, but a row holds STRING"):
        RowDecoder(TableDefinition("herd", "t1", "uuid-1", columns, ("id",))).decode(key, value)


def test_a_key_of_the_wrong_size_names_table_and_column() -> None:
    with pytest.raises(MalformedDataError, match="'t1': 3 bytes of key column 'id'"):
        RowDecoder(T1).decode(b"\0\0\1", b"")


def test_a_primary_key_that_is_no_column_is_refused() -> None:
    with pytest.raises(MalformedDataError, match="'nothing'"):
        decode_table(encode_table(TableDefinition("d", "t", "u", T1.columns, ("nothing",))))


@given(st.builds(IndexDefinition, names, names, names, names, names, st.just((("c", 0, 1),)), st.booleans()))
def test_any_index_definition_is_read_back(index: IndexDefinition) -> None:
    assert decode_index(encode_index(index)) == index


def test_a_ledger_list_tells_whether_the_log_has_its_beginning() -> None:
    whole = decode_ledgers(b'{"activeLedgers":[3,7],"ledgersTimestamps":[1,2],"firstLedger":3,"zkVersion":1}')
    assert whole == LedgerList((3, 7), (1, 2), 3)
    assert whole.begins
    assert not decode_ledgers(b'{"activeLedgers":[7],"ledgersTimestamps":[2],"firstLedger":3,"zkVersion":1}').begins
    assert decode_ledgers(b"") == LedgerList((), (), None)


@pytest.mark.parametrize(
    ("active", "version", "complete"),
    [
        pytest.param((3,), 1, True, id="the first write creates and sets"),
        pytest.param((3, 7, 9), 3, True, id="each ledger was added by one write"),
        pytest.param((3, 7), 3, True, id="the first write was repeated, since its answer was lost"),
        pytest.param((3, 9), 4, False, id="a ledger between two was added and removed"),
        pytest.param((7, 9), 4, False, id="the first one was"),
        pytest.param((3, 7), 0, False, id="somebody else has made the list: it proves nothing"),
        pytest.param((3, 7), None, False, id="unknown"),
    ],
)
def test_the_version_of_a_ledger_list_tells_whether_any_was_ever_dropped(active, version, complete):
    assert LedgerList(active, active, 3, version).complete is complete


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b"nonsense", "expected JSON"),
        (b'{"activeLedgers":[1],"ledgersTimestamps":[],"firstLedger":1}', "1 activeLedgers but 0"),
        (b'{"activeLedgers":[2,1],"ledgersTimestamps":[1,1],"firstLedger":1}', "ascending"),
    ],
)
def test_a_ledger_list_that_makes_no_sense_is_refused(document: bytes, words: str) -> None:
    with pytest.raises(MalformedDataError, match=words):
        decode_ledgers(document)


rows = st.lists(st.tuples(blobs, blobs), max_size=12)


@given(rows, rows, st.randoms())
def test_a_digest_depends_neither_on_order_nor_on_parts(
    left: list[tuple[bytes, bytes]], right: list[tuple[bytes, bytes]], random: Any
) -> None:
    together = left + right
    random.shuffle(together)
    assert digest_of_rows(together) == digest_of_rows(left) + digest_of_rows(right)


def test_a_digest_tells_where_a_key_ends() -> None:
    assert digest_of_rows([(b"ab", b"c")]) != digest_of_rows([(b"a", b"bc")])


VECTORS = Path(__file__).parents[3] / "images/herddb/src/test/resources/row-digest-vectors.json"


@pytest.mark.parametrize("vector", json.loads(VECTORS.read_text())["vectors"], ids=lambda vector: vector["name"])
def test_a_digest_is_the_one_that_the_node_program_computes(vector: dict[str, Any]) -> None:
    digest = digest_of_rows([(bytes.fromhex(row["key"]), bytes.fromhex(row["value"])) for row in vector["rows"]])
    assert digest.hex == vector["digest"]
    assert RowDigest.parse(digest.rows, digest.hex) == digest


def test_a_digest_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="32 hexadecimal digits"):
        RowDigest.parse(1, "abc")
