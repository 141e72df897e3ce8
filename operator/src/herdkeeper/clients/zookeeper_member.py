"""A session with ZooKeeper through one of its members, which is over as soon as that member falls silent.

kazoo's own calls wait for an answer until the connection counts as broken, and it sends no heartbeat as long as something else is being
sent: behind a member whose machine is gone they would wait for as long as others keep asking.
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
from kazoo.exceptions import ConnectionDropped, KazooException
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.states import KazooState

from herdkeeper.codecs.zookeeper.super_digest import super_credential
from herdkeeper.tls.identity import IdentityNow
from herdkeeper.tls.kazoo_handler import MutualTlsHandler

SESSION_SECONDS = 30.0
"""An idle session sends a heartbeat each third of it. Nothing hangs on the session but watches: no znode of ours is ephemeral, and who asks
finds out within ANSWER_SECONDS that a member is silent."""
ANSWER_SECONDS = 2.0
"""After so long without an answer the member counts as silent. A write of ZooKeeper takes some milliseconds, and a SQL node counts as
silent after as long."""
LONGEST_ANSWER_SECONDS = 15.0
GOODBYE_SECONDS = 2.0
"""A member that has not said goodbye by then, and still sends something, is cut off: kazoo would read it for ever."""
MOST_BYTES = 4 << 20
"""Of an answer: what ZooKeeper's own client takes at most by default (`jute.maxbuffer`)."""


Wake = Callable[[Any], None]
"""Called by another thread, once, when what was read has changed, or no change would be told any more. Of equal ones one is called."""


@dataclass(frozen=True)
class EnsembleCredentials:
    """Who the operator is to an ensemble: its certificate, without which it connects in plain text, and the password of the user who may
    do everything, where that is needed."""

    identity: IdentityNow | None = None
    password: str | None = field(default=None, repr=False)


NOBODY = EnsembleCredentials()


class _BoundedConnection(ConnectionHandler):  # type: ignore[misc]
    """kazoo's connection, which takes no answer of any size: it would hold all that a member announces and sends in memory."""

    def _read(self, length: int, timeout: float) -> bytes:
        if not 0 <= length <= MOST_BYTES:
            raise ConnectionDropped(f"an answer of {length} bytes is refused: at most {MOST_BYTES}")
        return bytes(super()._read(length, timeout))


class BoundedClient(KazooClient):  # type: ignore[misc]
    """kazoo's client with such a connection."""

    _connection: Any

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        made = self._connection
        self._connection = _BoundedConnection(self, made.retry_sleeper, logger=made.logger, sasl_options=made.sasl_options)


class MemberSession:
    """A session through `member`, `host:port`, which connects by itself, again and again, until it is ended.

    `patience_seconds` is how long it waits for an answer, until one came within ANSWER_SECONDS: from then on no longer than that.
    `connected` is called by another thread, whenever that has happened.
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
        self.client = BoundedClient(
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
        """Whether it is connected, and has answered whatever it was asked."""
        return self._up and not self._silent

    @property
    def refused(self) -> str | None:
        """Why the last attempt to connect failed by TLS; None when it did not."""
        return None if self._encrypted is None else self._encrypted.refused

    def answer(self, request: Any) -> Any:
        """What ZooKeeper answers to one of kazoo's asynchronous requests. Raises KazooException, and KazooTimeoutError when nothing came:
        the session is of no use then."""
        began = time.monotonic()
        try:
            return request.get(timeout=self._patience_seconds)
        except KazooTimeoutError:
            self._silent = True
            raise
        finally:
            if time.monotonic() - began < ANSWER_SECONDS:
                self._patience_seconds = ANSWER_SECONDS

    def next_patience_seconds(self) -> float:
        """How long the session that comes after this one waits for its first answer: longer when this one waited in vain. So members that
        are only slow are heard in the end."""
        return min(2 * self._patience_seconds, LONGEST_ANSWER_SECONDS) if self._silent else ANSWER_SECONDS

    def watched_by(self, wake: Wake | None) -> Wake | None:
        """The same, which is told as well when the session ends: kazoo does not tell the watchers of one that is stopped."""
        if wake is not None:
            self._wakes.add(wake)
        return wake

    def end(self) -> threading.Thread:
        """End it, in a thread of its own: kazoo says goodbye, and a silent member lets it wait."""
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
