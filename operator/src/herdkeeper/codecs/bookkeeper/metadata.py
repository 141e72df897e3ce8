"""BookKeeper's ledger metadata, as in a ledger's znode, in every format version.

Version 3 (since 4.9) is a line `BookieMetadataFormatVersion\\t3`, a varint length and a LedgerMetadataFormat. Version 2 is the same line
with 2 and the same message in protobuf text form; version 1 is a handful of lines. Versions 1 and 2 without a password field have no digest
type: its default is a setting of the reader, so it is None here. Source: LedgerMetadataSerDe and DataFormats.proto of BookKeeper 4.18.0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from herdkeeper.codecs.java_data import JavaDataReader, MalformedDataError
from herdkeeper.codecs.protobuf_text import FieldType, read_text_fields, text_to_wire
from herdkeeper.codecs.protobuf_wire import WireField, read_fields

_HEADER = b"BookieMetadataFormatVersion\t"
_MOST_DIGITS = 9
Member = TypeVar("Member", bound=Enum)
_V1_CLOSED = "CLOSED"
_V1_IN_RECOVERY = -102
NO_ENTRY = -1
"""Last entry of an empty ledger."""


class LedgerState(Enum):
    """State of a ledger; the value is the number in the wire format."""

    OPEN = 1
    IN_RECOVERY = 2
    CLOSED = 3


class DigestType(Enum):
    """How entries are protected; the value is the number in the wire format."""

    CRC32 = 1
    HMAC = 2
    CRC32C = 3
    DUMMY = 4


@dataclass(frozen=True, slots=True)
class Segment:
    """The bookies with the entries from `first_entry_id` to the next segment's first. The position in `bookies` decides who holds which."""

    first_entry_id: int
    bookies: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LedgerMetadata:
    """What ZooKeeper knows about one ledger."""

    ledger_id: int
    ensemble_size: int
    write_quorum: int
    ack_quorum: int
    state: LedgerState
    length: int | None
    """Bytes of payload in all entries; None unless closed."""
    last_entry_id: int | None
    """-1 for a closed ledger without entries; None unless closed."""
    segments: tuple[Segment, ...]
    """Ordered by first entry."""
    digest_type: DigestType | None = None
    """None if the metadata lacks it: the writer's configuration decided."""
    password: bytes = dataclasses.field(default=b"", repr=False)
    custom_metadata: tuple[tuple[str, bytes], ...] = ()

    @property
    def closed(self) -> bool:
        """Whether the last entry is final."""
        return self.state is LedgerState.CLOSED

    def custom(self, key: str) -> bytes | None:
        """One value of the custom metadata."""
        return dict(self.custom_metadata).get(key)


_TEXT_FIELDS = {
    "quorumSize": FieldType(1),
    "ensembleSize": FieldType(2),
    "length": FieldType(3),
    "lastEntryId": FieldType(4),
    "state": FieldType(5, names=LedgerState),
    "segment": FieldType(6, message={"ensembleMember": FieldType(1), "firstEntryId": FieldType(2)}),
    "digestType": FieldType(7, names=DigestType),
    "password": FieldType(8),
    "ackQuorumSize": FieldType(9),
    "ctime": FieldType(10),
    "customMetadata": FieldType(11, message={"key": FieldType(1), "value": FieldType(2)}),
}


def decode_ledger_metadata(ledger_id: int, data: bytes) -> LedgerMetadata:
    """Decode a ledger's znode, which lacks the id. Raises MalformedDataError naming the ledger and the problem."""
    try:
        version, body = _split_header(data)
        match version:
            case 1:
                metadata = _decode_lines(ledger_id, body)
            case 2:
                metadata = _from_fields(ledger_id, read_fields(text_to_wire(read_text_fields(body), _TEXT_FIELDS)))
            case 3:
                reader = JavaDataReader(body)
                metadata = _from_fields(ledger_id, read_fields(reader.raw(reader.v_int())))
            case _:
                raise MalformedDataError(f"format version {version} is unknown; this program reads 1, 2 and 3")
        _check(metadata)
    except MalformedDataError as error:
        raise MalformedDataError(f"metadata of ledger {ledger_id}: {error}") from error
    return metadata


def _split_header(data: bytes) -> tuple[int, bytes]:
    if not data.startswith(_HEADER):
        raise MalformedDataError(f"expected it to begin with {_HEADER!r}, found {data[:30]!r}")
    line, separator, body = data[len(_HEADER) :].partition(b"\n")
    if not separator or not line.isdigit() or len(line) > _MOST_DIGITS:
        raise MalformedDataError(f"expected a version number and a line end, found {line[:12]!r}")
    return int(line), body


def _check(metadata: LedgerMetadata) -> None:
    """Refuse what no BookKeeper writes, so that later code may rely on it."""
    if not 1 <= metadata.ack_quorum <= metadata.write_quorum <= metadata.ensemble_size:
        sizes = f"E={metadata.ensemble_size}, Wq={metadata.write_quorum}, Aq={metadata.ack_quorum}"
        raise MalformedDataError(f"expected E >= Wq >= Aq >= 1, found {sizes}")
    firsts = [segment.first_entry_id for segment in metadata.segments]
    if not firsts or firsts[0] != 0 or firsts != sorted(set(firsts)):
        raise MalformedDataError(f"expected segments that start at 0 and ascend, found first entries {firsts}")
    for segment in metadata.segments:
        if len(segment.bookies) != metadata.ensemble_size:
            raise MalformedDataError(
                f"segment at entry {segment.first_entry_id} names {len(segment.bookies)} bookies, E is {metadata.ensemble_size}"
            )


def _from_fields(ledger_id: int, fields: Iterable[WireField]) -> LedgerMetadata:
    by_number: dict[int, list[WireField]] = {}
    for field in fields:
        by_number.setdefault(field.number, []).append(field)

    def number(field_number: int) -> int | None:
        return by_number[field_number][-1].signed() if field_number in by_number else None

    def required(field_number: int, name: str) -> int:
        value = number(field_number)
        if value is None:
            raise MalformedDataError(f"field {name} is missing")
        return value

    write_quorum = required(1, "quorumSize")
    ack_quorum = number(9)
    state = _enum(LedgerState, number(5) or LedgerState.OPEN.value, "state")
    closed = state is LedgerState.CLOSED
    # BookKeeper's own reader ignores the digest type without a password field. An empty password is a field, too.
    password = by_number[8][-1].data() if 8 in by_number else None
    segments = sorted((_segment(field.data()) for field in by_number.get(6, [])), key=lambda segment: segment.first_entry_id)
    return LedgerMetadata(
        ledger_id=ledger_id,
        ensemble_size=required(2, "ensembleSize"),
        write_quorum=write_quorum,
        ack_quorum=write_quorum if ack_quorum is None else ack_quorum,
        state=state,
        length=required(3, "length") if closed else None,
        last_entry_id=required(4, "lastEntryId") if closed else None,
        segments=tuple(segments),
        digest_type=None if password is None else _enum(DigestType, number(7) or DigestType.CRC32.value, "digestType"),
        password=password or b"",
        custom_metadata=tuple(_custom(field.data()) for field in by_number.get(11, [])),
    )


def _enum(kind: type[Member], value: int, name: str) -> Member:
    try:
        return kind(value)
    except ValueError as error:
        raise MalformedDataError(f"field {name} is {value}, expected one of {[member.value for member in kind]}") from error


def _segment(message: bytes) -> Segment:
    bookies: list[str] = []
    first = None
    for field in read_fields(message):
        if field.number == 1:
            bookies.append(field.text())
        elif field.number == 2:
            first = field.signed()
    if first is None:
        raise MalformedDataError("a segment has no firstEntryId")
    return Segment(first, tuple(bookies))


def _custom(message: bytes) -> tuple[str, bytes]:
    key, value = "", b""
    for field in read_fields(message):
        if field.number == 1:
            key = field.text()
        elif field.number == 2:
            value = field.data()
    return key, value


def _decode_lines(ledger_id: int, body: bytes) -> LedgerMetadata:
    """Version 1: Wq, E and length, a line per segment (first entry and bookies, tabs between), and once closed `<last entry>\tCLOSED`."""
    lines = body.decode("utf-8", "replace").splitlines()
    try:
        write_quorum, ensemble_size, length = (int(line) for line in lines[:3])
        rows = [line.split("\t") for line in lines[3:]]
        end = next((int(row[0]) for row in rows if row[1:2] == [_V1_CLOSED]), None)
        segments = tuple(Segment(int(row[0]), tuple(row[1:])) for row in rows if row[1:2] != [_V1_CLOSED])
    except ValueError as error:
        raise MalformedDataError(f"version 1: {error}") from error
    state = LedgerState.OPEN if end is None else LedgerState.IN_RECOVERY if end == _V1_IN_RECOVERY else LedgerState.CLOSED
    closed = state is LedgerState.CLOSED
    return LedgerMetadata(
        ledger_id=ledger_id,
        ensemble_size=ensemble_size,
        write_quorum=write_quorum,
        ack_quorum=write_quorum,
        state=state,
        length=length if closed else None,
        last_entry_id=end if closed else None,
        segments=segments,
    )
