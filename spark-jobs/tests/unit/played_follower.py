"""A follower that serves its tables and its digest over HTTP, as images/herddb does (TablesWriter, CopyOrders)."""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

from herdkeeper.codecs.herddb.index import IndexDefinition, encode_index
from herdkeeper.codecs.herddb.row_digest import RowDigest, digest_of_rows
from herdkeeper.codecs.herddb.table import TableDefinition, encode_table
from herdkeeper_jobs.wal.lsn import Lsn

TOKEN = "of-the-secret"
Rows = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True)
class PlayedTable:
    definition: TableDefinition
    rows: Rows = ()
    next_value: int = 1
    indexes: tuple[tuple[IndexDefinition, bool], ...] = ()


def frame(kind: bytes, payload: bytes) -> bytes:
    return kind + len(payload).to_bytes(4, "big") + payload


def frames(lsn: Lsn, uuid: str, tables: Sequence[PlayedTable], rows_in_a_frame: int = 2) -> list[tuple[bytes, bytes]]:
    """Kind and payload of each frame."""
    found = [(b"P", struct.pack(">Iqq", 1, *lsn) + uuid.encode())]
    for table in tables:
        found.append((b"T", struct.pack(">q", table.next_value) + encode_table(table.definition)))
        found += [(b"I", bytes([available]) + encode_index(index)) for index, available in table.indexes]
        for first in range(0, len(table.rows), rows_in_a_frame):
            found.append((b"R", _rows(table.rows[first : first + rows_in_a_frame])))
        digest = digest_of_rows(list(table.rows))
        found.append((b"E", struct.pack(">q", digest.rows) + bytes.fromhex(digest.hex)))
    said = digest_of_rows([item for item in found if item[0] in (b"P", b"T", b"I")])
    rows = sum(len(table.rows) for table in tables)
    return [*found, (b"Z", struct.pack(">Iq", len(tables), rows) + bytes.fromhex(said.hex))]


def _rows(rows: Rows) -> bytes:
    keys, values = [key for key, _ in rows], [value for _, value in rows]
    lengths = b"".join(len(item).to_bytes(4, "big") for item in (*keys, *values))
    return len(rows).to_bytes(4, "big") + lengths + b"".join((*keys, *values))


def stream(lsn: Lsn, uuid: str, tables: Sequence[PlayedTable], rows_in_a_frame: int = 2) -> bytes:
    return b"".join(frame(*item) for item in frames(lsn, uuid, tables, rows_in_a_frame))


@dataclass
class PlayedFollower:
    """The follower's answers. `tables`: a stream, or a status with a reason; `digests`: by table name, wherever it is held."""

    tables: bytes | tuple[int, str] = b""
    digests: dict[str, RowDigest] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    """The paths of requests."""


@contextmanager
def following(follower: PlayedFollower) -> Iterator[str]:
    """Serves the follower; gives its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            url = urlparse(self.path)
            follower.asked.append(url.path)
            query = {name: int(values[0]) for name, values in parse_qs(url.query).items()}
            if self.headers["Authorization"] != f"Bearer {TOKEN}":
                self._answer(401, b'{"error":"the token is wrong"}')
            elif url.path.endswith("/digest"):
                tables = {name: {"rows": digest.rows, "digest": digest.hex} for name, digest in follower.digests.items()}
                self._answer(200, json.dumps({"ledger": query["ledger"], "entry": query["entry"], "tables": tables}).encode())
            elif isinstance(follower.tables, bytes):
                self._answer(200, follower.tables)
            else:
                self._answer(follower.tables[0], json.dumps({"error": follower.tables[1]}).encode())

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Keeps requests out of the test's output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
