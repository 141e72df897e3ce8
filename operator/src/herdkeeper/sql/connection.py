"""One connection to one HerdDB node: statements, queries, batches and transactions, each with a deadline.

The server may never answer: a node without the tablespace stays silent (HerdDB 0.29 loses that error). So every call has a timeout, and a
timeout or broken answer closes the connection, since later answers would be out of step. HerdDB's transactions are not bound to a
connection. One that is lost with its connection stays open on the leader until `server.abandoned.transactions.timeout` (15 minutes) or
the next leader change.

Not thread-safe: use one connection per thread. A child process that was forked has none: both would read the same answers.
"""

from __future__ import annotations

import itertools
import os
import re
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from types import TracebackType
from typing import Self

from herdkeeper.codecs.authorities import client_context
from herdkeeper.codecs.java_data import JavaDataReader, MalformedDataError
from herdkeeper.sql import frames
from herdkeeper.sql.encryption import Encryption
from herdkeeper.sql.errors import (
    AuthenticationFailed,
    ConnectionLost,
    DuplicateKey,
    NoAnswer,
    NotLeader,
    OutcomeUnknown,
    ServerError,
    SqlError,
    TransactionEnded,
)
from herdkeeper.sql.frames import (
    Chunk,
    ErrorFlag,
    Executed,
    Message,
    MessageType,
    Statement,
    TransactionCommand,
    Value,
    timestamp_from_millis,
)
from herdkeeper.sql.statements import alters

DEFAULT_TABLESPACE = "herd"
FETCH_ROWS = 2000
"""The most rows per piece of a result set. HerdDB builds a piece in memory on both sides."""
_FIRST_ROWS, _PIECE_BYTES = 32, 4 << 20
"""The first piece tells how wide the rows are: a row may have a megabyte, and 2000 of them end a leader that lacks the memory."""
_ANSWER_BYTES = 16 << 20
"""The most of an answer without rows: a key, counts, or an error, which may quote its statement. The operator has no memory for more."""
BATCH_LISTS = 50
"""Parameter lists per batch message. The server recurses once per list (`ServerSideConnectionPeer.ComputeNext`). A stack overflow in the
middle of a log write leaves a lock of the log held forever: 1000 lists on two connections stopped a leader with -Xss512k."""

# With one of these in the server's stack trace, the entry may have reached bookies: the next leader's recovery decides. "already closed":
# an old leader closes its indexes during a statement, and then answers without the not-leader flag.
_SIGNS_OF_AN_UNFINISHED_WRITE = ("LogNotAvailableException", "org.apache.bookkeeper.client", "BookkeeperCommitLog", "already closed")
_THROWN = re.compile(r"(?:[\w.$]+: )*[\w.$]+")
"""The names of Java's exceptions, where a text begins with them."""
_NO_TRANSACTION = re.compile(r"(?:[\w.$]+: )+transaction \d+ (?:not found|does not exist) on tablespace (.+)")
"""HerdDB looks for the transaction before it logs anything, also for an ALTER TABLE. It says the same of an open one where a query reads no
table, as with LIMIT 0: then it looks in the node's own tablespace.
"""
_NO_LEADERS = {"herddb.model.NotLeaderException", "herddb.log.LogNotAvailableException"}
"""The second one where no write can be durable: a BEGIN, or a statement of a transaction, by a leader whose log is closed or has failed.
The next leader rolls its transactions back.
"""
_DUPLICATES = {"herddb.model.DuplicatePrimaryKeyException", "herddb.model.UniqueIndexContraintViolationException"}


class Effect(Enum):
    """Consequence of a lost answer."""

    NONE = "a read, or a change that only a later COMMIT makes durable"
    DURABLE = "a commit, or a statement outside a transaction"


@dataclass(frozen=True)
class Address:
    """The address of a SQL node, and its encryption, or None."""

    host: str
    port: int
    encryption: Encryption | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Credentials:
    """A user of the server's users file."""

    username: str
    password: str = field(repr=False)


class Connection:
    """An authenticated connection to one tablespace. Create it with `Connection.connect`; a context manager that closes.

    Every method also raises `ConnectionLost` (nothing was applied; the connection is closed), `NotLeader` and `ServerError` (the server's
    answer; the connection stays usable). `timeout_seconds`, per call, and `piece_bytes`, the most of a piece of rows, may be changed.
    """

    def __init__(self, stream: socket.socket, address: Address, tablespace: str, timeout_seconds: float) -> None:
        self._stream = stream
        self._address = address
        self._tablespace = tablespace
        self.timeout_seconds = timeout_seconds
        self.piece_bytes = frames.MAX_FRAME_BYTES
        self._ids = itertools.count(1)
        self._process = os.getpid()
        self._closed = False
        self._scanners: dict[int, int] = {}
        """Queries with rows left on the server, each with its transaction."""
        self._unwanted: list[int] = []
        """Queries whose rows nobody wants any more."""
        self._used = threading.Lock()

    @classmethod
    def connect(
        cls, address: Address, credentials: Credentials, tablespace: str = DEFAULT_TABLESPACE, *, timeout_seconds: float = 10.0
    ) -> Self:
        """Connect and authenticate with SASL PLAIN.

        Args:
            address: of any node; statements work only on the tablespace's leader.
            credentials: a user of the server.
            tablespace: for the statements of this connection.
            timeout_seconds: for connecting, and then for each call; must be positive.

        Raises:
            AuthenticationFailed: the server refused the user or the password.
            ConnectionLost: nothing listens, no answer came in time, or the certificate is not the node's.
        """
        if timeout_seconds <= 0:
            raise ValueError(f"timeout_seconds is {timeout_seconds}: pass a positive number, a HerdDB node may never answer")
        try:
            stream = socket.create_connection((address.host, address.port), timeout_seconds)
        except OSError as error:
            raise ConnectionLost(f"cannot connect to {address}: {error}") from error
        with suppress(OSError):  # macOS refuses it once the other end has closed, which the login tells
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if address.encryption is not None:
            stream = _encrypted(stream, address, address.encryption)
        connection = cls(stream, address, tablespace, timeout_seconds)
        try:
            connection._authenticate(credentials)
        except BaseException:
            connection.close()
            raise
        return connection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def address(self) -> Address:
        """The node at the other end."""
        return self._address

    @property
    def tablespace(self) -> str:
        """The tablespace of its statements."""
        return self._tablespace

    @property
    def closed(self) -> bool:
        """Whether it was closed, by `close` or by an error; also in a child process of the one that made it."""
        return self._closed or self._process != os.getpid()

    def close(self) -> None:
        """Close the socket. Idempotent."""
        self._closed = True
        self._stream.close()

    def require_leader(self) -> None:
        """Check that this node leads the tablespace, by preparing a statement, the one request that every node answers.

        Raises:
            NotLeader: it does not (or not yet).
        """
        body = frames.prepare_body(self._tablespace, "SELECT * FROM systables")
        self._call(MessageType.PREPARE_STATEMENT, body, MessageType.PREPARE_STATEMENT_RESULT, Effect.NONE)

    def execute(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        """Run one statement in autocommit: durable on the ack quorum of bookies at return.

        Returns:
            The number of changed rows; 1 for DDL.

        Raises:
            DuplicateKey: an INSERT of an existing key.
            OutcomeUnknown: the answer was lost; the statement may be durable.
        """
        return self._execute(self._statement(sql), parameters).changed

    def run(self, sql: str, parameters: Sequence[Value] = (), *, returns_key: bool = False) -> Executed:
        """Like `execute`; optionally returns the primary key of the inserted row, which the server may have generated."""
        return self._execute(replace(self._statement(sql), returns_key=returns_key), parameters)

    def execute_batch(self, sql: str, rows: Sequence[Sequence[Value]]) -> list[int]:
        """Run one statement with many parameter lists, in few messages, each in autocommit: mostly useful inside a transaction.

        Returns:
            Changed rows per parameter list. An empty batch returns at once.

        Raises:
            DuplicateKey, ServerError: at one of the lists; earlier ones were applied, it and later ones were not.
            OutcomeUnknown: the answer was lost, or the node stopped leading; any number of them may be durable.
        """
        return self._execute_batch(self._statement(sql), rows)

    def query(self, sql: str, parameters: Sequence[Value] = ()) -> list[dict[str, Value]]:
        """Returns all rows of a SELECT, each as column name (in lower case, as HerdDB returns it) to value."""
        return list(self.stream(sql, parameters))

    def stream(
        self, sql: str, parameters: Sequence[Value] = (), *, moment: Callable[[int], Value] = timestamp_from_millis
    ) -> Generator[dict[str, Value], None, None]:
        """Yields the rows of a SELECT, fetched in pieces. Don't use the connection for anything else meanwhile. `moment` makes a
        timestamp's value of its milliseconds: HerdDB's are of more years than Python's datetime.
        """
        for piece in self._pieces(self._statement(sql), parameters, FETCH_ROWS, moment):
            yield from piece.records()

    def pieces(self, sql: str, parameters: Sequence[Value] = (), *, fetch_rows: int = FETCH_ROWS) -> Generator[Chunk, None, None]:
        """Yields pieces of at most `fetch_rows`, at least one, with column names. Between two of them the connection may be used."""
        return self._pieces(self._statement(sql), parameters, fetch_rows)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """A transaction: COMMIT at the end of the block, ROLLBACK if it raises.

        Raises:
            OutcomeUnknown: the answer to the COMMIT was lost; the transaction may be durable as a whole, or not at all.
        """
        transaction, commits = self.begin(), False
        try:
            yield transaction
            commits = True
            transaction.commit()
        except BaseException as error:
            # The caller must see the first error. A failed rollback changes nothing: without a COMMIT nothing becomes visible, and the
            # leader ends lost transactions. About a COMMIT that may be durable the log decides.
            if not (commits and isinstance(error, OutcomeUnknown)):
                with suppress(SqlError):
                    transaction.rollback()
            raise

    def begin(self) -> Transaction:
        """Begin a transaction that the caller must commit or roll back; `transaction` does that by itself."""
        return Transaction(self, self._transaction_command(TransactionCommand.BEGIN, 0))

    def rollback(self, transaction_id: int) -> None:
        """End a transaction that was lost with another connection, and free its locks on this leader.

        Raises:
            ServerError: it is not open: it was committed, rolled back, or ended with an earlier leader.
        """
        self._transaction_command(TransactionCommand.ROLLBACK, transaction_id)

    def _statement(self, sql: str) -> Statement:
        return Statement(self._tablespace, sql)

    def _authenticate(self, credentials: Credentials) -> None:
        body = frames.sasl_plain_body(credentials.username, credentials.password)
        try:
            self._call(MessageType.SASL_REQUEST, body, MessageType.SASL_RESPONSE, Effect.NONE)
        except ServerError as error:
            raise AuthenticationFailed(f"{self._address} refused the user {credentials.username!r}: {error}") from error

    def _execute(self, statement: Statement, parameters: Sequence[Value]) -> Executed:
        body = frames.execute_body(statement, parameters)
        if statement.transaction_id and alters(statement.sql):
            self._end_queries(statement.transaction_id)
        try:
            reader = self._call(MessageType.EXECUTE_STATEMENT, body, MessageType.EXECUTE_STATEMENT_RESULT, _effect(statement))
        except (NotLeader, TransactionEnded):
            raise
        except ServerError as error:
            if statement.transaction_id and alters(statement.sql):
                raise OutcomeUnknown(f"{error}; what the transaction did before this may be durable: an ALTER TABLE commits it") from error
            raise
        with self._decoding(MessageType.EXECUTE_STATEMENT, _effect(statement)):
            return frames.decode_executed(reader)

    def _execute_batch(self, statement: Statement, rows: Sequence[Sequence[Value]]) -> list[int]:
        changed: list[int] = []
        for start in range(0, len(rows), BATCH_LISTS):
            part = rows[start : start + BATCH_LISTS]
            try:
                changed += self._execute_message(statement, part)
            except (NotLeader, ConnectionLost) as error:
                # the server executes the lists one by one, and may stop leading between two of them
                earlier_lists = changed or (isinstance(error, NotLeader) and len(part) > 1)
                if _effect(statement) is Effect.DURABLE and earlier_lists:
                    raise OutcomeUnknown(f"{error}; earlier lists of parameters may be durable") from error
                raise
        return changed

    def _execute_message(self, statement: Statement, rows: Sequence[Sequence[Value]]) -> list[int]:
        body = frames.execute_batch_body(statement, rows)
        reader = self._call(MessageType.EXECUTE_STATEMENTS, body, MessageType.EXECUTE_STATEMENTS_RESULT, _effect(statement))
        with self._decoding(MessageType.EXECUTE_STATEMENTS, _effect(statement)):
            reader.i64()
            return [reader.i64() for _ in range(reader.i32())]

    def _pieces(
        self,
        statement: Statement,
        parameters: Sequence[Value],
        fetch_rows: int,
        moment: Callable[[int], Value] = timestamp_from_millis,
    ) -> Generator[Chunk, None, None]:
        scanner_id = next(self._ids)
        rows = min(fetch_rows, _FIRST_ROWS)
        body = frames.open_scanner_body(statement, parameters, scanner_id, rows)
        answer = self._call(MessageType.OPEN_SCANNER, body, MessageType.RESULT_SET_CHUNK, Effect.NONE)
        self._scanners[scanner_id] = statement.transaction_id
        try:
            while True:
                received = answer.rest()
                with self._decoding(MessageType.OPEN_SCANNER, Effect.NONE):
                    chunk = frames.decode_chunk(received, moment)
                if chunk.last:
                    self._scanners.pop(scanner_id, None)
                yield chunk
                if chunk.last:
                    return
                if scanner_id not in self._scanners:
                    raise ServerError("no such scanner any more: its transaction ended before all rows were fetched")
                rows = max(1, min(fetch_rows, 4 * rows, _PIECE_BYTES * len(chunk.rows) // len(received)))
                body = frames.fetch_body(scanner_id, rows)
                answer = self._call(MessageType.FETCH_SCANNER_DATA, body, MessageType.RESULT_SET_CHUNK, Effect.NONE)
        finally:
            if scanner_id in self._scanners:
                self._forget(scanner_id)

    def _forget(self, scanner_id: int) -> None:
        """Tell the server, which keeps a scanner until then. Python's garbage collector may come here from any thread, in the middle of a
        request: then the next request tells it. A COMMIT at this moment, which waits for it, finds it in one of the two.
        """
        self._unwanted.append(scanner_id)
        self._scanners.pop(scanner_id, None)
        if not self.closed and self._used.acquire(blocking=False):
            try:
                with suppress(SqlError):
                    self._send(MessageType.CLOSE_SCANNER, self._closings(), self._deadline(), Effect.NONE)
            finally:
                self._used.release()

    def _closings(self) -> bytes:
        closings = b""
        while self._unwanted:
            body = frames.close_scanner_body(self._unwanted.pop())
            closings += frames.encode_frame(MessageType.CLOSE_SCANNER, next(self._ids), body)
        return closings

    def _end_queries(self, transaction_id: int) -> None:
        """HerdDB ends no transaction as long as one of its scanners is open."""
        for scanner_id, owner in self._scanners.copy().items():
            if owner == transaction_id and self._scanners.pop(scanner_id, None) is not None:
                self._unwanted.append(scanner_id)

    def _transaction_command(self, command: TransactionCommand, transaction_id: int) -> int:
        effect = Effect.DURABLE if command is TransactionCommand.COMMIT else Effect.NONE
        if command is not TransactionCommand.BEGIN:
            self._end_queries(transaction_id)
        body = frames.transaction_body(command, transaction_id, self._tablespace)
        answer = self._call(MessageType.TRANSACTION_COMMAND, body, MessageType.TRANSACTION_COMMAND_RESULT, effect)
        with self._decoding(MessageType.TRANSACTION_COMMAND, effect):
            return answer.i64()

    def _deadline(self) -> float:
        return time.monotonic() + self.timeout_seconds

    def _call(self, kind: MessageType, body: bytes, expected: MessageType, effect: Effect) -> JavaDataReader:
        """Send a request and return its answer's body."""
        if self.closed:
            raise ConnectionLost(f"the connection to {self._address} is closed")
        message_id = next(self._ids)
        request = frames.encode_frame(kind, message_id, body)
        if _ended(self._stream):
            self.close()
            raise ConnectionLost(f"{self._address} has closed the connection")
        deadline = self._deadline()
        most = self.piece_bytes if expected is MessageType.RESULT_SET_CHUNK else _ANSWER_BYTES + 8 * len(body)
        with self._used:
            self._send(kind, self._closings() + request, deadline, effect)
            try:
                message = self._receive(message_id, deadline, most)
                if message.type not in (expected, MessageType.ERROR):
                    raise MalformedDataError(f"answer of type {message.type} to a request of type {kind.value}: expected {expected.value}")
            except (OSError, MalformedDataError) as error:
                self.close()
                raise _lost(f"{self._address} after a {kind.name} was sent", error, effect) from error
            except BaseException:
                # an interrupt: the part of the answer read so far is lost
                self.close()
                raise
        reader = JavaDataReader(message.body)
        if message.type == MessageType.ERROR:
            with self._decoding(kind, effect):
                raise _server_error(reader, effect, self._tablespace)
        return reader

    @contextmanager
    def _decoding(self, kind: MessageType, effect: Effect) -> Iterator[None]:
        """What can't be decoded counts as no answer: what follows it can't be trusted either."""
        try:
            yield
        except MalformedDataError as error:
            self.close()
            raise _lost(f"{self._address} after a {kind.name} was sent", error, effect) from error

    def _send(self, kind: MessageType, data: bytes, deadline: float, effect: Effect) -> None:
        try:
            self._stream.settimeout(max(deadline - time.monotonic(), 0.001))
            self._stream.sendall(data)
        except OSError as error:
            self.close()
            if isinstance(error, TimeoutError) or error.errno is None:
                # A signal handler of the program raises such an error, too, perhaps when all was sent.
                raise _lost(f"{self._address} while a {kind.name} was sent", error, effect) from error
            # An incomplete frame is never executed, so the outcome is known, whatever the statement is.
            raise ConnectionLost(f"cannot send a {kind.name} to {self._address}: {error}") from error
        except BaseException:
            # an interrupt: the server would take the next request for the rest of this one
            self.close()
            raise

    def _receive(self, message_id: int, deadline: float, most: int) -> Message:
        while True:
            size = frames.LENGTH.unpack(self._read(frames.LENGTH.size, deadline))[0]
            if size > most:
                raise MalformedDataError(f"a frame of {size} bytes: is this the SQL port of a HerdDB node?")
            message = frames.decode_payload(self._read(size, deadline))
            if message.id == message_id and message.flags & frames.RESPONSE_FLAG:
                return message

    def _read(self, size: int, deadline: float) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise TimeoutError
            self._stream.settimeout(remaining)
            part = self._stream.recv(min(size - len(parts), 1 << 20))
            if not part:
                raise ConnectionResetError("the server closed the connection")
            parts += part
        return bytes(parts)


class Transaction:
    """The statements of one open transaction. Made by `Connection.transaction` and `Connection.begin`; raises what the connection's methods
    raise. But `OutcomeUnknown` comes only from `commit`, and from ALTER TABLE, which commits, also if it is refused: nothing is durable
    before. Once the server has ended it, each raises `TransactionEnded`.

    With `keeps_read_locks`, rows that it has read stay locked until its end.
    """

    def __init__(self, connection: Connection, transaction_id: int) -> None:
        self._connection = connection
        self.id = transaction_id
        self.keeps_read_locks = True

    def execute(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        """Run one statement; returns the number of changed rows."""
        return self.run(sql, parameters).changed

    def run(self, sql: str, parameters: Sequence[Value] = (), *, returns_key: bool = False) -> Executed:
        """Run one statement; returns whether the transaction is still open after it, and optionally the key of the inserted row."""
        return self._connection._execute(replace(self._statement(sql), returns_key=returns_key), parameters)

    def execute_batch(self, sql: str, rows: Sequence[Sequence[Value]]) -> list[int]:
        """Run one statement with many parameter lists, in few messages; returns the changed rows per list. The fastest way to load."""
        return self._connection._execute_batch(self._statement(sql), rows)

    def query(self, sql: str, parameters: Sequence[Value] = ()) -> list[dict[str, Value]]:
        """Returns all rows of a SELECT, as this transaction sees them."""
        return [row for piece in self.pieces(sql, parameters) for row in piece.records()]

    def pieces(self, sql: str, parameters: Sequence[Value] = (), *, fetch_rows: int = FETCH_ROWS) -> Generator[Chunk, None, None]:
        """Yields pieces instead, at least one, with column names."""
        return self._connection._pieces(self._statement(sql), parameters, fetch_rows)

    def require_leader(self) -> None:
        """Check that this node still leads, like `Connection.require_leader`."""
        self._connection.require_leader()

    def commit(self) -> None:
        """Make the transaction durable.

        Raises:
            OutcomeUnknown: the answer was lost; the transaction may be durable as a whole, or not at all.
        """
        self._connection._transaction_command(TransactionCommand.COMMIT, self.id)

    def rollback(self) -> None:
        """End it without effect."""
        self._connection._transaction_command(TransactionCommand.ROLLBACK, self.id)

    def _statement(self, sql: str) -> Statement:
        return Statement(self._connection.tablespace, sql, self.id, self.keeps_read_locks)


def _encrypted(stream: socket.socket, address: Address, encryption: Encryption) -> socket.socket:
    """The socket's timeout applies to each step of the handshake. Closes the socket if that fails."""
    try:
        return client_context(encryption.authorities).wrap_socket(stream, server_hostname=encryption.server_name)
    except OSError as error:
        stream.close()
        if isinstance(error, ssl.SSLCertVerificationError):
            why = f"its certificate can't be verified as that of {encryption.server_name}: {error.verify_message}"
        else:
            why = "no answer in time; does it speak TLS?" if isinstance(error, TimeoutError) else str(error)
        raise ConnectionLost(f"cannot connect by TLS to {address}: {why}") from error


def _ended(stream: socket.socket) -> bool:
    """Whether the other end has closed the connection, where the system tells it. What is sent then is certainly not executed."""
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    try:
        poll.register(stream, getattr(select, "POLLRDHUP", 0))
    except ValueError:  # another thread has closed it
        return True
    return bool(poll.poll(0))


def _effect(statement: Statement) -> Effect:
    return Effect.NONE if statement.transaction_id and not alters(statement.sql) else Effect.DURABLE


def _lost(what: str, error: OSError | MalformedDataError, effect: Effect) -> SqlError:
    silent = isinstance(error, TimeoutError)
    message = f"lost {what}: {'no answer in time' if silent else error}"
    if effect is Effect.DURABLE:
        return OutcomeUnknown(f"{message}; the write may be durable")
    return NoAnswer(message) if silent else ConnectionLost(message)


def _server_error(reader: JavaDataReader, effect: Effect, tablespace: str) -> SqlError:
    """Returns an error answer (u8 flags, text) as its type. Batches answer without flags, so names of Java's exceptions count, too."""
    flags = reader.u8()
    text = frames.decode_text(reader)
    thrown = _thrown(text)
    if effect is Effect.DURABLE and any(sign in text for sign in _SIGNS_OF_AN_UNFINISHED_WRITE):
        return OutcomeUnknown(f"the server failed while logging the write, which may be durable: {text.partition(chr(10))[0][:500]}")
    if flags & ErrorFlag.DUPLICATE_KEY or thrown & _DUPLICATES:
        return DuplicateKey(text)
    if flags & ErrorFlag.NOT_LEADER or thrown & _NO_LEADERS:
        return NotLeader(text)
    if (ended := _NO_TRANSACTION.match(text)) and ended[1] == tablespace:
        return TransactionEnded(text)
    return ServerError(text)


def _thrown(text: str) -> set[str]:
    """The names of an exception and its causes, up to the first one with a message: that may quote a value whose lines look alike."""
    names: set[str] = set()
    for cause in text.split("\nCaused by: "):
        line = cause.partition("\n")[0]
        found = _THROWN.match(line)
        names.update(found[0].split(": ") if found else ())
        if not found or found[0] != line:
            break
    return names
