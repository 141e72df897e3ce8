"""Bytes that somebody else chose: anything at all, and valid bytes that were damaged, cut, or announce gigabytes."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

_HUGE_LENGTHS = (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\xff" * 9 + b"\x01", b"\x80" * 20, b"9" * 5000)
"""Two gigabytes and more as a fixed number, a varint and text, and a varint that does not end."""
_DEPTH = 100_000
DEEP = tuple(begin * _DEPTH for begin in (b"[", b'{"a":', b"a{", b"a<", b'{"zooKeeper":'))
"""Nested deeper than a recursive reader can follow."""
_LENGTH = 1 << 18


def long(valid: tuple[bytes, ...]) -> Iterator[bytes]:
    """Yields one byte or word, or a valid value, again and again: who looks for an end from each of them looks for minutes."""
    for piece in (*(bytes([byte]) for byte in b"\n\r\t 0a:;.,=-/([{<'\\\""), b"ctime:", b'\\"', *valid):
        yield piece * (_LENGTH // len(piece))


_STRANGE: tuple[Any, ...] = (
    None,
    True,
    -1,
    10**30,
    1e400,
    float("nan"),
    1.5,
    "",
    "x",
    "\ud800",
    "9" * 5000,
    [],
    [[]],
    {},
    {"a": []},
    [None, None],
)


@dataclass(frozen=True)
class Decoder:
    """`refuses` is what it raises for bytes that it can't read."""

    name: str
    decode: Callable[[bytes], object]
    valid: tuple[bytes, ...]
    refuses: tuple[type[Exception], ...] = ()

    def try_on(self, data: bytes) -> None:
        """Raises what the decoder does not declare."""
        with contextlib.suppress(*self.refuses):
            self.decode(data)

    def __str__(self) -> str:
        return self.name


@st.composite
def hostile(draw: st.DrawFn, valid: tuple[bytes, ...]) -> bytes:
    """Anything, or a valid value after up to four changes."""
    if draw(st.booleans()):
        return draw(st.binary(max_size=200))
    data = draw(st.sampled_from(valid))
    for _ in range(draw(st.integers(1, 4))):
        data = draw(st.sampled_from((_flipped, _cut, _inserted, _announced, _exchanged)))(draw, data)
    return data


def announcing(valid: tuple[bytes, ...]) -> Iterator[bytes]:
    """Yields the valid values with a huge length at each place."""
    for whole in valid:
        for huge in _HUGE_LENGTHS:
            for at in range(len(whole) + 1):
                yield whole[:at] + huge + whole[at + len(huge) :]
                yield whole[:at] + huge + whole[at:]


def _place(draw: st.DrawFn, data: bytes) -> int:
    return draw(st.integers(0, len(data)))


def _flipped(draw: st.DrawFn, data: bytes) -> bytes:
    at = _place(draw, data)
    return data[:at] + bytes(byte ^ 1 << draw(st.integers(0, 7)) for byte in data[at : at + 1]) + data[at + 1 :]


def _cut(draw: st.DrawFn, data: bytes) -> bytes:
    first, last = sorted((_place(draw, data), _place(draw, data)))
    return draw(st.sampled_from((data[:first], data[last:], data[:first] + data[last:])))


def _inserted(draw: st.DrawFn, data: bytes) -> bytes:
    at = _place(draw, data)
    return data[:at] + draw(st.binary(min_size=1, max_size=20) | st.just(data)) + data[at:]


def _announced(draw: st.DrawFn, data: bytes) -> bytes:
    at, huge = _place(draw, data), draw(st.sampled_from(_HUGE_LENGTHS))
    return data[:at] + huge + data[at + draw(st.sampled_from((0, len(huge)))) :]


def _exchanged(draw: st.DrawFn, data: bytes) -> bytes:
    """One value of a JSON document for another one, the document for that one, or a key for none."""
    begin = min((at for at in (data.find(b"{"), data.find(b"[")) if at >= 0), default=0)
    try:
        document = json.loads(data[begin:])
    except (ValueError, RecursionError):
        return data
    if draw(st.integers(0, 9)) == 0:
        document = copy.deepcopy(draw(st.sampled_from(_STRANGE)))
    places: list[tuple[Any, Any]] = []
    _collect(document, places)
    if places:
        holder, key = draw(st.sampled_from(places))
        if isinstance(holder, dict) and draw(st.integers(0, 4)) == 0:
            del holder[key]
        else:
            holder[key] = draw(st.sampled_from(_STRANGE))
    return data[:begin] + json.dumps(document).encode()


def _collect(document: Any, places: list[tuple[Any, Any]]) -> None:
    keys = list(document) if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    for key in keys:
        places.append((document, key))
        _collect(document[key], places)
