"""What the operator and its SQL client read from the network, from ZooKeeper and from what users may write: whatever stands there, a
decoder returns a value or raises what it declares, and it takes no more memory than came.
"""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hostile_bytes import DEEP, Decoder, announcing, hostile, long
from hypothesis import given, settings
from hypothesis import strategies as st
from test_bookkeeper_formats import ENTRIES, METADATA
from test_herddb_formats import GOLDEN_INSERT, GOLDEN_TABLESPACE, T1

from herdkeeper.api import Tablespace
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.codecs.bookkeeper.bookie_address import decode_bookie_address
from herdkeeper.codecs.bookkeeper.cookie import Cookie, decode_cookie, encode_cookie
from herdkeeper.codecs.bookkeeper.entry import DigestMismatchError, entry_digest
from herdkeeper.codecs.bookkeeper.layout import decode_layout, ledger_id_of
from herdkeeper.codecs.bookkeeper.metadata import DigestType, LedgerState, decode_ledger_metadata
from herdkeeper.codecs.bookkeeper.protocol import decode_length, decode_response
from herdkeeper.codecs.bookkeeper.share import read_record
from herdkeeper.codecs.bookkeeper.start_tls import decode_tls_answer
from herdkeeper.codecs.bookkeeper.underreplication import decode_recovery_delay, mark_time_ms
from herdkeeper.codecs.herddb.index import IndexDefinition, decode_index, encode_index
from herdkeeper.codecs.herddb.ledgers import decode_ledgers
from herdkeeper.codecs.herddb.log_entry import decode_log_entry
from herdkeeper.codecs.herddb.node import NodeRecord, decode_node, encode_node
from herdkeeper.codecs.herddb.record import RowDecoder
from herdkeeper.codecs.herddb.table import decode_table, encode_table
from herdkeeper.codecs.herddb.tablespace import decode_tablespace
from herdkeeper.codecs.herddb.users import decode_users, revision_of
from herdkeeper.codecs.java_data import JavaDataReader, MalformedDataError
from herdkeeper.codecs.protobuf_wire import write_field
from herdkeeper.codecs.zookeeper.membership import decode_membership
from herdkeeper.herddb.leadership.take_over import read_marks
from herdkeeper.herddb.observe.nodes import read_node
from herdkeeper.herddb.tablespace.observe_restore import progress_of
from herdkeeper.herddb.tablespace.verdicts import rebuilt
from herdkeeper.protocol.encryption_key import NoKeyError, decode_key
from herdkeeper.protocol.job_summary import AuditSummary, CheckpointSummary, JobOutcome, RestoreSummary, SummaryError
from herdkeeper.protocol.log_archive import decode_archive_progress, decode_expiry_order
from herdkeeper.protocol.log_pin import decode_log_pin, decode_stream_pin
from herdkeeper.protocol.self_report import MOST_NAMES, decode_line
from herdkeeper.shared import names
from herdkeeper.shared.time import moment_of
from herdkeeper.sql import frames

_MOST_BYTES, _MOST_CPU_SECONDS = 16 << 20, 5.0
_LSN = {"ledgerId": 3, "entryId": 7}
_NODE = [
    {
        "name": "app",
        "uuid": "u",
        "role": "leader",
        "ready": True,
        "applied": _LSN,
        "lastError": "2026-01-01T00:00:00Z no ledger",
        "checkpoint": _LSN,
        "recoverable": True,
        "retainedLog": {"ledgers": 2, "sinceMillis": 1, "keptFor": ["archive"]},
        "checks": {"t": {"pass": True, "leader": "n0", "position": _LSN}},
        "fullCheck": {
            "startedAtMillis": 1,
            "endedAtMillis": 2,
            "after": _LSN,
            "until": _LSN,
            "tables": {"t": 1},
            "notChecked": {"v": "why"},
            "writesStoppedMillis": 1,
            "longestStopMillis": 1,
            "error": None,
        },
        "barred": True,
        "barredUntil": _LSN,
        "blockedSeconds": 2.5,
        "counts": {"exact": True, "position": _LSN, "tables": {"t": 5}},
        "unreplayable": {"ledgerId": 3, "offset": 8, "entryType": "INSERT", "table": "t", "message": "m", "disk": False},
    }
]
_ALIVE = {
    "zooKeeper": {"answers": True, "seconds": 2.5},
    "unacknowledgedSeconds": {"app": 2.5},
    "failed": ["app"],
    "blockedSeconds": {"app": 75},
    "users": {"revision": "0d1f", "refused": None},
}
_HELD = {"first": [1, 0], "firstMillis": 1, "beginsLog": True, "last": [2, 3], "lastMillis": 4, "resume": [2, 0]}
_PROGRESS = {"destination": "s3", "currentAt": 1, "lagSeconds": 1.5, "trouble": "", "expiryTrouble": "", "held": _HELD}
_CHUNK = bytes(8) + b"\1" + bytes.fromhex("00000002") + b"\x01k\x01v" + bytes.fromhex("00000001") + b"\1" + bytes(8) + b"\x00\x02hi"
_REGISTRATION = write_field(6, write_field(1, b"bookie") + write_field(2, 3181) + write_field(3, b"bk-0.bk"))
_TLS = write_field(1, write_field(1, 3) + write_field(2, 9)) + write_field(2, 0)
_COOKIE = encode_cookie(Cookie("bookie-0", "/journal", ("/ledgers",), "instance"))
_BATCH = bytes.fromhex("02070000000000000000000000000005000000000000000900000000000000030000000568656c6c6f")
_MEMBERS = b"server.1=zk-0:2888:3888:participant;0.0.0.0:2181\nversion=100000002"
_INSERT = decode_log_entry(GOLDEN_INSERT)


def _json(document: object) -> bytes:
    return json.dumps(document).encode()


def _text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda data: read(data.decode(errors="replace"))


def _read_node(data: bytes) -> object:
    """As clients/http.py gives it."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    reader = SimpleNamespace(http=SimpleNamespace(get=lambda url, trust: document))
    view = read_node(cast(ClusterReader, reader), cast(Any, SimpleNamespace(url=lambda path: path, trust=None)))
    return [(copy.last_error or "").partition(" ") for copy in view] if isinstance(view, tuple) else view


def _rebuilt(text: str) -> object:
    tablespace = SimpleNamespace(metadata=SimpleNamespace(annotations={f"{names.SET_ASIDE_PREFIX}n0": text}))
    return rebuilt(cast(Tablespace, tablespace), "n0", "u")


def _decoder(
    name: str, decode: Callable[[bytes], object], *valid: bytes, refuses: type[Exception] | tuple[type[Exception], ...] = MalformedDataError
) -> Decoder:
    return Decoder(name, decode, valid, refuses if isinstance(refuses, tuple) else (refuses,))


DECODERS = (
    _decoder("response of a bookie", decode_response, _BATCH, bytes.fromhex("0201000000000000") + bytes(16) + ENTRIES[DigestType.CRC32]),
    _decoder("length of a response", lambda data: decode_length(data[:4].ljust(4, b"\0")), bytes.fromhex("00000018")),
    _decoder("answer to START_TLS", decode_tls_answer, _TLS),
    _decoder("entry of a ledger", entry_digest(DigestType.CRC32).verify, ENTRIES[DigestType.CRC32], refuses=DigestMismatchError),
    _decoder(
        "ledger metadata", lambda data: decode_ledger_metadata(7, data), *(METADATA[version, LedgerState.CLOSED] for version in (1, 2, 3))
    ),
    _decoder("registration of a bookie", lambda data: decode_bookie_address("b0", data), _REGISTRATION),
    _decoder("name of a bookie", _text(lambda text: decode_bookie_address(text, b"")), b"bk-0:3181", "bk-0:²".encode()),
    _decoder("cookie", decode_cookie, _COOKIE),
    _decoder("layout of ledgers", decode_layout, b"2\norg.apache.bookkeeper.meta.HierarchicalLedgerManagerFactory:1"),
    _decoder("path of a ledger", _text(ledger_id_of), b"/00/0000/L0001", refuses=()),
    _decoder("mark of an under-replicated ledger", mark_time_ms, b'replica: "b0"\nctime: 12\n', refuses=()),
    _decoder("recovery delay", decode_recovery_delay, b"60", refuses=()),
    _decoder("record of a drain", _text(read_record), b"12 0:1 5000:2\n", refuses=ValueError),
    _decoder("membership", decode_membership, _MEMBERS),
    _decoder("record of a tablespace", decode_tablespace, GOLDEN_TABLESPACE),
    _decoder("record of a node", decode_node, encode_node(NodeRecord("n0", "db-0.db", 7000, tls=True))),
    _decoder("list of ledgers", decode_ledgers, _json({"activeLedgers": [1, 2], "ledgersTimestamps": [5, 6], "firstLedger": 1})),
    _decoder("entry of the log", decode_log_entry, GOLDEN_INSERT),
    _decoder("table", decode_table, encode_table(T1)),
    _decoder("index", decode_index, encode_index(IndexDefinition("herd", "i", "u", "t", "hash", (("c", 0, 1),)))),
    _decoder("stored row", lambda data: RowDecoder(T1).decode(data[:8], data[8:]), _INSERT.key + _INSERT.value),
    _decoder(
        "users file", _text(lambda text: (decode_users(text), revision_of(text))), b"# revision 12\n# secret s\nu,p,admin\n", refuses=()
    ),
    _decoder("pin of the log", decode_log_pin, _json(_LSN)),
    _decoder("pin of a stream", decode_stream_pin, _json({**_LSN, "maxAgeSeconds": 60})),
    _decoder("progress of an archive", lambda data: decode_archive_progress(data, 1.5), _json(_PROGRESS)),
    _decoder("order to expire", decode_expiry_order, _json({"destination": "s3", "keepFrom": [1, 2], "manifest": "m"})),
    _decoder("progress of a restore", lambda data: progress_of(data, 5), _json({"rows": 5}), refuses=ValueError),
    _decoder("report of a node", decode_line, b"alive " + _json(_ALIVE), refuses=()),
    _decoder("tablespaces of a node", _read_node, _json(_NODE), refuses=()),
    _decoder(
        "summary of a checkpoint",
        _text(CheckpointSummary.from_json),
        CheckpointSummary("r", JobOutcome.SUCCEEDED).to_json().encode(),
        refuses=SummaryError,
    ),
    _decoder(
        "summary of a restore",
        _text(RestoreSummary.from_json),
        RestoreSummary("r", JobOutcome.SUCCEEDED).to_json().encode(),
        refuses=SummaryError,
    ),
    _decoder(
        "summary of an audit",
        _text(AuditSummary.from_json),
        AuditSummary("r", JobOutcome.SUCCEEDED).to_json().encode(),
        refuses=SummaryError,
    ),
    _decoder("mark of a rebuilt replica", _text(_rebuilt), b"3,7 until 4,1 verified of u", refuses=()),
    _decoder(
        "mark of a missed take-over",
        _text(lambda text: read_marks({f"{names.DID_NOT_LEAD_PREFIX}n0": text})),
        b"2 in a row, last app at 12",
        refuses=(),
    ),
    _decoder("time", _text(moment_of), b"2026-01-01T00:00:00Z", refuses=()),
    _decoder("encryption key", _text(decode_key), b"A" * 43 + b"=", refuses=NoKeyError),
    _decoder("message of a SQL node", frames.decode_payload, frames.encode_frame(frames.MessageType.ACK, 7, b"x")[4:]),
    _decoder("rows of a SQL node", frames.decode_chunk, _CHUNK, refuses=(MalformedDataError, OverflowError)),
    _decoder(
        "result of a SQL node",
        lambda data: frames.decode_executed(JavaDataReader(data)),
        bytes(16) + b"\x02\x00\x04_key\x01" + bytes(8),
        refuses=(MalformedDataError, OverflowError),
    ),
)
every_decoder = pytest.mark.parametrize("decoder", DECODERS, ids=str)


@every_decoder
def test_what_is_valid_is_read(decoder: Decoder) -> None:
    decoder.decode(decoder.valid[0])


@every_decoder
@settings(max_examples=60, derandomize=True)
@given(data=st.data())
def test_whatever_stands_there_a_decoder_reads_it_or_refuses_it_as_it_declares(decoder: Decoder, data: st.DataObject) -> None:
    decoder.try_on(data.draw(hostile(decoder.valid)))


@every_decoder
def test_a_length_of_gigabytes_takes_no_memory(decoder: Decoder) -> None:
    tracemalloc.start()
    try:
        for data in announcing(decoder.valid):
            decoder.try_on(data)
        assert tracemalloc.get_traced_memory()[1] < _MOST_BYTES
    finally:
        tracemalloc.stop()


@every_decoder
@pytest.mark.parametrize("deep", DEEP, ids=lambda deep: deep[:12].decode())
def test_what_is_nested_without_end_is_refused_soon(decoder: Decoder, deep: bytes) -> None:
    for head in (b"", b"alive ", b"5\n", b"BookieMetadataFormatVersion\t2\n"):
        began = time.thread_time()
        decoder.try_on(head + deep)
        assert time.thread_time() - began < _MOST_CPU_SECONDS


@every_decoder
def test_what_is_long_is_read_or_refused_soon(decoder: Decoder) -> None:
    for data in long(decoder.valid):
        began = time.thread_time()
        decoder.try_on(data)
        assert time.thread_time() - began < _MOST_CPU_SECONDS, data[:12]


@pytest.mark.parametrize("field", ["unacknowledgedSeconds", "failed", "blockedSeconds"])
def test_of_a_report_with_names_without_end_nothing_is_kept(field: str) -> None:
    """The last report of each node is kept, and it may have a mebibyte."""
    named = {str(number): 1.0 for number in range(MOST_NAMES + 1)}
    assert decode_line(b"alive " + _json(_ALIVE)) is not None
    assert decode_line(b"alive " + _json({**_ALIVE, field: list(named) if field == "failed" else named})) is None
