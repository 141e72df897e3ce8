"""A played bookie: speaks the protocol of reads and of recovery's adds over a real socket, and misbehaves on demand."""

from __future__ import annotations

import contextlib
import socketserver
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper.codecs.bookkeeper.entry import Entry, EntryDigest, entry_digest
from herdkeeper.codecs.bookkeeper.metadata import DigestType, LedgerMetadata, LedgerState, Segment
from herdkeeper.codecs.bookkeeper.protocol import ReadCode

PATIENCE_SECONDS = 300
"""For waits: a test that reaches it has failed."""
CRC32C = entry_digest(DigestType.CRC32C)


def packed(ledger_id: int, entry_id: int, digest: EntryDigest = CRC32C) -> bytes:
    """The entry that all writers of these tests write."""
    return digest.pack(Entry(ledger_id, entry_id, entry_id - 1, length_up_to(ledger_id, entry_id), f"{ledger_id}/{entry_id}".encode()))


def length_up_to(ledger_id: int, entry_id: int) -> int:
    """Payload bytes up to this entry. A payload is the ledger's number, a slash, and the entry's number."""
    entries = entry_id + 1
    return entries * (len(str(ledger_id)) + 2) + sum(max(0, entries - 10**digits) for digits in range(1, 19))


def ledger(ledger_id: int, last: int | None, bookies: tuple[str, ...], quorums: tuple[int, int] = (3, 2)) -> LedgerMetadata:
    """A ledger of one segment; open if `last` is None."""
    return LedgerMetadata(
        ledger_id=ledger_id,
        ensemble_size=len(bookies),
        write_quorum=quorums[0],
        ack_quorum=quorums[1],
        state=LedgerState.OPEN if last is None else LedgerState.CLOSED,
        length=None if last is None else (last + 1) * 10,
        last_entry_id=last,
        segments=(Segment(0, bookies),),
        digest_type=DigestType.CRC32C,
    )


@dataclass
class PlayedBookie:
    """What the bookie holds, and how it misbehaves."""

    entries: dict[tuple[int, int], bytes] = field(default_factory=dict)
    codes: dict[tuple[int, int], ReadCode] = field(default_factory=dict)
    """Errors to answer instead of entries."""
    busy_for: int = 0
    """The number of reads to answer with TOO_MANY_REQUESTS first."""
    closes_after: int | None = None
    """Closes each connection after so many requests."""
    silent: bool = False
    silent_after: int | None = None
    """Stops answering on a connection after so many requests."""
    holds_until: threading.Event | None = None
    """Holds answers back until this is set."""
    on_request: Callable[[], object] = lambda: None
    """Called with each request, before anything else."""
    knows_batches: bool = True
    """If not, it closes the connection at a BATCH_READ, as bookies older than 4.17 do."""
    most_in_batch: int = 7
    heeds_most: bool = True
    """If not, a batch has `most_in_batch` entries, however few were requested."""
    requests: list[tuple[int, int, int]] = field(default_factory=list)
    """(operation and flags, ledger, entry)."""
    sent: list[tuple[float, int]] = field(default_factory=list)
    """Per answer, the latest start of its sending (monotonic clock), and its bytes without the four of its length."""
    master_keys: dict[int, bytes] = field(default_factory=dict)
    """By ledger. An unknown ledger keeps the key of its first add, as on a real bookie."""
    fenced: set[int] = field(default_factory=set)
    read_only: bool = False
    reads_until_flush: int = 0
    """The number of reads that still see the state before an add (SortedLedgerStorage)."""
    on_add: Callable[[int, int], None] = lambda ledger_id, entry_id: None
    unflushed: dict[tuple[int, int], bytes] = field(default_factory=dict)

    def answer(self, frame: bytes) -> bytes:
        """Returns a response frame."""
        if frame[1] == 1:
            return self._answer_add(frame)
        header, ledger_id, entry_id = struct.unpack_from(">iqq", frame)
        self.requests.append((header & 0xFFFFFF, ledger_id, entry_id))
        if header >> 16 & 0xFF == 7:
            return self._answer_batch(frame, header, (ledger_id, entry_id))
        code, data = self._read(ledger_id, entry_id)
        return _framed(struct.pack(">iiqq", header, code.value, ledger_id, entry_id) + data)

    def _answer_add(self, frame: bytes) -> bytes:
        header, key, data = int.from_bytes(frame[:4], "big"), frame[4:24], frame[24:]
        ledger_id, entry_id = struct.unpack_from(">qq", data)
        self.requests.append((header & 0xFFFFFF, ledger_id, entry_id))
        code = self._add(header & 0xFFFF, ledger_id, key)
        if code is ReadCode.OK:
            self.on_add(ledger_id, entry_id)
            (self.unflushed if self.reads_until_flush else self.entries)[ledger_id, entry_id] = data
        return _framed(struct.pack(">iiqq", header & 0x7FFF0000, code.value, ledger_id, entry_id))

    def _add(self, flags: int, ledger_id: int, key: bytes) -> ReadCode:
        if self.read_only:
            return ReadCode.READ_ONLY
        if self.master_keys.setdefault(ledger_id, key) != key:
            return ReadCode.UNAUTHORIZED
        return ReadCode.FENCED if ledger_id in self.fenced and not flags & 2 else ReadCode.OK

    def _flush(self) -> None:
        self.reads_until_flush = max(0, self.reads_until_flush - 1)
        if not self.reads_until_flush:
            self.entries.update(self.unflushed)
            self.unflushed.clear()

    def _answer_batch(self, frame: bytes, header: int, first: tuple[int, int]) -> bytes:
        request_id, most, _ = struct.unpack_from(">qiq", frame, 20)
        code, body = ReadCode.OK, b""
        for index in range(min(most, self.most_in_batch) if self.heeds_most else self.most_in_batch):
            code, data = self._read(first[0], first[1] + index)
            if code is not ReadCode.OK:
                break
            body += struct.pack(">i", len(data)) + data
        return _framed(struct.pack(">iiqqq", header, 0 if body else code.value, *first, request_id) + body)

    def _read(self, ledger_id: int, entry_id: int) -> tuple[ReadCode, bytes]:
        if self.unflushed:
            self._flush()
        if self.busy_for > 0:
            self.busy_for -= 1
            return ReadCode.TOO_MANY_REQUESTS, b""
        if (ledger_id, entry_id) in self.codes:
            return self.codes[ledger_id, entry_id], b""
        if (ledger_id, entry_id) in self.entries:
            return ReadCode.OK, self.entries[ledger_id, entry_id]
        own = [held for held in self.entries if held[0] == ledger_id]
        if entry_id == -1 and own:
            return ReadCode.OK, self.entries[max(own)]
        return (ReadCode.NO_ENTRY if own else ReadCode.NO_LEDGER), b""


@contextmanager
def served(*bookies: PlayedBookie) -> Iterator[dict[str, BookieAddress]]:
    """Serves them as b0, b1, … on free ports."""
    servers = [_server(bookie) for bookie in bookies]
    try:
        yield {f"b{index}": BookieAddress("127.0.0.1", server.server_address[1]) for index, server in enumerate(servers)}
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


def nowhere() -> BookieAddress:
    """An address without a listener: a port that nobody is given by chance."""
    return BookieAddress("127.0.0.1", 1)


def _framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def _server(bookie: PlayedBookie) -> socketserver.ThreadingTCPServer:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            handled = 0
            while length := self._next():
                frame = self.rfile.read(int.from_bytes(length, "big"))
                handled += 1
                bookie.on_request()
                if bookie.silent or (bookie.silent_after is not None and handled > bookie.silent_after):
                    continue
                if bookie.holds_until is not None and not bookie.holds_until.wait(PATIENCE_SECONDS):
                    return
                if frame[1] == 7 and not bookie.knows_batches:
                    return
                if bookie.closes_after is not None and handled > bookie.closes_after:
                    return
                answer = bookie.answer(frame)
                # Before sending: the receiver may go on at once, which must not look earlier than this.
                bookie.sent.append((time.monotonic(), len(answer) - 4))
                with contextlib.suppress(ConnectionError):  # the client may no longer wait
                    self.wfile.write(answer)

        def _next(self) -> bytes:
            try:
                return self.rfile.read(4)
            except ConnectionError:
                return b""

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    return server
