"""Chooses up to where a log is read for a checkpoint, and has a follower digested there when it shall be compared.

"Now" is the leader's log position at the request, when a node can be asked for it, else the last entry that bookies know to be confirmed.
A LAC becomes known with the entry after it, so that position is waited for; the idle NOOP brings it at the latest.

A follower can be held only at an LSN that it hasn't passed. It applies up to the LAC only, so on a quiet log it stands exactly there; on a
busy one the request may come too late, and then it is repeated some entries ahead of where the follower was. So no follower can be held at
a moment of the past: the log is read on to where one was held, and the same entries, folded to there, are compared with it.
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
    NotHeld,
    follower_digest,
    leader_counts,
    log_position,
)
from herdkeeper_jobs.errors import CheckpointRefused, CheckpointRetryable, NotConfirmedYet
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.moment import Time, stamp

_LEADS = (0, 0, 1, 20, 200, 2000)
"""How many entries ahead of the follower each attempt asks. A quiet log has an entry each ten seconds: its NOOP may come twice while a slow
request is under way, and then it reaches one entry ahead within the timeout, and not twenty."""
_HOLD_SECONDS = 60
_CONFIRM_SECONDS = 60.0
_POLL_SECONDS = 0.2
_COUNT_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class TargetRequest:
    """What was asked for. `at` None means now; addresses are `host:port` of the node program's HTTP, empty for none."""

    at: Lsn | Time | None = None
    leader_http: str = ""
    verify_against: str = ""
    token: str = field(default="", repr=False)
    """What a node asks for before it is held."""
    not_before: Lsn | None = None
    """Now is not before this, which is confirmed: whoever is asked this time may know of less."""


_NO_LEADER = NotCounted("no leader was named")


@dataclass(frozen=True, slots=True)
class Target:
    """The moment; up to where the log is read, which is confirmed and not before an `at` that is an LSN; and the follower's tables at
    `read_to`, if one was asked."""

    at: Lsn | Time
    read_to: Lsn
    follower: FollowerDigest | None = None
    leader: LeaderCounts | NotCounted = _NO_LEADER
    """What the leader had when nothing but NOOPs lay between its position and `read_to`."""


def choose_target(log: WholeLog, request: TargetRequest) -> Target:
    """The moment to checkpoint, and up to where to read.

    Raises:
        CheckpointRefused: the log does not have the LSN, the time has not come yet, or the follower does not take the token.
        CheckpointRetryable: no LSN is confirmed, or the follower could not be held, in time.
    """
    match request.at:
        case None:
            end = _now(log, request.leader_http)
            if request.not_before is not None:
                end = max(end, request.not_before)
        case Lsn():
            _require_confirmed(log, request.at)
            # Whoever is asked this time may know of less than who confirmed it.
            end = max(log.confirmed_end(), request.at) if request.verify_against else request.at
        case Time():
            if request.at.millis > (now := int(time.time() * 1000)):
                raise CheckpointRefused(
                    f"spec.target.timestamp (--to) is {request.at.text}: it is {stamp(now)} only; take a time that has passed, or none "
                    "for now"
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
    """Asked when `end` is confirmed: a leader that stands at an entry up to there has written nothing since."""
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
    # the position of a new leader that has not written yet is before its first entry: everything is in the ledgers before its own
    return log.confirmed_end() if lsn is None or lsn.entry_id < 0 else lsn


def _digest(tablespace: str, request: TargetRequest, lsn: Lsn) -> FollowerDigest:
    reason = ""
    for lead in _LEADS:
        ahead = Lsn(lsn.ledger_id, lsn.entry_id + lead)
        answer = follower_digest(request.verify_against, tablespace, ahead, request.token, _HOLD_SECONDS)
        if isinstance(answer, FollowerDigest):
            return answer
        reason = answer.reason
        if not _passed(answer, ahead):
            raise CheckpointRetryable(f"the follower was not held at {ahead}: {reason}")
        assert answer.position is not None
        lsn = answer.position
    raise CheckpointRetryable(f"the follower passed every LSN before it could be held there: {reason}")


def _passed(answer: NotHeld, lsn: Lsn) -> bool:
    return answer.position is not None and answer.position > lsn


def _require_confirmed(log: WholeLog, lsn: Lsn) -> None:
    """That the log has an LSN that a user named. What is written is confirmed soon, so one that isn't does not exist."""
    deadline = time.monotonic() + _CONFIRM_SECONDS
    while True:
        try:
            log.parts_up_to(lsn, lsn)
            return
        except NotConfirmedYet as error:
            if time.monotonic() > deadline:
                raise CheckpointRefused(f"{error}; take an LSN up to there, or none for now") from error
        time.sleep(_POLL_SECONDS)


def _wait_until_confirmed(log: WholeLog, lsn: Lsn) -> None:
    deadline = time.monotonic() + _CONFIRM_SECONDS
    while (end := log.confirmed_end()) < lsn:
        if time.monotonic() > deadline:
            raise CheckpointRetryable(f"LSN {lsn} was not confirmed within {_CONFIRM_SECONDS:g} s: the log is confirmed up to {end}")
        time.sleep(_POLL_SECONDS)
