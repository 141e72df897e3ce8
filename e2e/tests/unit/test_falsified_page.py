"""A row on a SQL node's disk gets another value, and nothing but a comparison of rows could tell."""

from pathlib import Path

import pytest

from herdkeeper.codecs.java_data import JavaDataReader, JavaDataWriter, MalformedDataError
from herdkeeper_e2e.falsified_page import NO_HASH, falsified, falsify

HASH = 0x1234


def page(*records: tuple[bytes, bytes], version: int = 1, rest: bytes = b"") -> bytes:
    writer = JavaDataWriter().v_long(version).v_long(0).i32(len(records))
    for key, value in records:
        writer.array(key).array(value)
    return writer.i64(HASH).raw(rest).to_bytes()


def test_the_value_changes_and_the_hash_goes_while_keys_and_other_values_stay() -> None:
    changed = falsified(page((b"right", b"a"), (b"k", b"it is right"), rest=b"garbage"), b"right", b"wrong")

    assert changed.replace(b"\0" * 8, HASH.to_bytes(8, "big")) == page((b"right", b"a"), (b"k", b"it is wrong"), rest=b"garbage")
    reader = JavaDataReader(changed)
    assert (reader.v_long(), reader.v_long(), reader.i32()) == (1, 0, 2)
    assert [reader.array() for _ in range(4)] == [b"right", b"a", b"k", b"it is wrong"]
    assert (reader.i64(), reader.rest()) == (NO_HASH, b"garbage")


def test_a_page_without_such_a_value_stays_as_it_is_with_its_hash() -> None:
    before = page((b"right", b"something else"))
    assert falsified(before, b"right", b"wrong") == before


def test_texts_of_two_lengths_and_other_files_are_refused() -> None:
    with pytest.raises(ValueError, match="must be of one length"):
        falsified(page((b"k", b"right")), b"right", b"no")
    with pytest.raises(MalformedDataError, match="version 2"):
        falsified(page((b"k", b"right"), version=2), b"right", b"wrong")


def test_only_the_pages_of_tables_that_have_it_are_written(tmp_path: Path) -> None:
    for name, value in (("t1.table/1.page", b"right"), ("t1.table/2.page", b"other"), ("i1.index/1.page", b"right")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(page((b"k", value)))

    assert falsify(tmp_path, b"right", b"wrong") == [tmp_path / "t1.table/1.page"]
    assert (tmp_path / "t1.table/2.page").read_bytes() == page((b"k", b"other"))
    assert (tmp_path / "i1.index/1.page").read_bytes() == page((b"k", b"right"))
    assert falsify(tmp_path, b"right", b"wrong") == []
