"""ZooKeeper as the operator uses it: few reads and compare-and-set writes, through one session per ensemble.

Every read begins with sync(): a read from a follower may be older than what the operator itself wrote.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadArgumentsError,
    BadVersionError,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
)
from kazoo.handlers.threading import KazooTimeoutError

from herdkeeper.formats.zookeeper_super_digest import super_credential

CONNECT_SECONDS = 5.0
SILENT_SECONDS = 10.0
"""How long nobody tries again to connect to an ensemble that did not answer: else all workers wait for it, and nobody for the others."""
SESSION_SECONDS = 20.0
ANSWER_SECONDS = 15.0
REQUESTS_IN_FLIGHT = 64

Answer = TypeVar("Answer")

logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # it logs each attempt; what matters becomes an EnsembleError


class EnsembleError(Exception):
    """ZooKeeper did not answer, or refused; the message is a sentence for people."""


class ChangedMeanwhileError(EnsembleError):
    """A compare-and-set found another version than the one that was read."""


@dataclass(frozen=True)
class Znode:
    """`changed_at` is in seconds since 1970, by ZooKeeper's clock."""

    data: bytes
    version: int
    changed_at: float


class Ensemble(Protocol):
    """One ZooKeeper ensemble. Every method raises EnsembleError when it can't be reached."""

    def read(self, path: str) -> tuple[bytes, int] | None:
        """Data and version of a znode, None when there is none."""

    def read_changed(self, path: str) -> Znode | None:
        """The same with the time of the last change."""

    def children(self, path: str) -> tuple[str, ...] | None:
        """Sorted names of its children, None when there is no such znode."""

    def read_many(self, paths: Sequence[str]) -> tuple[bytes | None, ...]:
        """The data of many znodes in the order of their paths, None where there is none."""

    def create_all(self, znodes: Iterable[tuple[str, bytes]]) -> None:
        """Create persistent znodes in one transaction: all of them or none."""

    def ensure(self, path: str) -> None:
        """Create an empty persistent znode and its parents where they are missing."""

    def compare_and_set(self, path: str, data: bytes, version: int) -> None:
        """Write if the version is still this one; ChangedMeanwhileError otherwise."""

    def delete(self, path: str) -> None:
        """Delete a znode; one that is gone already is no error."""

    def delete_tree(self, path: str) -> None:
        """Delete a znode and all below it; one that is gone already is no error."""

    def delete_together(self, paths: Sequence[str]) -> bool:
        """Delete znodes in this order in one transaction; False, and nothing is deleted, when one has children or is ZooKeeper's own."""


@dataclass(frozen=True)
class MembershipChange:
    """An incremental reconfig: servers that join or change their role (`server.<id>=…` lines), ids of those that leave, and the version of
    the membership that it starts from."""

    joining: tuple[str, ...]
    leaving: tuple[int, ...]
    version: int


class KazooEnsemble:
    """An Ensemble through kazoo. `password`, where it is given, is that of the user who may do everything."""

    def __init__(self, address: str, password: str | None = None) -> None:
        self._address = address
        self._client = KazooClient(
            hosts=address,
            timeout=SESSION_SECONDS,
            connection_retry={"max_tries": 0},
            command_retry={"max_tries": 0},
            auth_data=None if password is None else [("digest", super_credential(password))],
        )

    def start(self) -> None:
        """Connect. Raises EnsembleError."""
        try:
            self._client.start(timeout=CONNECT_SECONDS)
        except (KazooTimeoutError, KazooException, OSError) as error:
            self.stop()
            raise EnsembleError(f"ZooKeeper at {self._address} did not answer within {CONNECT_SECONDS:g} s") from error

    @property
    def connected(self) -> bool:
        """Whether the session is alive."""
        return bool(self._client.connected)

    def stop(self) -> None:
        """End the session."""
        self._client.stop()
        self._client.close()

    def read(self, path: str) -> tuple[bytes, int] | None:
        """See Ensemble."""

        found = self.read_changed(path)
        return None if found is None else (found.data, found.version)

    def read_changed(self, path: str) -> Znode | None:
        """See Ensemble."""

        def get() -> Znode | None:
            self._client.sync(path)
            try:
                data, stat = self._client.get(path)
            except NoNodeError:
                return None
            return Znode(bytes(data), int(stat.version), stat.mtime / 1000)

        return self._ask(path, get)

    def children(self, path: str) -> tuple[str, ...] | None:
        """See Ensemble."""

        def get() -> tuple[str, ...] | None:
            self._client.sync(path)
            try:
                return tuple(sorted(self._client.get_children(path)))
            except NoNodeError:
                return None

        return self._ask(path, get)

    def read_many(self, paths: Sequence[str]) -> tuple[bytes | None, ...]:
        """See Ensemble. The requests in flight are bounded: a flood of reads expires the session (apache/bookkeeper#2802)."""

        def answer(request: Any) -> bytes | None:
            try:
                return bytes(request.get(timeout=ANSWER_SECONDS)[0])
            except NoNodeError:
                return None

        def get() -> tuple[bytes | None, ...]:
            found: list[bytes | None] = []
            waiting: deque[Any] = deque()
            if paths:
                self._client.sync(paths[0])
            for path in paths:
                waiting.append(self._client.get_async(path))
                if len(waiting) >= REQUESTS_IN_FLIGHT:
                    found.append(answer(waiting.popleft()))
            return (*found, *(answer(request) for request in waiting))

        return self._ask("many znodes", get)

    def create_all(self, znodes: Iterable[tuple[str, bytes]]) -> None:
        """See Ensemble."""

        def create() -> None:
            transaction = self._client.transaction()
            for path, data in znodes:
                transaction.create(path, data)
            failed = [result for result in transaction.commit() if isinstance(result, Exception)]
            if failed:
                raise next((error for error in failed if isinstance(error, (NodeExistsError, NoNodeError))), failed[0])

        self._ask("a new tree", create)

    def ensure(self, path: str) -> None:
        """See Ensemble."""
        self._ask(path, lambda: self._client.ensure_path(path))

    def compare_and_set(self, path: str, data: bytes, version: int) -> None:
        """See Ensemble."""
        try:
            self._ask(path, lambda: self._client.set(path, data, version=version))
        except EnsembleError as error:
            if isinstance(error.__cause__, BadVersionError):
                raise ChangedMeanwhileError(f"{path} changed since it was read") from error
            raise

    def delete(self, path: str) -> None:
        """See Ensemble."""

        def delete() -> None:
            try:
                self._client.delete(path)
            except NoNodeError:
                return

        self._ask(path, delete)

    def delete_tree(self, path: str) -> None:
        """See Ensemble."""

        def delete() -> None:
            try:
                self._client.delete(path, recursive=True)
            except NoNodeError:
                return

        self._ask(path, delete)

    def delete_together(self, paths: Sequence[str]) -> bool:
        """See Ensemble."""

        def delete() -> bool:
            transaction = self._client.transaction()
            for path in paths:
                transaction.delete(path)
            failed = [result for result in transaction.commit() if isinstance(result, Exception)]
            if any(isinstance(error, (NotEmptyError, BadArgumentsError)) for error in failed):
                return False
            if failed:
                raise next((error for error in failed if isinstance(error, NoNodeError)), failed[0])
            return True

        return self._ask(paths[0], delete)

    def reconfigure(self, change: MembershipChange) -> None:
        """Change the membership, if it still has the version that was read; ChangedMeanwhileError otherwise."""
        joining, leaving = ",".join(change.joining) or None, ",".join(map(str, change.leaving)) or None

        def reconfigure() -> None:
            # get() of the client itself would wait for ever for an answer that a leader took with it
            self._client.reconfig_async(joining, leaving, None, change.version).get(timeout=ANSWER_SECONDS)

        try:
            self._ask("reconfig", reconfigure)
        except EnsembleError as error:
            match error.__cause__:
                case BadVersionError():
                    raise ChangedMeanwhileError("the membership changed since it was read") from error
                case NoAuthError():
                    raise EnsembleError(
                        f"ZooKeeper at {self._address} refused the password: a member was started with another one; restart its pod"
                    ) from error
                case _:
                    raise

    def _ask(self, path: str, question: Callable[[], Answer]) -> Answer:
        try:
            return question()
        except (KazooException, KazooTimeoutError, OSError) as error:
            raise EnsembleError(f"ZooKeeper at {self._address}, {path}: {type(error).__name__} {error}".rstrip()) from error


class Ensembles:
    """Sessions by address, made when first asked for and made anew when they broke. Safe for threads."""

    def __init__(self) -> None:
        self._sessions: dict[str, KazooEnsemble] = {}
        self._silent: dict[str, tuple[float, EnsembleError]] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()

    def at(self, address: str) -> Ensemble:
        """The ensemble at `host:port,host:port`. Raises EnsembleError."""
        with self._guard:
            lock = self._locks.setdefault(address, threading.Lock())
        with lock:
            session = self._sessions.get(address)
            if session is not None and session.connected:
                return session
            if session is not None:
                del self._sessions[address]
                session.stop()
            return self._connected(address)

    def _connected(self, address: str) -> KazooEnsemble:
        """A new session. Called with the address's lock held, so that who waited for it hears of the failure and does not try again."""
        tried, error = self._silent.get(address, (-SILENT_SECONDS, None))
        if error is not None and time.monotonic() - tried < SILENT_SECONDS:
            raise EnsembleError(str(error))
        session = KazooEnsemble(address)
        try:
            session.start()
        except EnsembleError as failure:
            self._silent[address] = (time.monotonic(), failure)
            raise
        self._silent.pop(address, None)
        self._sessions[address] = session
        return session

    def reconfigure(self, address: str, password: str, change: MembershipChange) -> None:
        """See EnsembleDirectory. Through a session of its own: no other one may do everything."""
        session = KazooEnsemble(address, password)
        session.start()
        try:
            session.reconfigure(change)
        finally:
            session.stop()

    def stop(self) -> None:
        """End all sessions."""
        for session in self._sessions.values():
            session.stop()
        self._sessions.clear()


class EnsembleDirectory(Protocol):
    """Finds ensembles by address: Ensembles, or what stands in for it in a test."""

    def at(self, address: str) -> Ensemble:
        """The ensemble at `host:port,host:port`. Raises EnsembleError."""

    def reconfigure(self, address: str, password: str, change: MembershipChange) -> None:
        """Change the membership of the ensemble at `address` by compare-and-set on its version.

        Raises EnsembleError; ChangedMeanwhileError when the membership is another one by now.
        """
