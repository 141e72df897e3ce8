"""Decodes a batch at once, against entry by entry, for any entries."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdkeeper.codecs.herddb.log_entry import ROW_CHANGES, LogEntry, LogEntryType, decode_log_entry, encode_log_entry
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper_jobs.wal.batch_decode import decode_common_entries
from herdkeeper_jobs.wal.decode import LOG_SCHEMA, decode_batches

INT64 = st.integers(-(2**63), 2**63 - 1)
NAMES = st.sampled_from(["t", "flights", "größe", "", "a" * 300, "\N{GRINNING FACE}", "nul\0"])
WITHOUT_BODY = (LogEntryType.BEGIN, LogEntryType.COMMIT, LogEntryType.ROLLBACK, LogEntryType.NOOP)


@st.composite
def entries(draw: st.DrawFn) -> LogEntry:
    """Any entry, with keys and values whose lengths take one, two or three bytes."""
    kind = draw(st.sampled_from(LogEntryType))
    name, key, value = draw(NAMES), draw(st.binary(max_size=150)), draw(st.binary(max_size=20)) * draw(st.sampled_from([1, 10, 1000]))
    if kind in WITHOUT_BODY:
        name, key, value = "", b"", b""
    elif kind is LogEntryType.DROP_INDEX:
        name, key = "", b""
    elif kind in (LogEntryType.DROP_TABLE, LogEntryType.TRUNCATE):
        key, value = b"", b""
    elif kind is LogEntryType.DELETE:
        value = b""
    elif kind not in ROW_CHANGES:
        key = b""
    return LogEntry(draw(INT64), kind, draw(INT64), name, key, value)


def batch_of(payloads: list[bytes]) -> pa.RecordBatch:
    columns = {"ledger_id": [3] * len(payloads), "entry_id": list(range(len(payloads))), "payload": pa.array(payloads, pa.binary())}
    return pa.RecordBatch.from_pydict(columns)


def rows_of(batch: pa.RecordBatch) -> list[LogEntry]:
    (decoded,) = decode_batches([batch])
    assert decoded.schema == LOG_SCHEMA
    decoded.validate(full=True)
    names = ("timestamp", "type", "transaction_id", "table_name", "row_key", "row_value")
    columns = [decoded.column(name).to_pylist() for name in names]
    return [LogEntry(moment, LogEntryType(kind), *rest) for moment, kind, *rest in zip(*columns, strict=True)]


@given(st.lists(entries(), max_size=30), st.integers(0, 3))
def test_a_batch_is_decoded_as_its_entries_are_one_by_one(wanted: list[LogEntry], skipped: int) -> None:
    # a batch may be a slice of a larger one
    batch = batch_of([b"x" * 30] * skipped + [encode_log_entry(item) for item in wanted]).slice(skipped)
    assert rows_of(batch) == wanted


@given(entries(), st.data())
def test_damaged_bytes_are_refused_or_decoded_exactly_as_one_by_one(item: LogEntry, data: st.DataObject) -> None:
    payload = bytearray(encode_log_entry(item))
    for position in data.draw(st.lists(st.integers(0, len(payload) - 1), min_size=1, max_size=3)):
        payload[position] ^= data.draw(st.integers(1, 255))
    damaged = bytes(payload[: data.draw(st.integers(0, len(payload)))])
    whole = encode_log_entry(LogEntry(1, LogEntryType.INSERT, 0, "t", b"k", b"v"))
    expected, refusal = one_by_one(damaged)
    if expected is None:
        with pytest.raises(MalformedDataError) as caught:
            rows_of(batch_of([whole, damaged]))
        assert str(caught.value) == f"log entry 3,1: {refusal}"
    elif not _has_lone_surrogate(expected.table):
        assert rows_of(batch_of([whole, damaged, whole]))[1] == expected


def one_by_one(payload: bytes) -> tuple[LogEntry | None, str]:
    """The entry, or why it is refused."""
    try:
        return decode_log_entry(payload), ""
    except MalformedDataError as error:
        return None, str(error)


def _has_lone_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def test_only_common_entries_are_decoded_at_once() -> None:
    common = [
        LogEntry(1, LogEntryType.BEGIN, 5),
        LogEntry(2, LogEntryType.UPDATE, 5, "t", b"k", b"v"),
        LogEntry(3, LogEntryType.DELETE, 0, "t", b"k"),
    ]
    rare = LogEntry(4, LogEntryType.CREATE_TABLE, 0, "t", b"", b"definition")
    payloads = [encode_log_entry(item) for item in (*common, rare)]
    found = decode_common_entries(pa.array([*payloads, b"", payloads[1][:-1]], pa.binary()))
    assert found.rows.tolist() == [True, True, True, False, False, False]
    assert found.row_key.to_pylist() == [b"", b"k", b"k"]
    assert found.row_value.to_pylist() == [b"", b"v", b""]


def test_batches_with_more_bytes_than_are_copied_at_once_are_whole() -> None:
    wanted = [
        LogEntry(1, LogEntryType.INSERT, 0, "t", bytes([size % 251]) * 9, bytes([size % 250]) * size) for size in (0, 300_000, 1, 2, 90_000)
    ]
    assert rows_of(batch_of([encode_log_entry(item) for item in wanted * 4])) == wanted * 4


def test_an_empty_batch_stays_one() -> None:
    assert rows_of(batch_of([])) == []
