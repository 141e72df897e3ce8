"""kazoo's connections over TLS, with this project's rules of trust.

kazoo's own `use_ssl` also trusts the system's authorities, and compares no host name unless told. It waits for the socket while answers are
in OpenSSL's buffer (2.11: `ConnectionHandler._connect_attempt` checks it only in the middle of an answer).
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from typing import Any

from kazoo.handlers.threading import SequentialThreadingHandler

from herdkeeper.tls.context import mutual_context
from herdkeeper.tls.identity import IdentityNow, own_identity


class MutualTlsHandler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """A handler for one KazooClient. Each connection uses the current result of `identity`."""

    def __init__(self, identity: IdentityNow) -> None:
        super().__init__()
        self._identity = identity
        self.refused: str | None = None
        """Why the last attempt failed because of certificates, or None."""

    def create_connection(self, address: tuple[str, int], hostname: str | None = None, timeout: float | None = None, **_: Any) -> Any:
        """Connect to an address of the member `hostname`, whose certificate must have that name. Raises OSError, as kazoo expects."""
        try:
            context = mutual_context(self._identity())
        except (OSError, ValueError) as error:
            self.refused = str(error)
            raise OSError(self.refused) from error
        plain = socket.create_connection(address, timeout)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            encrypted = context.wrap_socket(plain, server_hostname=hostname)
        except OSError as error:
            plain.close()
            self.refused = str(error)
            raise
        self.refused = None
        return encrypted

    def select(
        self, reading: Sequence[Any], writing: Sequence[Any], failing: Sequence[Any], timeout: float | None = None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Like `select.select`, but a socket with decrypted bytes counts as ready."""
        waiting = [each for each in reading if isinstance(each, ssl.SSLSocket) and each.pending() > 0]
        ready: tuple[list[Any], list[Any], list[Any]] = super().select(reading, writing, failing, 0 if waiting else timeout)
        return [*waiting, *(each for each in ready[0] if each not in waiting)], ready[1], ready[2]


def own_handler() -> MutualTlsHandler | None:
    """What a KazooClient of this process connects with; None: kazoo's own way."""
    identity = own_identity()
    return None if identity is None else MutualTlsHandler(identity)
