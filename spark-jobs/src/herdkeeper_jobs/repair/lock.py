"""BookKeeper's own lock of a ledger's replication: only its holder copies the ledger's entries.

It is an ephemeral znode `underreplication/locks/urL<id>`; replication workers skip a locked ledger. The holder must be the writing process.
It must stop when its session may be gone, since another process may hold the lock then. Source: ZkLedgerUnderreplicationManager of
BookKeeper 4.18.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState

from herdkeeper.codecs.bookkeeper.underreplication import lock_path
from herdkeeper_jobs.bookkeeper.metadata import MetadataUnavailableError


class LedgerLockedError(RuntimeError):
    """Another process, probably a replication worker, copies this ledger's entries now."""


class LockLostError(RuntimeError):
    """The lock may be lost: write nothing more."""


class ReplicationLock:
    """A lock that is held, as far as known. Made by `replication_lock`."""

    def __init__(self, client: KazooClient, path: str) -> None:
        self._client = client
        self._path = path
        self._session = _session_of(client)
        self._why_lost = ""

    def on_state(self, state: str) -> None:
        """Called by the client's own thread. A reconnect does not make the lock certain again."""
        if state != KazooState.CONNECTED:
            self._why_lost = f"the connection to ZooKeeper was {state} for a moment"

    def require_session(self) -> None:
        """Raises LockLostError after a lost connection. Costs nothing, so call it before each write."""
        if self._why_lost:
            raise LockLostError(f"lock {self._path}: {self._why_lost}")

    def require_held(self) -> None:
        """Asks ZooKeeper whether this session holds the lock. What it reads afterwards is at least as new as this answer: the session's
        member first catches up with the leader. Raises LockLostError, also without an answer."""
        self.require_session()
        try:
            self._client.sync(self._path)
            stat = self._client.exists(self._path)
        except (KazooException, KazooTimeoutError) as error:
            raise LockLostError(f"lock {self._path}: ZooKeeper did not answer: {type(error).__name__} {error}") from error
        if stat is None or stat.ephemeralOwner != self._session:
            raise LockLostError(f"lock {self._path}: it is {'gone' if stat is None else 'held by another session'}")


@contextmanager
def replication_lock(client: KazooClient, ledgers_root: str, ledger_id: int, owner: str) -> Iterator[ReplicationLock]:
    """Holds the lock of a ledger. `owner` names the holder for people.

    Raises LedgerLockedError if it is taken, MetadataUnavailableError if ZooKeeper does not answer.
    """
    path = lock_path(ledgers_root, ledger_id)
    lock = ReplicationLock(client, path)
    client.add_listener(lock.on_state)
    try:
        _create(client, path, f'bookieId: "{owner}"\n'.encode())
        try:
            yield lock
        finally:
            _release(client, path)
    finally:
        client.remove_listener(lock.on_state)


def _create(client: KazooClient, path: str, data: bytes) -> None:
    try:
        client.create(path, data, ephemeral=True, makepath=True)
    except NodeExistsError:
        raise LedgerLockedError(f"{path} exists: another process copies this ledger's entries now; try again later") from None
    except (KazooException, KazooTimeoutError) as error:
        raise MetadataUnavailableError(f"ZooKeeper did not answer the creation of {path}: {type(error).__name__} {error}") from error


def _release(client: KazooClient, path: str) -> None:
    """Leaves another session's lock alone; one that can't be deleted expires with the session. One that was uncertain for a moment is
    deleted, too: the session may last for hours, and nobody else would copy this ledger."""
    try:
        stat = client.exists(path)
        if stat is not None and stat.ephemeralOwner == _session_of(client):
            client.delete(path)
    except (NoNodeError, KazooException, KazooTimeoutError):
        return


def _session_of(client: KazooClient) -> int | None:
    """The id of the session; None while the client is not connected."""
    client_id = client.client_id
    return None if client_id is None else int(client_id[0])
