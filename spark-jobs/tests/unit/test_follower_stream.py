"""A follower's tables in transit: any change is detected."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from played_follower import PlayedTable, frame, frames, stream

from herdkeeper.codecs.herddb.index import IndexDefinition
from herdkeeper.codecs.herddb.row_digest import digest_of_rows
from herdkeeper.codecs.herddb.table import Column, ColumnType, TableDefinition
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper_jobs.checkpoint.follower_stream import (
    StreamBroken,
    StreamedIndex,
    StreamedPosition,
    StreamedRows,
    StreamedTable,
    StreamedTableEnd,
    read_stream,
)
from herdkeeper_jobs.wal.lsn import Lsn

COLUMNS = (Column("k", ColumnType.LONG, 0, nullable=False), Column("v", ColumnType.STRING, 1))
INDEX = IndexDefinition("demo", "by_v", "i1", "t", "brin", (("v", 0, 1),), unique=True)
TABLES = (
    PlayedTable(TableDefinition("demo", "blank", "u0", COLUMNS, ("k",))),
    PlayedTable(
        TableDefinition("demo", "t", "u1", COLUMNS, ("k",), auto_increment=True),
        [(b"key1", b"value"), (b"key2", b""), (b"k", b"\x00" * 300)],
        7,
        ((INDEX, True), (IndexDefinition("demo", "left", "i2", "t", "hash", (("v", 0, 1),)), False)),
    ),
)
SENT = stream(Lsn(12, 345), "0ab", TABLES)
GOLDEN = Path(__file__).parents[3] / "images/herddb/src/test/resources/tables-stream.hex"
rows = st.lists(st.tuples(st.binary(max_size=20), st.binary(max_size=50)), max_size=9)


class Dripping(io.BytesIO):
    """Returns a few bytes at a time, as a network does."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(7, size) if size is not None and size >= 0 else size)


def test_what_was_sent_comes_in_its_order() -> None:
    parts = list(read_stream(Dripping(SENT)))
    assert parts[0] == StreamedPosition(Lsn(12, 345), "0ab")
    assert parts[1:3] == [StreamedTable(TABLES[0].definition, 1), StreamedTableEnd(digest_of_rows([]))]
    assert parts[3:6] == [StreamedTable(TABLES[1].definition, 7), *(StreamedIndex(*index) for index in TABLES[1].indexes)]
    came = [part for part in parts if isinstance(part, StreamedRows)]
    pairs = [pair for part in came for pair in zip(part.keys.to_pylist(), part.values.to_pylist(), strict=True)]
    assert pairs == TABLES[1].rows
    assert parts[-1] == StreamedTableEnd(digest_of_rows(list(TABLES[1].rows)))


def test_the_node_program_writes_these_very_bytes() -> None:
    assert bytes.fromhex(GOLDEN.read_text()) == stream(Lsn(12, 345), "0ab", TABLES, rows_in_a_frame=10)


@settings(max_examples=50, deadline=None)
@given(st.lists(rows, max_size=4), st.integers(1, 4))
def test_any_rows_come_as_they_were_sent(tables: list[list[tuple[bytes, bytes]]], rows_in_a_frame: int) -> None:
    played = [PlayedTable(TableDefinition("demo", f"t{n}", f"u{n}", COLUMNS, ("k",)), found) for n, found in enumerate(tables)]
    came: list[list[tuple[bytes, bytes]]] = []
    for part in read_stream(io.BytesIO(stream(Lsn(1, 2), "0ab", played, rows_in_a_frame))):
        if isinstance(part, StreamedTable):
            came.append([])
        if isinstance(part, StreamedRows):
            came[-1] += zip(part.keys.to_pylist(), part.values.to_pylist(), strict=True)
    assert came == tables


def test_a_stream_that_ends_anywhere_before_its_end_is_broken() -> None:
    for size in range(len(SENT)):
        with pytest.raises(StreamBroken, match="ends in its middle"):
            list(read_stream(io.BytesIO(SENT[:size])))


def test_a_stream_of_which_any_byte_was_changed_is_broken() -> None:
    for position in range(len(SENT)):
        changed = bytearray(SENT)
        changed[position] ^= 1
        with pytest.raises((StreamBroken, MalformedDataError)):
            list(read_stream(io.BytesIO(bytes(changed))))


@pytest.mark.parametrize("tables", [TABLES, TABLES[::-1]], ids=["a table with rows comes last", "one without rows comes last"])
def test_a_frame_that_is_missing_or_stands_twice_is_noticed(tables: tuple[PlayedTable, ...]) -> None:
    sent = [frame(*item) for item in frames(Lsn(12, 345), "0ab", tables)]
    for position in range(len(sent)):
        for other in ([], [sent[position]] * 2):
            changed = b"".join([*sent[:position], *other, *sent[position + 1 :]])
            if position == len(sent) - 1 and other:
                continue  # data after the end is not read
            with pytest.raises(StreamBroken):
                list(read_stream(io.BytesIO(changed)))


def test_why_a_node_ended_it_is_told() -> None:
    torn = b"".join(frame(*item) for item in frames(Lsn(12, 345), "0ab", TABLES)[:4])
    with pytest.raises(StreamBroken, match="the node ended it: the follower was held for the allowed time"):
        list(read_stream(io.BytesIO(torn + frame(b"F", b"the follower was held for the allowed time"))))


def test_another_version_is_refused_by_its_number() -> None:
    with pytest.raises(StreamBroken, match="version 2, this program knows 1"):
        list(read_stream(io.BytesIO(SENT.replace(b"\x00\x00\x00\x01", b"\x00\x00\x00\x02", 1))))
