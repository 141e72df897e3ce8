"""Forwards the frames between a client and ZooKeeper, and replaces one answer: that to a read of `/zookeeper/config`.

A frame is a u32 length and as many bytes. The first frame of each side opens the session. Then a request is i32 xid, i32 operation, and for
getData (4) the path as i32 length and UTF-8. Its answer is i32 xid, i64 zxid, i32 error (0: none), the data as i32 length and bytes, and a
stat of 68 bytes, whose bytes 52 to 56 are the length of the data. Source: zookeeper.jute of ZooKeeper 3.9.5.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from herdkeeper.codecs.zookeeper.membership import CONFIG_PATH

_LENGTH = struct.Struct(">i")
_REQUEST = struct.Struct(">iii")
_ANSWER = struct.Struct(">iqi")
_GET_DATA = 4
_STAT_BYTES, _STAT_LENGTH = 68, slice(52, 56)


@dataclass
class Frames:
    """Cuts a stream of bytes into the contents of its frames."""

    _rest: bytes = b""

    def cut(self, data: bytes) -> Iterator[bytes]:
        """The frames that are complete with these bytes."""
        self._rest += data
        while len(self._rest) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._rest)[0]
            if len(self._rest) < end:
                return
            frame, self._rest = self._rest[_LENGTH.size : end], self._rest[end:]
            yield frame


@dataclass
class ConfigRewriter:
    """One connection. `config` is what its client shall read at `/zookeeper/config`."""

    config: bytes
    _requests: Frames = field(default_factory=Frames)
    _answers: Frames = field(default_factory=Frames)
    _asked: set[int] = field(default_factory=set)
    _opened: bool = False

    def from_client(self, data: bytes) -> None:
        """Bytes that pass on to ZooKeeper as they are."""
        for frame in self._requests.cut(data):
            if CONFIG_PATH.encode() in frame and len(frame) >= _REQUEST.size:
                xid, operation, length = _REQUEST.unpack_from(frame)
                if operation == _GET_DATA and frame[_REQUEST.size : _REQUEST.size + length] == CONFIG_PATH.encode():
                    self._asked.add(xid)

    def from_server(self, data: bytes) -> bytes:
        """What the client gets of these bytes."""
        return b"".join(_LENGTH.pack(len(frame)) + frame for frame in map(self._answer, self._answers.cut(data)))

    def _answer(self, frame: bytes) -> bytes:
        if not self._opened:
            self._opened = True
            return frame
        xid, zxid, error = _ANSWER.unpack_from(frame)
        if xid not in self._asked:
            return frame
        self._asked.discard(xid)
        stat = bytearray(frame[-_STAT_BYTES:] if error == 0 else bytes(_STAT_BYTES))
        size = _LENGTH.pack(len(self.config))
        stat[_STAT_LENGTH] = size
        return _ANSWER.pack(xid, zxid, 0) + size + self.config + bytes(stat)
