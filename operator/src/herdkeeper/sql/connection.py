"""One connection to one HerdDB node: statements, queries, batches and transactions, each with a deadline.

The server may never answer: a node that does not host the tablespace stays silent (HerdDB 0.29 loses that error). So every call
has a timeout, and after a timeout or any broken answer the connection is closed, because later answers would be out of step.
HerdDB's transactions are not bound to a connection: one that is left open by a lost connection stays open on the leader until its
`server.abandoned.transactions.timeout` (15 minutes) or the next leader change.

Not safe for several threads at once: take one connection per thread.
"""

from __future__ import annotations

import itertools
import socket
import ssl
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from types import TracebackType
from typing import Self, assert_never

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
)
from herdkeeper.sql.frames import Chunk, ErrorFlag, Executed, Message, MessageType, Statement, TransactionCommand, Value

DEFAULT_TABLESPACE = "herd"
FETCH_ROWS = 2000
"""Rows in one piece of a result set. HerdDB builds the piece in memory on both sides."""
BATCH_LISTS = 50
"""Parameter lists in one batch message. The server recurses once per list (`ServerSideConnectionPeer.ComputeNext`), and when its stack
ends in the middle of a log write it keeps a lock of the log for ever: 1000 lists on two connections stopped a leader with -Xss512k."""

# The bytes of an entry may have reached bookies when these appear in the server's stack trace: the next leader's recovery decides.
# "already closed": an old leader closes its indexes while a statement is under way, and then answers without the not-leader flag.
_SIGNS_OF_AN_UNFINISHED_WRITE = ("LogNotAvailableException", "org.apache.bookkeeper.client", "BookkeeperCommitLog", "already closed")


class Effect(Enum):
    """What a lost answer leaves behind."""

    NONE = "a read, or a change that only a later COMMIT makes durable"
    DURABLE = "a commit, or a statement outside a transaction"


@dataclass(frozen=True)
class Address:
    """Where a SQL node listens, and how what is said there is encrypted; None: it is not."""

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
    """An authenticated connection that works in one tablespace. Use `Connection.connect`; a context manager that closes.

    Every method raises, besides what it names: `ConnectionLost` (nothing was applied; the connection is closed), `NotLeader`
    and `ServerError` (the answer of the server; the connection stays usable). `timeout_seconds`, for each call, may be changed.
    """

    def __init__(self, stream: socket.socket, address: Address, tablespace: str, timeout_seconds: float) -> None:
        self._stream = stream
        self._address = address
        self._tablespace = tablespace
        self.timeout_seconds = timeout_seconds
        self._ids = itertools.count(1)
        self._closed = False

    @classmethod
    def connect(
        cls, address: Address, credentials: Credentials, tablespace: str = DEFAULT_TABLESPACE, *, timeout_seconds: float = 10.0
    ) -> Self:
        """Connects and authenticates with SASL PLAIN.

        Args:
            address: of any node; statements work only on the tablespace's leader.
            credentials: a user of the server.
            tablespace: where the statements of this connection work.
            timeout_seconds: for connecting, and then for each call; must be positive.

        Raises:
            AuthenticationFailed: the server refused the user or the password.
            ConnectionLost: nobody listens there, no answer came in time, or it is not the node whose certificate was to be shown.
        """
        if timeout_seconds <= 0:
            raise ValueError(f"timeout_seconds is {timeout_seconds}: pass a positive number, a HerdDB node may never answer")
        try:
            stream = socket.create_connection((address.host, address.port), timeout_seconds)
        except OSError as error:
            raise ConnectionLost(f"cannot connect to {address}: {error}") from error
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
        """Where the statements of this connection work."""
        return self._tablespace

    @property
    def closed(self) -> bool:
        """Whether it was closed, by `close` or by an error that left it out of step."""
        return self._closed

    def close(self) -> None:
        """Closes the socket. May be called twice."""
        self._closed = True
        self._stream.close()

    def require_leader(self) -> None:
        """Asks whether this node leads the tablespace, by preparing a statement: the one request that every node answers.

        Raises:
            NotLeader: it does not (or not yet).
        """
        body = frames.prepare_body(self._tablespace, "SELECT * FROM systables")
        self._call(MessageType.PREPARE_STATEMENT, body, MessageType.PREPARE_STATEMENT_RESULT, Effect.NONE)

    def execute(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        """One statement in autocommit: durable on the ack quorum of bookies when this returns.

        Returns:
            How many rows it changed; 1 for DDL.

        Raises:
            DuplicateKey: an INSERT of a key that exists.
            OutcomeUnknown: the answer was lost; the statement may be durable.
        """
        return self._execute(self._statement(sql), parameters).changed

    def run(self, sql: str, parameters: Sequence[Value] = (), *, returns_key: bool = False) -> Executed:
        """One statement as `execute`; on demand tells the primary key of the row that it inserts, which the server may have made."""
        return self._execute(replace(self._statement(sql), returns_key=returns_key), parameters)

    def execute_batch(self, sql: str, rows: Sequence[Sequence[Value]]) -> list[int]:
        """One statement with many parameter lists, in few messages, each in autocommit: mostly of use inside a transaction.

        Returns:
            Changed rows per parameter list. An empty batch returns at once.

        Raises:
            DuplicateKey, ServerError: at one of the lists; the ones before it were applied, it and the later ones were not.
            OutcomeUnknown: the answer was lost; any number of them may be durable.
        """
        return self._execute_batch(self._statement(sql), rows)

    def query(self, sql: str, parameters: Sequence[Value] = ()) -> list[dict[str, Value]]:
        """All rows of a SELECT, each as column name (in lower case, as HerdDB gives it) to value."""
        return list(self.stream(sql, parameters))

    def stream(
        self, sql: str, parameters: Sequence[Value] = (), *, fetch_rows: int = FETCH_ROWS
    ) -> Generator[dict[str, Value], None, None]:
        """The rows of a SELECT, fetched in pieces of `fetch_rows`. Use the connection for nothing else meanwhile."""
        for piece in self.pieces(sql, parameters, fetch_rows=fetch_rows):
            yield from piece.records()

    def pieces(self, sql: str, parameters: Sequence[Value] = (), *, fetch_rows: int = FETCH_ROWS) -> Generator[Chunk, None, None]:
        """The same as pieces, one at least, which name their columns. Other calls may be made between two of them."""
        return self._pieces(self._statement(sql), parameters, fetch_rows)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """A transaction: COMMIT when the block ends, ROLLBACK when it raises.

        Raises:
            OutcomeUnknown: the answer to the COMMIT was lost; the transaction may be durable as a whole, or not at all.
        """
        transaction = self.begin()
        try:
            yield transaction
        except BaseException:
            # The block's own error is what the caller must see. A rollback that fails changes nothing: without a COMMIT
            # nothing becomes visible, and the leader ends abandoned transactions.
            with suppress(SqlError):
                transaction.rollback()
            raise
        transaction.commit()

    def begin(self) -> Transaction:
        """A transaction that the caller commits or rolls back; `transaction` is the block that does it by itself."""
        return Transaction(self, self._transaction_command(TransactionCommand.BEGIN, 0))

    def rollback(self, transaction_id: int) -> None:
        """Ends a transaction that a lost connection left open on this leader, with its locks.

        Raises:
            ServerError: no such transaction is open: it was committed, was rolled back, or ended with an earlier leader.
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
        reader = self._call(MessageType.EXECUTE_STATEMENT, body, MessageType.EXECUTE_STATEMENT_RESULT, _effect(statement))
        return frames.decode_executed(reader)

    def _execute_batch(self, statement: Statement, rows: Sequence[Sequence[Value]]) -> list[int]:
        slices = (rows[start : start + BATCH_LISTS] for start in range(0, len(rows), BATCH_LISTS))
        return [changed for part in slices for changed in self._execute_message(statement, part)]

    def _execute_message(self, statement: Statement, rows: Sequence[Sequence[Value]]) -> list[int]:
        body = frames.execute_batch_body(statement, rows)
        reader = self._call(MessageType.EXECUTE_STATEMENTS, body, MessageType.EXECUTE_STATEMENTS_RESULT, _effect(statement))
        reader.i64()
        return [reader.i64() for _ in range(reader.i32())]

    def _pieces(self, statement: Statement, parameters: Sequence[Value], fetch_rows: int) -> Generator[Chunk, None, None]:
        scanner_id = next(self._ids)
        chunk = self._chunk(MessageType.OPEN_SCANNER, frames.open_scanner_body(statement, parameters, scanner_id, fetch_rows))
        try:
            yield chunk
            while not chunk.last:
                chunk = self._chunk(MessageType.FETCH_SCANNER_DATA, frames.fetch_body(scanner_id, fetch_rows))
                yield chunk
        finally:
            if not chunk.last and not self._closed:
                # a caller that stopped early; the server holds the scanner until it is told
                with suppress(SqlError):
                    self._send(MessageType.CLOSE_SCANNER, next(self._ids), frames.close_scanner_body(scanner_id), self._deadline())

    def _chunk(self, kind: MessageType, body: bytes) -> Chunk:
        return frames.decode_chunk(self._call(kind, body, MessageType.RESULT_SET_CHUNK, Effect.NONE).rest())

    def _transaction_command(self, command: TransactionCommand, transaction_id: int) -> int:
        match command:
            case TransactionCommand.COMMIT:
                effect = Effect.DURABLE
            case TransactionCommand.BEGIN | TransactionCommand.ROLLBACK:
                effect = Effect.NONE
            case _:
                assert_never(command)
        body = frames.transaction_body(command, transaction_id, self._tablespace)
        return self._call(MessageType.TRANSACTION_COMMAND, body, MessageType.TRANSACTION_COMMAND_RESULT, effect).i64()

    def _deadline(self) -> float:
        return time.monotonic() + self.timeout_seconds

    def _call(self, kind: MessageType, body: bytes, expected: MessageType, effect: Effect) -> JavaDataReader:
        """Sends a request and returns its answer's body."""
        if self._closed:
            raise ConnectionLost(f"the connection to {self._address} is closed")
        message_id = next(self._ids)
        deadline = self._deadline()
        self._send(kind, message_id, body, deadline)
        try:
            message = self._receive(message_id, deadline)
            if message.type not in (expected, MessageType.ERROR):
                raise MalformedDataError(f"answer of type {message.type} to a request of type {kind.value}: expected {expected.value}")
        except (OSError, MalformedDataError) as error:
            self.close()
            raise _lost(f"{self._address} after a {kind.name} was sent", error, effect) from error
        except BaseException:
            # an interrupt: what was read of the answer so far is gone
            self.close()
            raise
        reader = JavaDataReader(message.body)
        if message.type == MessageType.ERROR:
            raise _server_error(reader, effect)
        return reader

    def _send(self, kind: MessageType, message_id: int, body: bytes, deadline: float) -> None:
        try:
            self._stream.settimeout(max(deadline - time.monotonic(), 0.001))
            self._stream.sendall(frames.encode_frame(kind, message_id, body))
        except OSError as error:
            # An incomplete frame is never carried out, so the outcome is known, whatever the statement is.
            self.close()
            raise ConnectionLost(f"cannot send a {kind.name} to {self._address}: {error}") from error

    def _receive(self, message_id: int, deadline: float) -> Message:
        while True:
            size = frames.LENGTH.unpack(self._read(frames.LENGTH.size, deadline))[0]
            if size > frames.MAX_FRAME_BYTES:
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
    """The statements of one open transaction. Made by `Connection.transaction` and `Connection.begin`; raises what the connection's
    methods raise, except `OutcomeUnknown`, which only `commit` raises: nothing is durable before.

    With `keeps_read_locks` what it has read stays locked until its end.
    """

    def __init__(self, connection: Connection, transaction_id: int) -> None:
        self._connection = connection
        self.id = transaction_id
        self.keeps_read_locks = True

    def execute(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        """One statement; returns how many rows it changed."""
        return self.run(sql, parameters).changed

    def run(self, sql: str, parameters: Sequence[Value] = (), *, returns_key: bool = False) -> Executed:
        """One statement; tells whether the transaction is still open behind it, and on demand the key of the row that it inserts."""
        return self._connection._execute(replace(self._statement(sql), returns_key=returns_key), parameters)

    def execute_batch(self, sql: str, rows: Sequence[Sequence[Value]]) -> list[int]:
        """One statement with many parameter lists, in few messages; returns the changed rows per list. The fastest way to load."""
        return self._connection._execute_batch(self._statement(sql), rows)

    def query(self, sql: str, parameters: Sequence[Value] = ()) -> list[dict[str, Value]]:
        """All rows of a SELECT, as this transaction sees them."""
        return [row for piece in self.pieces(sql, parameters) for row in piece.records()]

    def pieces(self, sql: str, parameters: Sequence[Value] = (), *, fetch_rows: int = FETCH_ROWS) -> Generator[Chunk, None, None]:
        """The same in pieces, one at least, which name their columns."""
        return self._connection._pieces(self._statement(sql), parameters, fetch_rows)

    def require_leader(self) -> None:
        """Asks whether this node still leads, as `Connection.require_leader`."""
        self._connection.require_leader()

    def commit(self) -> None:
        """Makes all of it durable.

        Raises:
            OutcomeUnknown: the answer was lost; the transaction may be durable as a whole, or not at all.
        """
        self._connection._transaction_command(TransactionCommand.COMMIT, self.id)

    def rollback(self) -> None:
        """Ends it without a trace."""
        self._connection._transaction_command(TransactionCommand.ROLLBACK, self.id)

    def _statement(self, sql: str) -> Statement:
        return Statement(self._connection.tablespace, sql, self.id, self.keeps_read_locks)


def _encrypted(stream: socket.socket, address: Address, encryption: Encryption) -> socket.socket:
    """The socket's timeout holds for each step of the handshake. Closes the socket when that fails."""
    try:
        return client_context(encryption.authorities).wrap_socket(stream, server_hostname=encryption.server_name)
    except OSError as error:
        stream.close()
        if isinstance(error, ssl.SSLCertVerificationError):
            why = f"its certificate can't be verified as that of {encryption.server_name}: {error.verify_message}"
        else:
            why = "no answer in time; does it speak TLS?" if isinstance(error, TimeoutError) else str(error)
        raise ConnectionLost(f"cannot connect by TLS to {address}: {why}") from error


def _effect(statement: Statement) -> Effect:
    return Effect.NONE if statement.transaction_id else Effect.DURABLE


def _lost(what: str, error: OSError | MalformedDataError, effect: Effect) -> SqlError:
    silent = isinstance(error, TimeoutError)
    message = f"lost {what}: {'no answer in time' if silent else error}"
    match effect:
        case Effect.NONE:
            return NoAnswer(message) if silent else ConnectionLost(message)
        case Effect.DURABLE:
            return OutcomeUnknown(f"{message}; the write may be durable")
        case _:
            assert_never(effect)


def _server_error(reader: JavaDataReader, effect: Effect) -> SqlError:
    """An error answer (u8 flags, text) as the type that a caller acts on.

    Batches answer without flags and with the Java exception wrapped, so the names of the exceptions count as well.
    """
    flags = reader.u8()
    text = frames.decode_text(reader)
    if effect is Effect.DURABLE and any(sign in text for sign in _SIGNS_OF_AN_UNFINISHED_WRITE):
        return OutcomeUnknown(f"the server failed while it logged the write, which may be durable: {text.partition(chr(10))[0][:500]}")
    if flags & ErrorFlag.DUPLICATE_KEY or "DuplicatePrimaryKeyException" in text or "UniqueIndexContraintViolationException" in text:
        return DuplicateKey(text)
    if flags & ErrorFlag.NOT_LEADER or "NotLeaderException" in text:
        return NotLeader(text)
    return ServerError(text)
