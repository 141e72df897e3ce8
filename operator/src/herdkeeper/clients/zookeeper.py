"""ZooKeeper for the operator: few reads and compare-and-set writes, through one session per ensemble (zookeeper_member.py).

Reads begin with a sync(): a read from a follower may be older than what the operator itself wrote.
"""

from __future__ import annotations

import itertools
import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from kazoo.exceptions import (
    BadArgumentsError,
    BadVersionError,
    ConnectionLoss,
    InvalidACLError,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.security import ACL, Id

from herdkeeper.certificates.access import Access, Rights
from herdkeeper.clients.look import require_room, require_time
from herdkeeper.clients.zookeeper_member import ANSWER_SECONDS, NOBODY, EnsembleCredentials, MemberSession, Wake
from herdkeeper.shared.names import ObjectKey
from herdkeeper.tls.identity import Identity

CONNECT_SECONDS = 5.0
FIRST_MEMBER_SECONDS = 0.5
"""The first contact waits so long for one member before it tries all: a session has three threads, and a start hundreds of ensembles."""
RECONFIG_SECONDS = 15.0
GOODBYE_SECONDS = 2.0
FORGOTTEN_SECONDS = 900.0
"""A session without requests for so long is ended: its ensemble is probably gone. No reconcile takes as long."""
REQUESTS_IN_FLIGHT = 64
MOST_DATA = 1 << 20
"""Bytes of a znode: ZooKeeper's members take no more by default. Decoded, they take up to sixty times as much memory."""
BYTES_OF_A_NAME = 64
"""In memory, besides its characters."""

NO_ACCESS: Mapping[str, Access] = MappingProxyType({})
NOTHING_ELSE: Mapping[str, int] = MappingProxyType({})

Answer = TypeVar("Answer")

logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # it logs each attempt; relevant errors become EnsembleErrors


ANY_VERSION = -1


class EnsembleError(Exception):
    """ZooKeeper did not answer, or refused. The message is a sentence."""


class ChangedMeanwhileError(EnsembleError):
    """A compare-and-set found another version than the one that was read."""


@dataclass(frozen=True)
class Znode:
    """`changed_at` is Unix seconds by ZooKeeper's clock. `transaction` is the number of the last change, which orders changes independently
    of clocks; `children_transaction` is that of the last child that came or went.
    """

    data: bytes
    version: int
    changed_at: float
    transaction: int
    children_transaction: int = 0


@dataclass(frozen=True)
class MembershipChange:
    """An incremental reconfig: joining or changed servers (`server.<id>=…` lines), ids of leaving ones, and the version that was read."""

    joining: tuple[str, ...]
    leaving: tuple[int, ...]
    version: int


class Znodes:
    """The znodes of one ensemble, through a session with one member. Every method raises EnsembleError if no member can be reached.

    What is read is no older than the first read: who must know of something later asks for Znodes anew. A `wake` given to a read is called
    at the next change. For a missing znode it is not: watch its parent's children.
    """

    def __init__(self, address: str, session: MemberSession) -> None:
        self._address = address
        self._session = session
        self._client = session.client
        self._synced: int | None = None
        """The id of the session that has caught up."""

    def read(self, path: str, wake: Wake | None = None) -> tuple[bytes, int] | None:
        """Returns data and version of a znode, or None."""
        found = self.read_changed(path, wake)
        return None if found is None else (found.data, found.version)

    def read_changed(self, path: str, wake: Wake | None = None) -> Znode | None:
        """The same with the time of the last change."""

        def get() -> Znode | None:
            self._sync(path)
            return self._znode(self._client.get_async(path, watch=self._session.watched_by(wake)))

        return self._ask(path, get)

    def children(self, path: str, wake: Wake | None = None) -> tuple[str, ...] | None:
        """Returns the sorted names of its children, or None without the znode."""

        def get() -> tuple[str, ...] | None:
            self._sync(path)
            try:
                found = self._answer(self._client.get_children_async(path, watch=self._session.watched_by(wake)))
            except NoNodeError:
                return None
            require_room(sum(map(len, found)) + BYTES_OF_A_NAME * len(found))
            return tuple(sorted(found))

        return self._ask(path, get)

    def read_many(self, paths: Sequence[str]) -> tuple[bytes | None, ...]:
        """Returns the data of many znodes in the order of their paths, None for missing ones."""
        return tuple(None if znode is None else znode.data for znode in self.changed_many(paths))

    def changed_many(self, paths: Sequence[str]) -> tuple[Znode | None, ...]:
        """Returns many znodes with the times of their last changes, in the order of their paths, None for missing ones. They are read in
        that order. Concurrent requests are limited: a flood of reads expires the session (apache/bookkeeper#2802). A session's requests
        are answered in order.
        """

        def get() -> tuple[Znode | None, ...]:
            found: list[Znode | None] = []
            waiting: deque[Any] = deque()
            if paths:
                self._sync(paths[0])
            for path in paths:
                waiting.append(self._client.get_async(path))
                if len(waiting) >= REQUESTS_IN_FLIGHT:
                    found.append(self._znode(waiting.popleft()))
            return (*found, *map(self._znode, waiting))

        return self._ask("many znodes", get)

    def create_all(self, znodes: Iterable[tuple[str, bytes]], access: Mapping[str, Access] = NO_ACCESS) -> None:
        """Create persistent znodes in one transaction: all or none. `access`, by path, is for those that don't get their parent's."""

        def create() -> None:
            transaction = self._client.transaction()
            for path, data in znodes:
                transaction.create(path, data, acl=_acl(access[path]) if path in access else None)
            failed = [result for result in self._answer(transaction.commit_async()) if isinstance(result, Exception)]
            if failed:
                raise next((error for error in failed if isinstance(error, (NodeExistsError, NoNodeError))), failed[0])

        self._ask("a new tree", create)

    def create_own(self, path: str, data: bytes) -> None:
        """Create a persistent znode that nobody else changes: who may change its parent may read it. In an open parent it is open."""

        def create() -> None:
            parents, _ = self._answer(self._client.get_acls_async(path.rpartition("/")[0]))
            own = [entry if entry.perms & Rights.ADMIN else ACL(int(Rights.READ), entry.id) for entry in parents]
            self._answer(self._client.create_async(path, data, acl=own))

        self._ask(path, create)

    def restrict(self, path: str, access: Access) -> None:
        """Ensure a znode, and set its access."""

        def restrict() -> None:
            self._answer(self._client.ensure_path_async(path))
            self._answer(self._client.set_acls_async(path, _acl(access)))

        why = "does not know access by certificates: its members' image is older than the operator's; remove spec.image"
        self._ask(path, restrict, {InvalidACLError: why})

    def ensure(self, path: str) -> None:
        """Create an empty persistent znode and its parents, unless they exist."""
        self._ask(path, lambda: self._answer(self._client.ensure_path_async(path)))

    def compare_and_set(self, path: str, data: bytes, version: int) -> None:
        """Write if the version still matches, or raise ChangedMeanwhileError."""
        self._ask(path, lambda: self._answer(self._client.set_async(path, data, version=version)))

    def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Delete a znode if the version still matches, or raise ChangedMeanwhileError. A missing one is no error."""

        def delete() -> None:
            with suppress(NoNodeError):
                self._answer(self._client.delete_async(path, version))

        self._ask(path, delete)

    def delete_if(self, path: str, version: int, unchanged: Mapping[str, int] = NOTHING_ELSE, absent: Sequence[str] = ()) -> None:
        """Delete a znode in one transaction, if its version and those in `unchanged` still match and none of `absent` exists. Raises
        ChangedMeanwhileError otherwise, EnsembleError if one of the others is gone.
        """

        def delete() -> None:
            transaction = self._client.transaction()
            for other, read in unchanged.items():
                transaction.check(other, read)
            for other in absent:  # ZooKeeper has no check for that
                transaction.create(other)
                transaction.delete(other)
            transaction.delete(path, version)
            failed = [result for result in self._answer(transaction.commit_async()) if isinstance(result, Exception)]
            if any(isinstance(error, (BadVersionError, NodeExistsError)) for error in failed):
                raise BadVersionError
            if failed:
                raise next((error for error in failed if isinstance(error, NoNodeError)), failed[0])

        self._ask(path, delete)

    def delete_tree(self, path: str) -> None:
        """Delete a znode and everything below it. A missing one is no error. kazoo's own recursion would wait for a silent member."""

        def delete(path: str) -> None:
            with suppress(NoNodeError):
                for name in self._answer(self._client.get_children_async(path)):
                    delete(f"{path}/{name}")
                self._answer(self._client.delete_async(path))

        self._ask(path, lambda: delete(path))

    def delete_together(self, paths: Sequence[str]) -> bool:
        """Delete znodes in this order in one transaction. Returns False, without a change, if one has children or belongs to ZooKeeper."""

        def delete() -> bool:
            transaction = self._client.transaction()
            for path in paths:
                transaction.delete(path)
            failed = [result for result in self._answer(transaction.commit_async()) if isinstance(result, Exception)]
            if any(isinstance(error, (NotEmptyError, BadArgumentsError)) for error in failed):
                return False
            if failed:
                raise next((error for error in failed if isinstance(error, NoNodeError)), failed[0])
            return True

        return self._ask(paths[0], delete)

    def reconfigure(self, change: MembershipChange) -> None:
        """Change the membership if its version still matches, or raise ChangedMeanwhileError."""
        joining, leaving = ",".join(change.joining) or None, ",".join(map(str, change.leaving)) or None

        def reconfigure() -> None:
            # slower than other requests: joining members must have caught up
            self._client.reconfig_async(joining, leaving, None, change.version).get(timeout=RECONFIG_SECONDS)

        why = "refused the password: a member started with another one; restart its pod"
        self._ask("the membership", reconfigure, {NoAuthError: why})

    def _sync(self, path: str) -> None:
        """Once a session: its reads never go back. After the loss of one, the next may begin at a member that is behind."""
        session, _ = self._client.client_id or (None, None)
        if session is None or session != self._synced:
            self._answer(self._client.sync_async(path))
            self._synced = session

    def _znode(self, request: Any) -> Znode | None:
        """Returns the answer to a request for a znode's data."""
        try:
            data, stat = self._answer(request)
        except NoNodeError:
            return None
        if len(data) > MOST_DATA:
            raise OSError(f"its {len(data)} bytes are refused: at most {MOST_DATA}")
        require_room(len(data))
        return Znode(bytes(data), int(stat.version), stat.mtime / 1000, int(stat.mzxid), int(stat.pzxid))

    def _answer(self, request: Any) -> Any:
        require_time()
        return self._session.answer(request)

    def _ask(self, path: str, question: Callable[[], Answer], explained: Mapping[type[Exception], str] = MappingProxyType({})) -> Answer:
        """`explained`: what ZooKeeper said by an error, in words for a person."""
        try:
            if not self._session.usable:
                raise ConnectionLoss()
            return question()
        except BadVersionError as error:
            raise ChangedMeanwhileError(f"{path} changed since it was read") from error
        except (KazooException, KazooTimeoutError, OSError, ValueError) as error:  # ValueError: a path with `..`, of a name that it told
            known = explained.get(type(error))
            what = f" {known}" if known else f", {path}: {type(error).__name__} {error}".rstrip()
            raise EnsembleError(f"ZooKeeper at {self._address}{what}") from error


def _acl(access: Access) -> list[ACL]:
    return [ACL(int(grant.rights), Id(grant.scheme, grant.holder)) for grant in access]


class Contact:
    """The connection to the ensemble at `host:port,host:port`: a session through the member that answers first, replaced once it fails.

    All members are tried concurrently: a lost machine neither accepts nor refuses, and trying one after the other would wait for it. Only
    the first contact gives one member a head start of FIRST_MEMBER_SECONDS. While none answers, all are retried without further requests.
    `asked_at` is the last request, by the monotonic clock. Thread-safe.
    """

    def __init__(self, address: str, credentials: EnsembleCredentials = NOBODY) -> None:
        self._address = address
        self._credentials = credentials
        self._changed = threading.Condition()
        self._tried: tuple[MemberSession, ...] = ()
        self._chosen: MemberSession | None = None
        self._lost_at = 0.0
        self.asked_at = time.monotonic()

    def znodes(self) -> Znodes:
        """Returns the znodes. Raises EnsembleError if no member answers; at once after CONNECT_SECONDS of that, for the workers' sake."""
        with self._changed:
            if self._chosen is not None and not self._chosen.usable:
                self._try_all(self._chosen.next_patience_seconds())
            elif self._chosen is None and not self._tried:
                self._try_first()
            self._changed.wait_for(self._choose, self._lost_at + CONNECT_SECONDS - time.monotonic())
            if self._chosen is None:
                refused = next((f": {session.refused}" for session in self._tried if session.refused is not None), "")
                raise EnsembleError(f"ZooKeeper at {self._address} did not answer within {CONNECT_SECONDS:g} s{refused}")
            return Znodes(self._address, self._chosen)

    def stop(self) -> list[threading.Thread]:
        """End all sessions. Returns the threads that do so."""
        with self._changed:
            sessions = [*self._tried, *([] if self._chosen is None else [self._chosen])]
            self._tried, self._chosen = (), None
        return [session.end() for session in sessions]

    def _try_first(self) -> None:
        """Try one member, and the others after its head start."""
        first, *others = random.sample(members := members_of(self._address), len(members))
        self._lost_at = time.monotonic()
        self._tried = self._sessions((first,), ANSWER_SECONDS)
        if others and not self._changed.wait_for(self._choose, FIRST_MEMBER_SECONDS) and self._tried:
            self._tried += self._sessions(others, ANSWER_SECONDS)

    def _try_all(self, patience_seconds: float) -> None:
        if self._chosen is not None:
            self._chosen.end()
        self._chosen = None
        self._lost_at = time.monotonic()
        self._tried = self._sessions(members_of(self._address), patience_seconds)

    def _sessions(self, members: Iterable[str], patience_seconds: float) -> tuple[MemberSession, ...]:
        return tuple(MemberSession(member, self._wake, self._credentials, patience_seconds) for member in members)

    def _choose(self) -> bool:
        """Returns whether there is a session. The first one stays, the others are ended."""
        if self._chosen is None:
            self._chosen = next((session for session in self._tried if session.usable), None)
            if self._chosen is not None:
                for session in self._tried:
                    if session is not self._chosen:
                        session.end()
                self._tried = ()
        return self._chosen is not None

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


def members_of(address: str) -> tuple[str, ...]:
    """Returns the members of a connection string, each with the path at its end, if any: `a:1,b:2/c` is `a:1/c` and `b:2/c`."""
    hosts, slash, path = address.partition("/")
    return tuple(f"{host}{slash}{path}" for host in hosts.split(","))


class EnsembleSessions:
    """Contacts with ensembles, by address and identity. Thread-safe. `read_identity` returns the content of a Secret with a certificate."""

    def __init__(self, read_identity: Callable[[ObjectKey], Identity] | None = None) -> None:
        self._read_identity = read_identity
        self._contacts: dict[tuple[str, ObjectKey | None], Contact] = {}
        self._guard = threading.Lock()

    def at(self, address: str, identity: ObjectKey | None = None) -> Znodes:
        """Returns the znodes of the ensemble at `host:port,host:port`, to which the operator presents the certificate in the Secret
        `identity`; None: plain text. Raises EnsembleError.
        """
        place, now = (address, identity), time.monotonic()
        with self._guard:
            contact = self._contacts.pop(place, None) or Contact(address, self._credentials(identity))
            contact.asked_at = now
            self._contacts[place] = contact  # last: those that nobody has asked for come first
            for eldest in [*itertools.takewhile(lambda each: now - self._contacts[each].asked_at > FORGOTTEN_SECONDS, self._contacts)]:
                self._contacts.pop(eldest).stop()
        return contact.znodes()

    def reconfigure(self, address: str, password: str, change: MembershipChange, identity: ObjectKey | None = None) -> None:
        """Change the membership of such an ensemble by compare-and-set on its version. It uses a session of its own: no other one has all
        rights.

        Raises EnsembleError, or ChangedMeanwhileError if the membership has changed.
        """
        contact = Contact(address, self._credentials(identity, password))
        try:
            contact.znodes().reconfigure(change)
        finally:
            contact.stop()

    def _credentials(self, identity: ObjectKey | None, password: str | None = None) -> EnsembleCredentials:
        if identity is None:
            return EnsembleCredentials(None, password)
        if self._read_identity is None:
            raise EnsembleError(f"the certificate of {identity} can't be read here")
        return EnsembleCredentials(partial(self._read_identity, identity), password)

    def stop(self) -> None:
        """End all sessions; those of silent members end by themselves."""
        with self._guard:
            contacts = list(self._contacts.values())
            self._contacts.clear()
        deadline = time.monotonic() + GOODBYE_SECONDS
        for ending in [thread for contact in contacts for thread in contact.stop()]:
            ending.join(max(0.0, deadline - time.monotonic()))
