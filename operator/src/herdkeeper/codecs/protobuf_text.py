"""Reads the protobuf text form of ledger metadata (format version 2) and under-replication marks.

Source: the protobuf text format specification, as far as BookKeeper's messages use it: scalars, enum names, quoted strings with octal,
hexadecimal and letter escapes, nested messages in braces. Comments and lists in brackets don't occur.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.codecs.protobuf_wire import write_field


@dataclass(frozen=True, slots=True)
class FieldType:
    """Number of a field, and how its text becomes a wire value: by an enum's names, as a message with its own fields, or as it is."""

    number: int
    names: type[Enum] | None = None
    message: Mapping[str, FieldType] | None = None


@dataclass(frozen=True, slots=True)
class TextField:
    """One field of the text form: a scalar as written (numbers, enum names), a quoted string as bytes, or a nested message."""

    name: str
    value: str | bytes | tuple[TextField, ...]


_TEXT_TOKEN = re.compile(
    rb"""\s*(?:
        (?P<name>[A-Za-z_]\w*)
      | (?P<number>-?[0-9][0-9a-fA-Fx]*)
      | (?P<quoted>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<mark>[:{}<>;,])
    )""",
    re.VERBOSE,
)
_MOST_NESTED = 8
"""No message of BookKeeper goes deeper than two."""
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)", re.DOTALL)
_SIMPLE_ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


def read_text_fields(text: bytes) -> tuple[TextField, ...]:
    """Returns the fields of a message in text form, nested messages included. Raises MalformedDataError naming the offset."""
    tokens = _tokens(text)
    fields, rest = _read_message(tokens, 0, depth=0)
    if rest != len(tokens):
        raise MalformedDataError(f"protobuf text: unexpected {tokens[rest][1]!r}")
    return fields


def unescape(quoted: bytes) -> bytes:
    """Returns the bytes of a quoted text-form string, with octal, hexadecimal or letter escapes for unprintable bytes."""

    def replacement(match: re.Match[bytes]) -> bytes:
        code = match.group(1)
        if code[:1] in b"01234567":
            return bytes([int(code, 8) & 0xFF])
        if code[:1] == b"x" and len(code) > 1:
            return bytes([int(code[1:], 16)])
        return _SIMPLE_ESCAPES.get(code, code)

    return _ESCAPE.sub(replacement, quoted)


def _tokens(text: bytes) -> list[tuple[str, bytes]]:
    tokens = []
    position = 0
    end = len(text.rstrip())
    while position < end:
        match = _TEXT_TOKEN.match(text, position)
        if match is None:
            raise MalformedDataError(f"protobuf text: cannot read {text[position : position + 20]!r} at byte {position}")
        tokens.append((str(match.lastgroup), match.group(str(match.lastgroup))))
        position = match.end()
    return tokens


def _read_message(tokens: list[tuple[str, bytes]], start: int, depth: int) -> tuple[tuple[TextField, ...], int]:
    fields: list[TextField] = []
    at = start
    while at < len(tokens) and tokens[at][1] not in (b"}", b">"):
        if tokens[at][1] in (b";", b","):
            at += 1
            continue
        field, at = _read_field(tokens, at, depth)
        fields.append(field)
    if depth == 0:
        return tuple(fields), at
    if at >= len(tokens):
        raise MalformedDataError("protobuf text: a nested message has no end")
    return tuple(fields), at + 1


def _read_field(tokens: list[tuple[str, bytes]], at: int, depth: int) -> tuple[TextField, int]:
    kind, name = tokens[at]
    if kind != "name":
        raise MalformedDataError(f"protobuf text: expected a field name, found {name!r}")
    at += 1
    if at < len(tokens) and tokens[at][1] == b":":
        at += 1
    if at >= len(tokens):
        raise MalformedDataError(f"protobuf text: field {name.decode()} has no value")
    kind, token = tokens[at]
    if token in (b"{", b"<"):
        if depth == _MOST_NESTED:
            raise MalformedDataError(f"protobuf text: messages are nested more than {_MOST_NESTED} deep")
        message, at = _read_message(tokens, at + 1, depth + 1)
        return TextField(name.decode(), message), at
    if kind == "quoted":
        return TextField(name.decode(), unescape(token[1:-1])), at + 1
    if kind == "mark":
        raise MalformedDataError(f"protobuf text: field {name.decode()} has no value, found {token!r}")
    return TextField(name.decode(), token.decode()), at + 1


def text_to_wire(fields: tuple[TextField, ...], types: Mapping[str, FieldType]) -> bytes:
    """Returns the message in wire format. Fields without a type are dropped, like unknown fields everywhere."""
    return b"".join(write_field(types[field.name].number, _wire_value(field, types[field.name])) for field in fields if field.name in types)


def _wire_value(field: TextField, kind: FieldType) -> int | bytes:
    value = field.value
    if isinstance(value, tuple):
        if kind.message is None:
            raise MalformedDataError(f"protobuf text: field {field.name} is a message, expected a scalar")
        return text_to_wire(value, kind.message)
    if isinstance(value, bytes):
        return value
    try:
        if kind.names is not None and not value.lstrip("-").isdigit():
            return int(kind.names[value].value)
        number = int(value, 0)
        if not -(1 << 63) <= number < 1 << 63:
            raise ValueError("more than 64 bits")
        return number
    except (KeyError, ValueError) as error:
        raise MalformedDataError(
            f"protobuf text: field {field.name} has the value {value!r}, which is no number or name that is known"
        ) from error
