"""Compares a fold with a follower and with the leader, and says what that proves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

import structlog

from herdkeeper.protocol.job_summary import FollowerComparison
from herdkeeper_jobs.checkpoint.folded_log import Folded
from herdkeeper_jobs.checkpoint.follower_base import FollowerBase
from herdkeeper_jobs.checkpoint.follower_comparison import compare, require_rows_of_leader
from herdkeeper_jobs.checkpoint.node_http import LeaderCounts, NotCounted
from herdkeeper_jobs.checkpoint.target import Target
from herdkeeper_jobs.errors import FollowerDiffers, InvariantViolated
from herdkeeper_jobs.manifests.manifest import Position, Verification
from herdkeeper_jobs.wal.lsn import Lsn

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Proof:
    """`comparison`: with a follower; None without one, and where it says nothing of the log."""

    verified: Verification
    comparison: FollowerComparison | None


def prove(folded: Folded, target: Target, tablespace_uuid: str) -> Proof:
    """Compares the fold with the target's follower and leader. Raises FollowerDiffers, LeaderDiffers, InvariantViolated."""
    comparison = _compared(folded, target, tablespace_uuid)
    verified = _verification(comparison, folded).model_copy(update={"leader": _leader_compared(folded, target)})
    _log.info("verified", how=verified.how, by=verified.by, leader=verified.leader)
    # Agreeing followers prove each other. Whether they agree with the log was not checked.
    says_nothing = isinstance(folded.base, FollowerBase) or verified.how == "Self"
    return Proof(verified, None if says_nothing else comparison)


def _compared(folded: Folded, target: Target, tablespace_uuid: str) -> FollowerComparison | None:
    if target.follower is None:
        return None
    try:
        return compare(folded.compared, target.follower, tablespace_uuid)
    except FollowerDiffers as error:
        unproven = folded.unproven_follower
        if unproven is None:
            raise
        # The same node may have another copy by now, which was made anew from the leader.
        raise InvariantViolated(
            f"{error}. The fold begins with the tables that the follower {unproven} had, and nothing else proves them: it is unknown which "
            "of the two is wrong, so nothing was committed. Request a full check of the tablespace, and copy its tables into another"
        ) from error


def _leader_compared(folded: Folded, target: Target) -> str | None:
    """Returns the leader that has as many rows; None if it can't be compared. Raises LeaderDiffers."""
    match target.leader:
        case NotCounted(reason):
            _log.info("not compared with the leader", reason=reason)
            return None
        case LeaderCounts() if target.follower is None and folded.cut.lsn != target.read_to:
            return None  # the fold ends at the requested moment
        case LeaderCounts():
            require_rows_of_leader(folded.compared, target.leader)
            return target.leader.node
        case _:
            assert_never(target.leader)


def _verification(comparison: FollowerComparison | None, folded: Folded) -> Verification:
    reread = Verification(how="Reread", by="the checkpoint job")
    if comparison is None:
        return reread
    if comparison.follower == folded.unproven_follower:
        return Verification(how="Self", by=comparison.follower)
    at = Lsn(comparison.ledger_id, comparison.entry_id)
    if at == folded.cut.lsn:
        return Verification(how="Follower", by=comparison.follower)
    if folded.unproven_follower is not None:
        return reread  # a wrong row of the chain's follower may have been overwritten before `at`
    return Verification(how="Beyond", by=comparison.follower, at=Position.of(at))
