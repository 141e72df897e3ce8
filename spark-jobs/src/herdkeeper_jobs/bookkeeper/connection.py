"""A connection to one bookie: reads entries by protocol version 2, with a timeout on everything, and never fences.

If this process has a certificate (`own_identity`), only the request for TLS is in plain text. The single write is `recovery_add`, for the
repair of closed ledgers (herdkeeper_jobs.repair); it relies on that room's precautions.

A bookie with every entry of a ledger is read by BATCH_READ. Of a striped ledger it has only some, so they are requested one by one, with
many requests in flight. Responses to single reads may come in any order.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import socket
import ssl
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper.codecs.bookkeeper.protocol import (
    LAST_ENTRY,
    LENGTH_BYTES,
    AddResponse,
    BatchRead,
    BatchReadResponse,
    ReadCode,
    ReadResponse,
    batch_read_request,
    decode_length,
    decode_response,
    read_request,
    recovery_add_request,
)
from herdkeeper.codecs.bookkeeper.start_tls import MOST_BYTES, decode_tls_answer
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.tls.identity import own_identity
from herdkeeper_jobs.bookkeeper.rate_limit import RateLimit
from herdkeeper_jobs.bookkeeper.start_tls import encrypted

READS_AT_ONCE, BYTES_AT_ONCE, FIRST_READS = 256, 4 * 1024 * 1024, 16
"""Single reads in flight, their approximate total bytes, and how many if their sizes are unknown."""
_BATCH_ENTRIES = 10_000
_BATCH_BYTES = 2 * 1024 * 1024
_BUSY_PAUSES_SECONDS = (0.05, 0.2, 0.8, 2.0)


def reads_at_once(mean_bytes: int) -> int:
    """How many entries of this size are requested at once, one by one."""
    return max(1, min(READS_AT_ONCE, BYTES_AT_ONCE // max(1, mean_bytes)))


class BookieUnreachableError(RuntimeError):
    """The bookie refused or closed the connection, did not answer in time, or answered with invalid bytes."""

    def __init__(self, bookie_id: str, reason: str) -> None:
        super().__init__(f"bookie {bookie_id}: {reason}")
        self.bookie_id = bookie_id
        self.reason = reason

    def __reduce__(self) -> tuple[type[BookieUnreachableError], tuple[str, str]]:
        """Executors pickle their exceptions for the driver; the default would rebuild from the message alone."""
        return BookieUnreachableError, (self.bookie_id, self.reason)


@dataclass(frozen=True, slots=True)
class EntryAnswer:
    """A bookie's response about one entry; `data` is unverified, and only there if the code is OK."""

    entry_id: int
    code: ReadCode
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class EntryRun:
    """Consecutive entries of a bookie, unverified, from `first` on; at least one."""

    first: int
    entries: tuple[bytes, ...]

    def answers(self) -> Iterator[EntryAnswer]:
        return (EntryAnswer(entry_id, ReadCode.OK, data) for entry_id, data in enumerate(self.entries, self.first))


Grouped = EntryRun | list[EntryAnswer] | EntryAnswer
"""Entries of a batch, entries that came one by one, or the answer for one that did not come."""


def grouped(parts: Iterable[EntryRun | EntryAnswer]) -> Iterator[Grouped]:
    """Collects entries that came one by one, in order: each alone would cost several times as much behind this."""
    held: list[EntryAnswer] = []
    size = 0
    try:
        for part in parts:
            if isinstance(part, EntryAnswer) and part.code is ReadCode.OK:
                held.append(part)
                size += len(part.data)
                if len(held) >= READS_AT_ONCE or size >= BYTES_AT_ONCE:
                    yield held
                    held, size = [], 0
                continue
            if held:
                yield held
                held, size = [], 0
            yield part
    except BookieUnreachableError:
        if held:
            yield held
        raise
    if held:
        yield held


class BookieConnection:
    """One socket to one bookie. Not thread-safe, apart from `interrupt`. BookieUnreachableError closes it."""

    def __init__(self, bookie_id: str, address: BookieAddress | None, timeout_seconds: float, rate_limit: RateLimit | None = None) -> None:
        """Connects. Raises BookieUnreachableError, also without an address: the bookie is not registered."""
        self.bookie_id = bookie_id
        self.bytes_received = 0
        self._address = address
        self._timeout_seconds = timeout_seconds
        self._rate_limit = rate_limit or RateLimit(math.inf)
        self._request_ids = itertools.count()
        self._batches: bool | None = None
        """Whether the bookie knows BATCH_READ; None until asked."""
        self._interrupted = False
        self._connect()

    def _connect(self) -> None:
        if self._interrupted:
            raise BookieUnreachableError(self.bookie_id, "reading from it was interrupted")
        address = self._address
        if address is None:
            raise BookieUnreachableError(self.bookie_id, "not registered in ZooKeeper")
        try:
            self._socket = self._opened(address)
        except (OSError, ValueError) as error:
            raise BookieUnreachableError(self.bookie_id, f"cannot connect to {address.host}:{address.port}: {error}") from error
        self._stream = io.BufferedReader(self._socket.makefile("rb", buffering=0), 1 << 18)

    def _opened(self, address: BookieAddress) -> socket.socket:
        """Raises OSError, and ValueError for an invalid certificate or answer."""
        opened = socket.create_connection((address.host, address.port), timeout=self._timeout_seconds)
        try:
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            identity = own_identity()
            return opened if identity is None else encrypted(opened, identity(), address.host)
        except BaseException:
            opened.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Closes the socket; may be called twice."""
        self._stream.close()
        self._socket.close()

    def interrupt(self) -> None:
        """Closes the connection from another thread; a waiting reader gets BookieUnreachableError at once."""
        self._interrupted = True
        with contextlib.suppress(OSError):
            # Not SSLSocket's own method: it drops state that the reading thread uses.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def read_last_entry(self, ledger_id: int) -> EntryAnswer:
        """Reads the last entry of the ledger on this bookie, whatever its id; the answer's id is -1."""
        return next(self.read_entries(ledger_id, [LAST_ENTRY]))

    def read_runs(self, ledger_id: int, first: int, last: int) -> Iterator[EntryRun | EntryAnswer]:
        """Yields what the bookie has of the entries `first`..`last`, in order, by BATCH_READ: existing entries as runs.

        The next batch is requested before the current one is yielded, so the bookie works while the caller verifies. After a missing entry,
        single reads find the next existing one. Consume the iterator before other calls, since a response is under way.
        """
        next_id = first
        while next_id <= last:
            asked = self._ask_for_batch(ledger_id, next_id, last)
            if not asked:
                yield from self.read_entries(ledger_id, range(next_id, last + 1))
                return
            while asked:
                response = self._receive_batch(ledger_id, next_id, last)
                following = response.entry_id + len(response.entries)
                asked = bool(response.entries) and following <= last
                if asked:
                    self._send_batch(ledger_id, following, last)
                if response.entries:
                    yield EntryRun(response.entry_id, response.entries)
                next_id = following
            if next_id <= last:
                for answer in self._single_reads_until_one_is_ok(ledger_id, next_id, last):
                    yield answer
                    next_id = answer.entry_id + 1

    def _ask_for_batch(self, ledger_id: int, first: int, last: int) -> bool:
        """Requests a batch, and returns whether the bookie knows them. One older than 4.17 closes the connection: it gets a new one."""
        if self._batches is None:
            try:
                self._send_batch(ledger_id, first, last)
                self._batches = bool(self._stream.peek(1))
            except ConnectionError:
                self._batches = False
            except OSError as error:
                raise self._broken(str(error) or type(error).__name__) from error
            if not self._batches:
                self.close()
                self._connect()
            return self._batches
        if self._batches:
            self._send_batch(ledger_id, first, last)
        return self._batches

    def read_entries(self, ledger_id: int, entry_ids: Iterable[int], first: int = FIRST_READS) -> Iterator[EntryAnswer]:
        """Yields the answers for these entries, in the given order, by pipelined READs. So many are requested at `first`, then as many as
        have some megabytes if they are like those before."""
        ids, size = iter(entry_ids), first
        while window := list(itertools.islice(ids, size)):
            answers = self._read_window(ledger_id, window)
            size = reads_at_once(sum(len(answer.data) for answer in answers.values()) // len(answers))
            yield from (answers[entry_id] for entry_id in window)

    def recovery_add(self, entry: tuple[int, int], master_key: bytes, data: bytes) -> ReadCode:
        """Stores an entry (ledger, entry) as recovery does, with another replica's bytes; returns the bookie's code."""
        for pause in (*_BUSY_PAUSES_SECONDS, None):
            self._rate_limit.spend(len(data))
            self._send(recovery_add_request(master_key, data))
            response = self._receive()
            if not isinstance(response, AddResponse) or (response.ledger_id, response.entry_id) != entry:
                raise self._broken(f"answered {response!r:.200} to an add of entry {entry[1]} of ledger {entry[0]}")
            if response.code is not ReadCode.TOO_MANY_REQUESTS or pause is None:
                break
            time.sleep(pause)
        return response.code

    def _single_reads_until_one_is_ok(self, ledger_id: int, first: int, last: int) -> Iterator[EntryAnswer]:
        """Starts with small windows: most gaps are short, and batches are faster behind them."""
        size, next_id = 1, first
        while next_id <= last:
            window = range(next_id, min(next_id + size, last + 1))
            found = False
            for answer in self.read_entries(ledger_id, window):
                found = found or answer.code is ReadCode.OK
                yield answer
            if found:
                return
            next_id = window.stop
            size = min(size * 4, READS_AT_ONCE)

    def _read_window(self, ledger_id: int, window: list[int]) -> dict[int, EntryAnswer]:
        """Reads a window of entries. A busy bookie gets the requests again, after growing pauses."""
        answers: dict[int, EntryAnswer] = {}
        pending = set(window)
        for pause in (*_BUSY_PAUSES_SECONDS, None):
            self._send(b"".join(read_request(ledger_id, entry_id) for entry_id in sorted(pending)))
            unanswered = set(pending)
            while unanswered:
                response = self._receive()
                if not isinstance(response, ReadResponse) or response.ledger_id != ledger_id or response.entry_id not in unanswered:
                    raise self._broken(f"answered {response!r:.200} to a read of ledger {ledger_id}")
                unanswered.remove(response.entry_id)
                answers[response.entry_id] = EntryAnswer(response.entry_id, response.code, response.data)
            pending = {entry_id for entry_id in pending if answers[entry_id].code is ReadCode.TOO_MANY_REQUESTS}
            if not pending or pause is None:
                break
            time.sleep(pause)
        return answers

    def _send_batch(self, ledger_id: int, first: int, last: int) -> None:
        batch = BatchRead(ledger_id, first, min(last - first + 1, _BATCH_ENTRIES), _BATCH_BYTES)
        self._send(batch_read_request(batch, next(self._request_ids)))

    def _receive_batch(self, ledger_id: int, first: int, last: int) -> BatchReadResponse:
        response = self._receive()
        if not isinstance(response, BatchReadResponse) or (response.ledger_id, response.entry_id) != (ledger_id, first):
            raise self._broken(f"answered {response!r:.200} to a batch read of ledger {ledger_id} from entry {first}")
        if first + len(response.entries) - 1 > last:
            raise self._broken(f"answered {len(response.entries)} entries from {first} on of ledger {ledger_id}, asked up to {last}")
        return response

    def _send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise self._broken(f"sending failed: {error}") from error

    def _receive(self) -> ReadResponse | BatchReadResponse | AddResponse:
        try:
            frame = self._frame()
            response = decode_response(frame)
        except (OSError, MalformedDataError) as error:
            raise self._broken(str(error) or type(error).__name__) from error
        self.bytes_received += len(frame)
        self._rate_limit.spend(len(frame))
        return response

    def _frame(self) -> bytes:
        head = self._exactly(LENGTH_BYTES)
        try:
            return self._exactly(decode_length(head))
        except MalformedDataError:
            if not isinstance(self._socket, ssl.SSLSocket) or not 0 < int.from_bytes(head, "big") <= MOST_BYTES:
                raise
            answer = decode_tls_answer(self._exactly(int.from_bytes(head, "big")))
            raise ConnectionError(f"answered {answer.name} to this job's certificate") from None

    def _exactly(self, count: int) -> bytes:
        data: bytes = self._stream.read(count)
        if len(data) < count:
            raise ConnectionError(f"closed the connection after {len(data)} of {count} bytes")
        return data

    def _broken(self, reason: str) -> BookieUnreachableError:
        """Closes the connection: the stream's position is lost after such an error."""
        self.close()
        return BookieUnreachableError(self.bookie_id, reason)
