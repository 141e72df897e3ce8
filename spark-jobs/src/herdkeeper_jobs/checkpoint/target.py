"""Chooses the LSN of a checkpoint, and has a follower digested there when it shall be compared.

"Now" is the leader's log position at the request, when a node can be asked for it, else the last entry that bookies know to be confirmed.
A LAC becomes known with the entry after it, so that position is waited for; the idle NOOP brings it at the latest.

A follower can be held only at an LSN that it hasn't passed. It applies up to the LAC only, so on a quiet log it stands exactly there; on a
busy one the request may come too late, and then it is repeated some entries ahead of where the follower was.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from herdkeeper_jobs.checkpoint.errors import CheckpointRefused, CheckpointRetryable
from herdkeeper_jobs.checkpoint.log_source import LogSource
from herdkeeper_jobs.checkpoint.node_http import FollowerDigest, NotHeld, follower_digest, log_position
from herdkeeper_jobs.wal.lsn import Lsn

_LEADS = (0, 0, 20, 200, 2000)
"""How many entries ahead of the follower each attempt asks; those that are never reached end with the timeout."""
_HOLD_SECONDS = 60
_CONFIRM_SECONDS = 60.0
_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class TargetRequest:
    """What was asked for. `lsn` None means now; addresses are `host:port` of the node program's HTTP, empty for none."""

    lsn: Lsn | None = None
    leader_http: str = ""
    verify_against: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """The LSN, confirmed, and the follower's tables there if one was asked."""

    lsn: Lsn
    follower: FollowerDigest | None = None


def choose_target(log: LogSource, request: TargetRequest) -> Target:
    """The LSN to checkpoint.

    Raises:
        CheckpointRefused: the follower has passed the LSN that was asked for.
        CheckpointRetryable: no LSN is confirmed, or the follower could not be held, in time.
    """
    name = log.tablespace.name
    if request.lsn is not None:
        lsn = request.lsn
    elif request.leader_http:
        lsn = log_position(request.leader_http, name)
        if lsn.entry_id < 0:  # a new leader that has not written yet: everything is in the ledgers before its own
            lsn = log.confirmed_end()
    else:
        lsn = log.confirmed_end()
    follower = _digest(name, request, lsn) if request.verify_against else None
    if follower is not None:
        lsn = follower.lsn
    _wait_until_confirmed(log, lsn)
    return Target(lsn, follower)


def _digest(tablespace: str, request: TargetRequest, lsn: Lsn) -> FollowerDigest:
    reason = ""
    for lead in _LEADS:
        ahead = Lsn(lsn.ledger_id, lsn.entry_id + (lead if request.lsn is None else 0))
        answer = follower_digest(request.verify_against, tablespace, ahead, _HOLD_SECONDS)
        if isinstance(answer, FollowerDigest):
            return answer
        reason = answer.reason
        if not _passed(answer, ahead):
            raise CheckpointRetryable(f"the follower was not held at {ahead}: {reason}")
        if request.lsn is not None:
            raise CheckpointRefused(f"--to is {lsn}: {reason}; take a later LSN, or don't verify against a follower")
        assert answer.position is not None
        lsn = answer.position
    raise CheckpointRetryable(f"the follower passed every LSN before it could be held there: {reason}")


def _passed(answer: NotHeld, lsn: Lsn) -> bool:
    return answer.position is not None and answer.position > lsn


def _wait_until_confirmed(log: LogSource, lsn: Lsn) -> None:
    deadline = time.monotonic() + _CONFIRM_SECONDS
    while (end := log.confirmed_end()) < lsn:
        if time.monotonic() > deadline:
            raise CheckpointRetryable(f"LSN {lsn} was not confirmed within {_CONFIRM_SECONDS:g} s: the log is confirmed up to {end}")
        time.sleep(_POLL_SECONDS)
