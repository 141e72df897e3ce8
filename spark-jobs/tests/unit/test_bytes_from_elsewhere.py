"""What jobs read from destinations, bookies and SQL nodes: whatever stands there, a reader returns a value or raises what it declares, and
takes no more memory than came.
"""

from __future__ import annotations

import io
import json
import socket
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile_bytes import DEEP, Decoder, announcing, hostile, long
from hypothesis import given, settings
from hypothesis import strategies as st
from played_follower import PlayedTable, stream
from test_checkpoint_manifest import IDENTITY, manifest

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper.codecs.herddb.table import Column, ColumnType, TableDefinition
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper_jobs.archive.segment import SegmentManifest, read_segment_manifest
from herdkeeper_jobs.bookkeeper.connection import BookieConnection, BookieUnreachableError
from herdkeeper_jobs.checkpoint.follower_stream import StreamBroken, read_stream
from herdkeeper_jobs.checkpoint.node_http import follower_digest, leader_counts, log_position
from herdkeeper_jobs.encryption.parquet_folder import ParquetFolder
from herdkeeper_jobs.errors import CheckpointRetryable, InvariantViolated
from herdkeeper_jobs.manifests.manifest import Position, read_manifest, read_outline
from herdkeeper_jobs.restore.bookkeeping import Header
from herdkeeper_jobs.wal.lsn import Lsn

_MOST_BYTES, _MOST_CPU_SECONDS = 16 << 20, 5.0
_FOLDER = Path(tempfile.mkdtemp(prefix="bytes-from-elsewhere-"))
_TABLE = TableDefinition("herd", "t", "u", (Column("k", ColumnType.LONG, 0, nullable=False),), ("k",))
_SEGMENT = SegmentManifest(
    identity=IDENTITY,
    first=Position(ledger_id=1, entry_id=0),
    last=Position(ledger_id=1, entry_id=5),
    follows=None,
    begins_log=True,
    next_ledger=None,
    entries=6,
    lowest_timestamp_millis=1,
    highest_timestamp_millis=2,
    path="log/data/r/1.parquet",
    size=100,
    hash="0",
    run_id="r",
)
_LSN = {"ledgerId": 3, "entryId": 7}
_NODE = [{"name": "app", "role": "leader", "ready": True, "applied": _LSN, "counts": {"exact": True, "position": _LSN, "tables": {"t": 5}}}]
_DIGEST = {"ledger": 3, "entry": 7, "tables": {"t": {"rows": 5, "digest": "0" * 32}}}


def _parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"k": [1, 2], "v": ["a", "b"]}), sink)
    return sink.getvalue()


def _of_file(read: Callable[[Path], object]) -> Callable[[bytes], object]:
    def decode(data: bytes) -> object:
        path = _FOLDER / "1-2.json"
        path.write_bytes(data)
        return read(path)

    return decode


DECODERS = (
    Decoder("manifest", _of_file(read_manifest), (manifest().model_dump_json(by_alias=True).encode(),), (InvariantViolated,)),
    Decoder("outline", _of_file(read_outline), (manifest().model_dump_json(by_alias=True).encode(),), (InvariantViolated,)),
    Decoder("segment", _of_file(read_segment_manifest), (_SEGMENT.model_dump_json(by_alias=True).encode(),), (InvariantViolated,)),
    Decoder(
        "part file",
        lambda data: ParquetFolder(_FOLDER).parse_parquet("p", data),
        (_parquet(),),
        (OSError, pa.ArrowException),
    ),
    Decoder(
        "header of a restore",
        lambda data: Header.from_json(data.decode(errors="replace")),
        (Header("h", "m", 5, 1, 1).to_json().encode(),),
        (InvariantViolated,),
    ),
    Decoder(
        "tables of a follower",
        lambda data: list(read_stream(io.BytesIO(data))),
        (stream(Lsn(3, 7), "uuid", [PlayedTable(_TABLE, ((bytes(8), b""), (bytes(7) + b"\1", b"")))]),),
        (StreamBroken, MalformedDataError),
    ),
)
every_decoder = pytest.mark.parametrize("decoder", DECODERS, ids=str)


@every_decoder
def test_what_is_valid_is_read(decoder: Decoder) -> None:
    decoder.decode(decoder.valid[0])


@every_decoder
@settings(max_examples=100, derandomize=True)
@given(data=st.data())
def test_whatever_stands_there_a_reader_reads_it_or_refuses_it_as_it_declares(decoder: Decoder, data: st.DataObject) -> None:
    decoder.try_on(data.draw(hostile(decoder.valid)))


@every_decoder
@pytest.mark.timeout(60)
def test_a_length_of_gigabytes_takes_no_memory(decoder: Decoder) -> None:
    tracemalloc.start()
    try:
        for data in announcing(tuple(whole[-400:] if decoder.name == "part file" else whole[:400] for whole in decoder.valid)):
            decoder.try_on(data)
        assert tracemalloc.get_traced_memory()[1] < _MOST_BYTES
    finally:
        tracemalloc.stop()


@every_decoder
@pytest.mark.parametrize("deep", DEEP, ids=lambda deep: deep[:12].decode())
def test_what_is_nested_without_end_is_refused(decoder: Decoder, deep: bytes) -> None:
    decoder.try_on(deep)


@every_decoder
def test_what_is_long_is_read_or_refused_soon(decoder: Decoder) -> None:
    for data in long(decoder.valid):
        began = time.thread_time()
        decoder.try_on(data)
        assert time.thread_time() - began < _MOST_CPU_SECONDS, data[:12]


@contextmanager
def answering(sent: bytes) -> Iterator[str]:
    """A server that answers each connection with these bytes, and closes it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    stream, _ = listener.accept()
                    with stream, suppress(OSError):
                        stream.recv(1 << 16)
                        stream.sendall(sent)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def _answer(body: bytes, status: int = 200) -> bytes:
    return b"HTTP/1.1 %d x\r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body


@settings(max_examples=60, derandomize=True)
@given(
    status=st.sampled_from((200, 409, 500)),
    body=hostile((json.dumps(_NODE).encode(), json.dumps(_DIGEST).encode(), json.dumps({"position": _LSN, "error": "e"}).encode())),
)
def test_whatever_a_sql_node_answers_a_job_is_to_try_again(status: int, body: bytes) -> None:
    with answering(_answer(body, status)) as node:
        for ask in (
            lambda: leader_counts(node, "app"),
            lambda: log_position(node, "app"),
            lambda: follower_digest(node, "app", Lsn(3, 7), "token", 1),
        ):
            with suppress(CheckpointRetryable):
                ask()


@pytest.mark.parametrize(
    "sent", [b"no HTTP at all\r\n\r\n", _answer(DEEP[0]), b"HTTP/1.1 200 x\r\nContent-Length: 99\r\n\r\n[", _answer(DEEP[0], 409)]
)
def test_what_is_no_answer_of_a_sql_node_is_to_be_tried_again(sent: bytes) -> None:
    with answering(sent) as node, suppress(CheckpointRetryable):
        leader_counts(node, "app")


def test_a_sql_node_that_answers_without_end_takes_no_memory_of_a_job() -> None:
    with answering(b"HTTP/1.1 200 x\r\n\r\n" + b" " * (80 << 20)) as node, pytest.raises(CheckpointRetryable, match="larger"):
        leader_counts(node, "app")


def test_a_bookie_that_announces_gigabytes_is_refused_before_they_are_kept() -> None:
    with answering(b"\x7f\xff\xff\xff" + bytes(100)) as address:
        host, _, port = address.partition(":")
        tracemalloc.start()
        try:
            with (
                BookieConnection("b0", BookieAddress(host, int(port)), 5) as bookie,
                pytest.raises(BookieUnreachableError, match="refused"),
            ):
                bookie.read_last_entry(1)
            assert tracemalloc.get_traced_memory()[1] < _MOST_BYTES
        finally:
            tracemalloc.stop()
