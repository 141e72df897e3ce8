"""A session with ZooKeeper through one member, which ends as soon as that member falls silent.

kazoo's own calls wait until the connection counts as broken, and it sends no heartbeat while it sends requests. With a lost machine, they
would wait as long as requests keep coming.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionDropped, ConnectionLoss, KazooException
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.states import KazooState

from herdkeeper.codecs.zookeeper.super_digest import super_credential
from herdkeeper.tls.identity import IdentityNow
from herdkeeper.tls.kazoo_handler import MutualTlsHandler

SESSION_SECONDS = 30.0
"""An idle session sends a heartbeat each third of it. Only watches depend on the session: the operator has no ephemeral znodes, and
requests detect a silent member within ANSWER_SECONDS."""
ANSWER_SECONDS = 2.0
"""After so long without an answer the member counts as silent, like a SQL node. A write takes milliseconds."""
LONGEST_ANSWER_SECONDS = 15.0
GOODBYE_SECONDS = 2.0
"""After that a member that has not confirmed the close, but keeps sending, is cut off: kazoo would read forever."""
MOST_BYTES = 4 << 20
"""Of an answer: four times the default of ZooKeeper's own client (`jute.maxbuffer`)."""
MOST_BYTES_WAITING = 2 * MOST_BYTES
"""Of the answers that nobody has taken yet: 64 requests may be under way."""
MOST_WATCHED = 50_000
"""Paths. A member that tells of other names at each read would have them pile up: kazoo keeps a watch until it is called."""


Wake = Callable[[Any], None]
"""Called once, by another thread, when what was read has changed, or changes are no longer reported. Of equal ones, one is called."""


@dataclass(frozen=True)
class EnsembleCredentials:
    """The operator's credentials for an ensemble: its certificate (None: plain text), and the super user's password if needed."""

    identity: IdentityNow | None = None
    password: str | None = field(default=None, repr=False)


NOBODY = EnsembleCredentials()


@dataclass
class Waiting:
    """Bytes that came since an answer was taken last, and why the connection was given up meanwhile, if it was."""

    size: int = 0
    refused: str = ""

    def refuse(self, why: str) -> ConnectionDropped:
        self.refused = why
        return ConnectionDropped(why)


class _BoundedConnection(ConnectionHandler):  # type: ignore[misc]
    """kazoo's connection with a size limit for answers: kazoo would keep any announced size in memory."""

    waiting: Waiting

    def _read(self, length: int, timeout: float) -> bytes:
        if not 0 <= length <= MOST_BYTES:
            raise self.waiting.refuse(f"an answer of {length} bytes is refused: at most {MOST_BYTES}")
        self.waiting.size += length
        if self.waiting.size > MOST_BYTES_WAITING:
            raise self.waiting.refuse(f"answers of {self.waiting.size} bytes are refused: at most {MOST_BYTES_WAITING}")
        return bytes(super()._read(length, timeout))


class BoundedClient(KazooClient):  # type: ignore[misc]
    """kazoo's client with a bounded connection."""

    _connection: Any

    def __init__(self, *, waiting: Waiting, **settings: Any) -> None:
        super().__init__(**settings)
        made = self._connection
        self._connection = _BoundedConnection(self, made.retry_sleeper, logger=made.logger, sasl_options=made.sasl_options)
        self._connection.waiting = waiting


class MemberSession:
    """A session through `member`, `host:port`, which reconnects by itself until it is ended.

    `patience_seconds` is how long it waits for an answer until one came within ANSWER_SECONDS; after that, ANSWER_SECONDS. `connected` is
    called by another thread at each connect.
    """

    def __init__(
        self,
        member: str,
        connected: Callable[[], None],
        credentials: EnsembleCredentials = NOBODY,
        patience_seconds: float = ANSWER_SECONDS,
    ) -> None:
        identity, password = credentials.identity, credentials.password
        self._encrypted = None if identity is None else MutualTlsHandler(identity)
        self._waiting = Waiting()
        self.client = BoundedClient(
            waiting=self._waiting,
            hosts=member,
            timeout=SESSION_SECONDS,
            connection_retry={"max_tries": -1, "delay": 0.1, "max_delay": 0.5},
            command_retry={"max_tries": 0},
            auth_data=None if password is None else [("digest", super_credential(password))],
            handler=self._encrypted,
        )
        self._tell = connected
        self._patience_seconds = patience_seconds
        self._silent = False
        self._up = False
        self._wakes: set[Wake] = set()
        self.client.add_listener(self._changed)
        self.client.start_async()

    @property
    def usable(self) -> bool:
        """Whether it is connected and has answered all requests."""
        return self._up and not self._silent

    @property
    def refused(self) -> str | None:
        """Why the last attempt to connect failed by TLS, or None."""
        return None if self._encrypted is None else self._encrypted.refused

    def answer(self, request: Any) -> Any:
        """Returns ZooKeeper's answer to an asynchronous request of kazoo. Raises KazooException, OSError if it is too large, or
        KazooTimeoutError if none came: the session is then useless.
        """
        began = time.monotonic()
        try:
            return request.get(timeout=self._patience_seconds)
        except ConnectionLoss as lost:
            if not self._waiting.refused:
                raise
            raise OSError(self._waiting.refused) from lost
        except KazooTimeoutError:
            self._silent = True
            raise
        finally:
            self._waiting.size, self._waiting.refused = 0, ""
            if time.monotonic() - began < ANSWER_SECONDS:
                self._patience_seconds = ANSWER_SECONDS

    def next_patience_seconds(self) -> float:
        """Returns how long the next session waits for its first answer: longer if this one waited in vain, since members may be slow."""
        return min(2 * self._patience_seconds, LONGEST_ANSWER_SECONDS) if self._silent else ANSWER_SECONDS

    def watched_by(self, wake: Wake | None) -> Wake | None:
        """Returns a watch that is called when the session ends, too, unlike kazoo's. A session that watches too much is replaced."""
        if wake is not None:
            self._wakes.add(wake)
            self._silent = self._silent or len(self.client._data_watchers) + len(self.client._child_watchers) > MOST_WATCHED
        return wake

    def end(self) -> threading.Thread:
        """End it in a thread of its own: kazoo closes it properly, and a silent member delays that."""
        for wake in tuple(self._wakes):
            wake(None)
        ending = threading.Thread(target=self._end, name="zookeeper-goodbye", daemon=True)
        ending.start()
        return ending

    def _end(self) -> None:
        cutting = threading.Timer(GOODBYE_SECONDS, self._cut)
        cutting.daemon = True
        cutting.start()
        with contextlib.suppress(KazooException, OSError):
            self.client.stop()
            self.client.close()
        cutting.cancel()

    def _cut(self) -> None:
        with contextlib.suppress(OSError, AttributeError):  # it may close the socket, or never have had one
            self.client._connection._socket.shutdown(socket.SHUT_RDWR)

    def _changed(self, state: KazooState) -> None:
        self._up = state == KazooState.CONNECTED
        if self._up:
            self._tell()
