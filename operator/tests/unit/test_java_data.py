"""Java's data streams: golden bytes from HerdDB, and everything written is read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdkeeper.codecs.java_data import JavaDataReader, JavaDataWriter, MalformedDataError, decode_modified_utf8, encode_modified_utf8

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (-1, "ffffffff0f"), (-(2**31), "8080808008")],
)
def test_a_v_int_has_the_bytes_that_herddb_writes(value: int, expected: str) -> None:
    assert JavaDataWriter().v_int(value).to_bytes().hex() == expected
    assert JavaDataReader(bytes.fromhex(expected)).v_int() == value


def test_a_tablespace_znode_of_herddb_is_read_field_by_field() -> None:
    reader = JavaDataReader(bytes.fromhex("0100000361626300046865726400026e30020200026e3000026e319875"))
    assert (reader.v_long(), reader.v_long()) == (1, 0)
    assert [reader.utf() for _ in range(3)] == ["abc", "herd", "n0"]
    assert reader.v_int() == 2
    assert [reader.utf() for _ in range(reader.v_int())] == ["n0", "n1"]
    assert reader.v_long() == 15000
    assert reader.at_end()


@pytest.mark.parametrize(
    ("text", "encoded"),
    [("a\0b", "61c08062"), ("è", "c3a8"), ("€", "e282ac"), ("😀", "eda0bdedb880"), ("\ud800", "eda080")],
)
def test_modified_utf8_writes_nul_and_astral_characters_as_java_does(text: str, encoded: str) -> None:
    assert encode_modified_utf8(text).hex() == encoded
    assert decode_modified_utf8(bytes.fromhex(encoded)) == text


def test_four_byte_utf8_is_refused_as_java_refuses_it() -> None:
    with pytest.raises(MalformedDataError, match="0xf0"):
        decode_modified_utf8("😀".encode())


@given(st.text(st.characters(exclude_categories=()), max_size=200))
def test_any_text_survives_modified_utf8(text: str) -> None:
    normal = text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
    assert decode_modified_utf8(encode_modified_utf8(text)) == normal


@given(INT32, INT64, st.none() | st.binary(max_size=300), st.floats(allow_nan=False))
def test_everything_written_is_read_back(v32: int, v64: int, array: bytes | None, number: float) -> None:
    writer = JavaDataWriter().v_int(v32).v_long(v64).array(array).f64(number)
    writer.i32(v32).i64(v64).boolean(True).utf("x")
    reader = JavaDataReader(writer.to_bytes())
    assert (reader.v_int(), reader.v_long()) == (v32, v64)
    assert (reader.array(), reader.f64(), reader.i32(), reader.i64()) == (array, number, v32, v64)
    assert (reader.boolean(), reader.utf(), reader.remaining) == (True, "x", 0)


@given(st.binary(max_size=12))
def test_bytes_that_end_too_early_raise_and_never_give_a_short_value(data: bytes) -> None:
    reader = JavaDataReader(JavaDataWriter().array(data).to_bytes()[:-1] if data else b"")
    with pytest.raises(MalformedDataError, match="are left"):
        reader.array()


def test_a_number_without_an_end_is_refused() -> None:
    with pytest.raises(MalformedDataError, match="more than 5 bytes"):
        JavaDataReader(b"\xff" * 20).v_int()


def test_a_negative_array_length_other_than_null_is_refused() -> None:
    with pytest.raises(MalformedDataError, match="array length -2"):
        JavaDataReader(JavaDataWriter().v_int(-2).to_bytes()).array()


def test_text_beyond_the_limit_of_write_utf_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 65535"):
        JavaDataWriter().utf("x" * 65536)
