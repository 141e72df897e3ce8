"""Compares the fold of the log with a follower's tables at the same LSN."""

from __future__ import annotations

from collections.abc import Mapping

from herdkeeper.domain.job_summary import FollowerComparison
from herdkeeper.formats.row_digest import RowDigest
from herdkeeper_jobs.checkpoint.errors import FollowerDiffers
from herdkeeper_jobs.checkpoint.node_http import FollowerDigest


def compare(ours: Mapping[str, RowDigest], follower: FollowerDigest, tablespace_uuid: str) -> FollowerComparison:
    """The follower is equal: the same tables, each with the same rows. `ours` are the fold's tables. Raises FollowerDiffers."""
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
