"""Chooses how far the log is read for a checkpoint, and has a follower digested there if asked.

"Now" is the leader's current log position if a leader is named, else the last confirmed entry. A LAC becomes known with the next entry, so
the job waits for it; the idle NOOP brings it at the latest.

A follower can only be held at an LSN that it hasn't passed. It applies up to the LAC, so on a quiet log it waits exactly there. On a busy
log the request may come too late, and is repeated some entries ahead. For a past moment no follower can be held. Then the log is read on to
where one was held, and compared with it there.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import assert_never

from herdkeeper_jobs.archive.parts import WholeLog
from herdkeeper_jobs.checkpoint.node_http import (
    FollowerDigest,
    LeaderCounts,
    NotCounted,
    follower_digest,
    leader_counts,
    log_position,
)
from herdkeeper_jobs.errors import CheckpointRefused, CheckpointRetryable, NotConfirmedYet
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.moment import Time, stamp

_AHEAD_BY_ATTEMPT = (0, 0, 1, 20, 200, 2000)
"""By attempt, how many entries ahead of the follower to ask. A quiet log has one entry each ten seconds, its NOOP. During a slow request it
may get two; then one entry ahead is reached within the timeout, and twenty are not."""
_HOLD_SECONDS = 60
_CONFIRM_SECONDS = 60.0
_POLL_SECONDS = 0.2
_COUNT_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class TargetRequest:
    """What was asked for. `at` None means now; addresses are `host:port` of node programs' HTTP ports, empty for none."""

    at: Lsn | Time | None = None
    leader_http: str = ""
    verify_against: str = ""
    token: str = field(default="", repr=False)
    """The token that a node demands before it is held."""
    not_before: Lsn | None = None
    """A confirmed lower bound of now: other bookies may know a lower LAC."""


_NO_LEADER = NotCounted("no leader was named")


@dataclass(frozen=True, slots=True)
class Target:
    """The moment, the end of the read, and the tables of the follower at `read_to`, if one was asked. `read_to` is confirmed, and not
    before an LSN in `at`."""

    at: Lsn | Time
    read_to: Lsn
    follower: FollowerDigest | None = None
    leader: LeaderCounts | NotCounted = _NO_LEADER
    """The leader's row counts, if only NOOPs were between its position and `read_to`."""


def choose_target(log: WholeLog, request: TargetRequest) -> Target:
    """Chooses the moment of a checkpoint, and how far to read.

    Raises:
        CheckpointRefused: the log lacks the LSN, the time is in the future, or the follower rejects the token.
        CheckpointRetryable: no LSN was confirmed, or the follower was not held, in time.
    """
    match request.at:
        case None:
            end = _now(log, request.leader_http)
            if request.not_before is not None:
                end = max(end, request.not_before)
        case Lsn():
            _require_confirmed(log, request.at)
            # Other bookies may answer this time, and know a lower LAC.
            end = max(log.confirmed_end(), request.at) if request.verify_against else request.at
        case Time():
            if request.at.millis > (now := int(time.time() * 1000)):
                raise CheckpointRefused(
                    f"spec.target.timestamp (--to) is {request.at.text}: it is {stamp(now)} now; choose a past time, or none for now"
                )
            end = log.confirmed_end()
        case _:
            assert_never(request.at)
    follower = _digest(log.name, request, end) if request.verify_against else None
    if follower is not None:
        end = follower.lsn
    _wait_until_confirmed(log, end)
    return Target(end if request.at is None else request.at, end, follower, _leader_at(request.leader_http, log.name, end))


def _leader_at(address: str, tablespace: str, end: Lsn) -> LeaderCounts | NotCounted:
    """Asks the leader once `end` is confirmed: a leader at or before `end` has written nothing since."""
    if not address:
        return _NO_LEADER
    found: LeaderCounts | NotCounted = _NO_LEADER
    for _ in range(_COUNT_ATTEMPTS):
        try:
            found = leader_counts(address, tablespace)
        except CheckpointRetryable as error:
            return NotCounted(str(error))
        if isinstance(found, LeaderCounts):
            return found if found.lsn <= end else NotCounted(f"the leader {address} was at {found.lsn} by then")
    return found


def _now(log: WholeLog, leader_http: str) -> Lsn:
    lsn = log_position(leader_http, log.name) if leader_http else None
    # a new leader that has not written yet is before its first entry: all entries are in older ledgers
    return log.confirmed_end() if lsn is None or lsn.entry_id < 0 else lsn


def _digest(tablespace: str, request: TargetRequest, lsn: Lsn) -> FollowerDigest:
    reason = ""
    for lead in _AHEAD_BY_ATTEMPT:
        ahead = Lsn(lsn.ledger_id, lsn.entry_id + lead)
        answer = follower_digest(request.verify_against, tablespace, ahead, request.token, _HOLD_SECONDS)
        if isinstance(answer, FollowerDigest):
            return answer
        reason = answer.reason
        if answer.position is None or answer.position <= ahead:
            raise CheckpointRetryable(f"the follower was not held at {ahead}: {reason}")
        lsn = answer.position
    raise CheckpointRetryable(f"the follower was past every LSN before it could be held there: {reason}")


def _require_confirmed(log: WholeLog, lsn: Lsn) -> None:
    """Waits until the log has an LSN that a user named. Entries are confirmed soon, so an unconfirmed one does not exist. Raises
    CheckpointRefused."""
    deadline = time.monotonic() + _CONFIRM_SECONDS
    while True:
        try:
            log.parts_up_to(lsn, lsn)
            return
        except NotConfirmedYet as error:
            if time.monotonic() > deadline:
                raise CheckpointRefused(f"{error}; choose an LSN up to there, or none for the current state") from error
        time.sleep(_POLL_SECONDS)


def _wait_until_confirmed(log: WholeLog, lsn: Lsn) -> None:
    deadline = time.monotonic() + _CONFIRM_SECONDS
    while (end := log.confirmed_end()) < lsn:
        if time.monotonic() > deadline:
            raise CheckpointRetryable(f"LSN {lsn} was not confirmed within {_CONFIRM_SECONDS:g} s: the log is confirmed up to {end}")
        time.sleep(_POLL_SECONDS)
