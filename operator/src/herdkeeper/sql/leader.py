"""Connects to the leader of a tablespace, again and again until a deadline.

Whoever is asked, the node itself decides whether it leads (it first fences and replays the log), so a connection counts only after the
node said that it does.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from herdkeeper.sql.connection import Address, Connection, Credentials
from herdkeeper.sql.errors import ConnectionLost, LeaderNotFound, NotLeader

RETRY_PAUSE_SECONDS = 0.1
"""Between two attempts. A planned hand-over takes about 0.2 s, so a longer pause would be the longest part of it."""


class Finder(Protocol):
    """Tells who leads a tablespace."""

    def leader(self, tablespace: str) -> Address:
        """Where to connect to. Raises LeaderNotFound."""


@dataclass(frozen=True)
class OneServer:
    """A server that is alone, and so leads all that it has."""

    address: Address

    def leader(self, tablespace: str) -> Address:  # noqa: ARG002 - it has all of them
        """Its address."""
        return self.address


class Candidates:
    """Some servers, one of which may lead: each attempt asks the next of them. Also one address that moves to whoever leads."""

    def __init__(self, addresses: Sequence[Address]) -> None:
        self._addresses = itertools.cycle(addresses)

    def leader(self, tablespace: str) -> Address:  # noqa: ARG002 - nobody knows before it is asked
        """The next one."""
        return next(self._addresses)


@dataclass(frozen=True)
class Patience:
    """How long to go on trying, how long one call may take, how long to wait between two attempts at most, and how long one attempt may
    take (None: as long as a call), in seconds.

    Pauses grow up to the longest one, and differ at random, so that many clients do not come back at once.
    """

    deadline_seconds: float = 60.0
    call_seconds: float = 10.0
    longest_pause_seconds: float = RETRY_PAUSE_SECONDS
    attempt_seconds: float | None = None

    def pauses(self) -> Iterator[float]:
        """How long to wait after each attempt, without an end."""
        ceiling = RETRY_PAUSE_SECONDS
        while True:
            yield max(RETRY_PAUSE_SECONDS, ceiling * random.uniform(0.5, 1.0))  # noqa: S311 - no secret
            ceiling = min(2 * ceiling, self.longest_pause_seconds)


def leader_connection(finder: Finder, tablespace: str, credentials: Credentials, patience: Patience) -> Connection:
    """A connection to the node that leads the tablespace now.

    Looks the leader up afresh in every attempt, so it follows a failover. What it retries: a lookup that fails, a node that is
    not there, a node that does not lead (yet). A refused password is not retried.

    Raises:
        LeaderNotFound: not before the deadline; names the last attempt's error.
        AuthenticationFailed: the leader refused the credentials.
    """
    deadline = time.monotonic() + patience.deadline_seconds
    attempt_seconds = patience.call_seconds if patience.attempt_seconds is None else patience.attempt_seconds
    for pause in patience.pauses():
        try:
            connection = _connect_once(finder, tablespace, credentials, min(attempt_seconds, max(deadline - time.monotonic(), 0.1)))
            connection.timeout_seconds = patience.call_seconds
            return connection
        except (ConnectionLost, NotLeader, LeaderNotFound) as error:
            if time.monotonic() + pause >= deadline:
                reason = str(error) or type(error).__name__
                message = f"no leader of the tablespace {tablespace!r} within {patience.deadline_seconds:.3g} s; last attempt: {reason}"
                raise LeaderNotFound(message) from error
        time.sleep(pause)
    raise AssertionError("pauses have no end")


def _connect_once(finder: Finder, tablespace: str, credentials: Credentials, call_seconds: float) -> Connection:
    connection = Connection.connect(finder.leader(tablespace), credentials, tablespace, timeout_seconds=call_seconds)
    try:
        connection.require_leader()
    except BaseException:
        connection.close()
        raise
    return connection
