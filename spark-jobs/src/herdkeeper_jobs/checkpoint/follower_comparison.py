"""Compares the fold of the log with a follower's tables at the same LSN."""

from __future__ import annotations

from collections.abc import Mapping

from herdkeeper.codecs.herddb.row_digest import RowDigest
from herdkeeper.protocol.job_summary import FollowerComparison
from herdkeeper_jobs.checkpoint.node_http import FollowerDigest, LeaderCounts
from herdkeeper_jobs.errors import FollowerDiffers, LeaderDiffers

_SHOWN = 5


def compare(ours: Mapping[str, RowDigest], follower: FollowerDigest, tablespace_uuid: str) -> FollowerComparison:
    """Checks that the follower has the same tables with the same rows as the fold (`ours`). Raises FollowerDiffers."""
    different = tuple(table for table in sorted(ours.keys() | follower.tables.keys()) if ours.get(table) != follower.tables.get(table))
    found = FollowerComparison(
        follower=follower.node,
        tablespace_uuid=tablespace_uuid,
        ledger_id=follower.lsn.ledger_id,
        entry_id=follower.lsn.entry_id,
        different_tables=different,
        different_tables_total=len(different),
    )
    if different:
        first = different[0]
        more = f"; {len(different) - 1} more tables differ" if len(different) > 1 else ""
        mine, theirs = _describe(ours.get(first)), _describe(follower.tables.get(first))
        raise FollowerDiffers(
            f"table {first!r} at {follower.lsn}: the fold of the log has {mine}, the follower {follower.node} has {theirs}{more}", found
        )
    return found


def _describe(digest: RowDigest | None) -> str:
    return "no such table" if digest is None else f"{digest.rows} rows with digest {digest.hex}"


def require_rows_of_leader(ours: Mapping[str, RowDigest], leader: LeaderCounts) -> None:
    """Checks that the leader has as many rows of each table as the fold (`ours`). Raises LeaderDiffers, naming the tables.

    A table missing on one side counts as empty: the leader also lists uncommitted tables.
    """
    here = {table: digest.rows for table, digest in ours.items()}
    names = sorted(here.keys() | leader.tables.keys())
    different = [name for name in names if here.get(name, 0) != leader.tables.get(name, 0)]
    if different:
        shown = ", ".join(f"{name!r} ({here.get(name, 0)} rows, {leader.tables.get(name, 0)} at the leader)" for name in different[:_SHOWN])
        more = f" and {len(different) - _SHOWN} more" if len(different) > _SHOWN else ""
        raise LeaderDiffers(
            f"the fold of the log, and so each follower, has other rows than the leader {leader.node} at {leader.lsn}: {shown}{more}. A "
            "change of leader would lose them: copy these tables out of the leader first, and request a full check of the tablespace"
        )
