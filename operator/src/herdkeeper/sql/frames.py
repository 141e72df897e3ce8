"""HerdDB's wire protocol, version 3: messages to bytes and bytes to messages. Pure, no socket.

Source: herddb-utils, `herddb.proto.PduCodec`, `Pdu` and `ByteBufUtils` of HerdDB 0.29. A frame is u32 length, then
u8 version (3), u8 flags (1 request, 2 response, 4 "don't keep read locks"), u8 type, i64 message id, body; big-endian.
Strings are VInt length + UTF-8 (not Java's modified UTF-8 here); VInt is LEB128, low group first.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence, Sized
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Any

from herdkeeper.codecs.java_data import JavaDataReader, JavaDataWriter, MalformedDataError
from herdkeeper.sql.errors import SqlError

_ALLOWED_TYPES = "use None, bool, int, float, str, bytes, datetime (with a time zone) or a list of float"

Value = None | bool | int | float | str | bytes | datetime | list[float]
"""What a column or a parameter can be. A timestamp is a datetime in UTC with milliseconds; a list is HerdDB's float array."""

VERSION = 3
REQUEST_FLAG = 1
RESPONSE_FLAG = 2
DONT_KEEP_READ_LOCKS = 4
HEADER = struct.Struct(">bbbq")
LENGTH = struct.Struct(">I")
_LONG = struct.Struct(">q")
_DOUBLE = struct.Struct(">d")
MAX_FRAME_BYTES = 1 << 30
"""No answer is larger: a fetch is bounded by its row count. A larger length means that this is not a HerdDB server. Nor may a request be:
a server would read the length of twice as much as a negative number."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_MILLIS = range(
    (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND, (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND + 1
)
"""Those that `timestamp_from_millis` takes."""


class MessageType(IntEnum):
    """The types that this client sends or understands (`Pdu.TYPE_*`)."""

    ACK = 0
    ERROR = 4
    EXECUTE_STATEMENT = 5
    EXECUTE_STATEMENT_RESULT = 6
    OPEN_SCANNER = 7
    RESULT_SET_CHUNK = 8
    CLOSE_SCANNER = 9
    FETCH_SCANNER_DATA = 10
    EXECUTE_STATEMENTS = 15
    EXECUTE_STATEMENTS_RESULT = 16
    TRANSACTION_COMMAND = 24
    TRANSACTION_COMMAND_RESULT = 25
    SASL_REQUEST = 100
    SASL_RESPONSE = 101
    PREPARE_STATEMENT = 103
    PREPARE_STATEMENT_RESULT = 104


class TransactionCommand(IntEnum):
    """`PduCodec.TxCommand`."""

    ROLLBACK = 1
    COMMIT = 2
    BEGIN = 3


class ErrorFlag(IntEnum):
    """Bits of an error answer's first byte (`PduCodec.ErrorResponse`)."""

    NOT_LEADER = 1
    MISSING_PREPARED_STATEMENT = 2
    DUPLICATE_KEY = 4


@dataclass(frozen=True)
class Message:
    """One received message: its type as a number (it may be unknown here) and its body."""

    type: int
    flags: int
    id: int
    body: bytes


def encode_frame(message_type: MessageType, message_id: int, body: bytes) -> bytes:
    """Returns a request with its length. Raises ValueError if it is larger than a frame may be."""
    payload = HEADER.pack(VERSION, REQUEST_FLAG, message_type, message_id) + body
    if len(payload) > MAX_FRAME_BYTES:
        raise ValueError(f"a request of {len(payload)} bytes: a statement and its parameters have at most {MAX_FRAME_BYTES}")
    return LENGTH.pack(len(payload)) + payload


def decode_payload(payload: bytes) -> Message:
    """Decode a frame without its length. Raises MalformedDataError if it is shorter than a header, or of another version."""
    if len(payload) < HEADER.size:
        raise MalformedDataError(f"a message of {len(payload)} bytes is shorter than its header of {HEADER.size} bytes")
    version, flags, message_type, message_id = HEADER.unpack_from(payload)
    if version != VERSION:
        raise MalformedDataError(f"protocol version {version} instead of {VERSION}: is this the SQL port of a HerdDB node?")
    return Message(message_type, flags, message_id, payload[HEADER.size :])


def _array(data: bytes) -> bytes:
    return _count(data) + data


def _text(text: str) -> bytes:
    return _array(text.encode())


def _count(items: Sized) -> bytes:
    return bytes((len(items),)) if len(items) < 0x80 else JavaDataWriter().v_int(len(items)).to_bytes()


def timestamp_millis(moment: datetime) -> int:
    """Returns milliseconds since 1970-01-01 UTC, truncated, since HerdDB keeps milliseconds.

    Raises:
        ValueError: the datetime has no time zone, or is outside of the years 1 to 9999 in UTC: nobody could read the row here.
    """
    if moment.tzinfo is None:
        raise ValueError(f"the datetime {moment.isoformat()} has no time zone: pass one, for example tzinfo=datetime.UTC")
    millis = (moment - _EPOCH) // _MILLISECOND
    if millis not in _MILLIS:
        raise ValueError(f"the datetime {moment.isoformat()} is outside of the years 1 to 9999 in UTC: Python could not read it back")
    return millis


def timestamp_from_millis(millis: int) -> datetime:
    """Returns the time in UTC. Raises OverflowError outside the years 1 to 9999 of Python's datetime."""
    return _EPOCH + timedelta(milliseconds=millis)


_ENCODERS: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda _: b"\x05",
    bool: lambda value: b"\x07\x01" if value else b"\x07\x00",
    int: lambda value: b"\x01" + _LONG.pack(value),
    float: lambda value: b"\x06" + _DOUBLE.pack(value),
    str: lambda value: b"\x00" + _text(value),
    bytes: lambda value: b"\x03" + _array(value),
    datetime: lambda value: b"\x04" + _LONG.pack(timestamp_millis(value)),
    list: lambda value: b"\x0a" + _count(value) + struct.pack(f">{len(value)}f", *value),
}
"""By exact type: loads send millions of values."""


def encode_value(value: Value) -> bytes:
    """Encode a parameter: type code and payload. Every int is sent as a long; HerdDB converts it to the column's type. Raises TypeError for
    what HerdDB has no type for, and ValueError for more than 64 bits, or a datetime that `timestamp_millis` refuses.
    """
    encoder = _ENCODERS.get(type(value)) or next((found for kind, found in _ENCODERS.items() if isinstance(value, kind)), None)
    if encoder is None:
        raise TypeError(f"a parameter of type {type(value).__name__}: {_ALLOWED_TYPES}")
    try:
        return encoder(value)
    except struct.error as error:
        if isinstance(value, int):
            raise ValueError(f"the parameter {value} has more than 64 bits: HerdDB's largest integer type is long") from error
        raise TypeError("a list with values other than floats: HerdDB has only arrays of floats") from error


def encode_values(values: Sequence[Value]) -> bytes:
    """VInt count and the values."""
    return _count(values) + b"".join(map(encode_value, values))


def decode_value(reader: JavaDataReader, moment: Callable[[int], Value] = timestamp_from_millis) -> Value:  # noqa: PLR0911, C901 - one return per wire type
    """Decode a value: type code and payload. `moment` makes a timestamp's value of its milliseconds, or raises OverflowError. Raises
    MalformedDataError for an unknown code, or truncated bytes.
    """
    start = reader.position
    code = reader.v_int()
    match code:
        case 0:
            return decode_text(reader)
        case 1:
            return reader.i64()
        case 2:
            return reader.i32()
        case 3:
            return _present(reader)
        case 4:
            return moment(reader.i64())
        case 5:
            return None
        case 6:
            return reader.f64()
        case 7:
            return reader.boolean()
        case 8:
            return reader.i16()
        case 9:
            return int.from_bytes(reader.raw(1), "big", signed=True)
        case 10:
            return [reader.f32() for _ in range(reader.v_int())]
    raise MalformedDataError(f"value type {code} at byte {start}: expected 0 to 10")


def decode_text(reader: JavaDataReader) -> str:
    """VInt length and plain UTF-8. Invalid bytes become U+FFFD: an error's text must never hide the error."""
    return _present(reader).decode(errors="replace")


def _present(reader: JavaDataReader) -> bytes:
    start = reader.position
    data = reader.array()
    if data is None:
        raise MalformedDataError(f"null at byte {start}: expected bytes")
    return data


@dataclass(frozen=True)
class Chunk:
    """A piece of a result set: column names, rows, and whether it is the last piece."""

    columns: tuple[str, ...]
    rows: list[tuple[Value, ...]]
    last: bool

    def records(self) -> Iterator[dict[str, Value]]:
        """Each row as column name to value. Raises SqlError if several columns have one name, since only one of them could be returned."""
        if len(set(self.columns)) < len(self.columns):
            raise SqlError(
                f"several columns have one name ({', '.join(self.columns)}): give them others, as in SELECT a.k AS k1, b.k AS k2"
            )
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)


def decode_chunk(body: bytes, moment: Callable[[int], Value] = timestamp_from_millis) -> Chunk:
    """`ResultSetChunk`: i64 tx, u8 last, i32 n, n names, i32 rows, rows times n values."""
    reader = JavaDataReader(body)
    reader.i64()
    last = reader.boolean()
    columns = tuple(decode_text(reader) for _ in range(reader.i32()))
    count = reader.i32()
    if count > 0 and not columns:
        raise MalformedDataError(f"{count} rows without columns")
    rows = [tuple(decode_value(reader, moment) for _ in columns) for _ in range(count)]
    return Chunk(columns, rows, last)


def sasl_plain_body(username: str, password: str) -> bytes:
    """The first and only token of SASL PLAIN: NUL user NUL password."""
    return _text("PLAIN") + _array(f"\0{username}\0{password}".encode())


@dataclass(frozen=True)
class Statement:
    """One SQL text for a tablespace, in a transaction (0 = none: autocommit).

    `keeps_read_locks`: rows that a transaction's SELECT has read stay locked until its end, so that reads repeat. `returns_key`: the answer
    has the primary key of the inserted row.
    """

    tablespace: str
    sql: str
    transaction_id: int = 0
    keeps_read_locks: bool = True
    returns_key: bool = False


@dataclass(frozen=True)
class Executed:
    """The result of a statement: changed rows (1 for DDL), the transaction that is open after it (0: none), and, if requested, the key of
    the inserted row. A key that is a timestamp outside of the years of Python's datetime is None: the row was inserted.
    """

    changed: int
    transaction_id: int
    key: Value = None


def execute_body(statement: Statement, parameters: Sequence[Value]) -> bytes:
    """`ExecuteStatement`: u8 return values, i64 tx, i64 prepared statement (0 = the text follows), tablespace, SQL, parameters."""
    head = struct.pack(">bqq", statement.returns_key, statement.transaction_id, 0)
    return head + _text(statement.tablespace) + _text(statement.sql) + encode_values(parameters)


def decode_executed(reader: JavaDataReader) -> Executed:
    """`ExecuteStatementResult`: i64 changed rows, i64 tx, VInt n, n/2 pairs of a name and a value; the key's name is `_key`."""
    changed, transaction_id = reader.i64(), reader.i64()
    values = [decode_value(reader, _moment_or_none) for _ in range(reader.v_int())] if not reader.at_end() else []
    if len(values) % 2:
        raise MalformedDataError(f"{len(values)} names and values: expected pairs")
    key = next((value for name, value in zip(values[::2], values[1::2], strict=True) if name == "_key"), None)
    return Executed(changed, transaction_id, key)


def _moment_or_none(millis: int) -> Value:
    return timestamp_from_millis(millis) if millis in _MILLIS else None


def execute_batch_body(statement: Statement, rows: Sequence[Sequence[Value]]) -> bytes:
    """`ExecuteStatements`: as `ExecuteStatement`, with VInt count and so many parameter lists."""
    head = struct.pack(">bqq", 0, statement.transaction_id, 0)
    texts = _text(statement.tablespace) + _text(statement.sql)
    return head + texts + _count(rows) + b"".join(map(encode_values, rows))


def open_scanner_body(statement: Statement, parameters: Sequence[Value], scanner_id: int, fetch_rows: int) -> bytes:
    """`OpenScanner`: i64 tx, i64 prepared statement, i32 fetch size, i32 max rows (0 = all), i64 scanner, tablespace, SQL, parameters.

    The trailer releases the read locks at once, always outside a transaction: nothing could release them later.
    """
    head = struct.pack(">qqiiq", statement.transaction_id, 0, fetch_rows, 0, scanner_id)
    texts = _text(statement.tablespace) + _text(statement.sql)
    trailer = b"" if statement.transaction_id and statement.keeps_read_locks else bytes([DONT_KEEP_READ_LOCKS])
    return head + texts + encode_values(parameters) + trailer


def fetch_body(scanner_id: int, fetch_rows: int) -> bytes:
    """`FetchScannerData`: i64 scanner, i32 fetch size."""
    return struct.pack(">qi", scanner_id, fetch_rows)


def close_scanner_body(scanner_id: int) -> bytes:
    """`CloseScanner`: i64 scanner. The server does not answer it."""
    return struct.pack(">q", scanner_id)


def transaction_body(command: TransactionCommand, transaction_id: int, tablespace: str) -> bytes:
    """`TxCommand`: u8 command, i64 tx (0 for BEGIN), tablespace."""
    return struct.pack(">bq", command, transaction_id) + _text(tablespace)


def prepare_body(tablespace: str, sql: str) -> bytes:
    """`PrepareStatement`: tablespace, SQL."""
    return _text(tablespace) + _text(sql)
