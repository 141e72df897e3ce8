"""Connects to the leader of a tablespace, with retries until a deadline.

Whatever a lookup says, the node itself decides whether it leads (it first fences and replays the log). So a connection counts only after
the node confirms it.
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
"""Between two attempts. A planned hand-over takes about 0.2 s, so a longer pause would dominate."""


class Finder(Protocol):
    """Looks up the leader of a tablespace."""

    def leader(self, tablespace: str) -> Address:
        """Returns where to connect. Raises LeaderNotFound."""


class Candidates:
    """Several servers, one of which may lead: each attempt uses the next one. Also a single address, which may move to the leader."""

    def __init__(self, addresses: Sequence[Address]) -> None:
        self._addresses = itertools.cycle(addresses)

    def leader(self, tablespace: str) -> Address:  # noqa: ARG002 - nobody knows before it is asked
        """Returns the next one."""
        return next(self._addresses)


@dataclass(frozen=True)
class Patience:
    """How long to retry, the limit of one call, the longest pause between attempts, and the limit of one attempt (None: as for a call), in
    seconds.

    Pauses grow up to the longest one, with jitter, so that many clients do not return at once.
    """

    deadline_seconds: float = 60.0
    call_seconds: float = 10.0
    longest_pause_seconds: float = RETRY_PAUSE_SECONDS
    attempt_seconds: float | None = None

    def pauses(self) -> Iterator[float]:
        """Yields the pauses after each attempt, without end."""
        ceiling = RETRY_PAUSE_SECONDS
        while True:
            yield max(RETRY_PAUSE_SECONDS, ceiling * random.uniform(0.5, 1.0))  # noqa: S311 - no secret
            ceiling = min(2 * ceiling, self.longest_pause_seconds)


def leader_connection(finder: Finder, tablespace: str, credentials: Credentials, patience: Patience) -> Connection:
    """Returns a connection to the current leader of the tablespace.

    Each attempt looks the leader up again, so it follows a failover. It retries a failed lookup, a missing node, and a node that does not
    lead (yet), but not a refused password.

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
