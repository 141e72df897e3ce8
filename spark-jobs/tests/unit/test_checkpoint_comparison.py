"""The fold of the log compared with a follower's tables: equal, or which tables differ."""

from __future__ import annotations

import pytest

from herdkeeper.codecs.herddb.row_digest import RowDigest
from herdkeeper.protocol.job_summary import FollowerComparison
from herdkeeper_jobs.checkpoint.follower_comparison import compare, require_rows_of_leader
from herdkeeper_jobs.checkpoint.node_http import FollowerDigest, LeaderCounts
from herdkeeper_jobs.errors import FollowerDiffers, InvariantViolated
from herdkeeper_jobs.wal.lsn import Lsn

OURS = {"airports": RowDigest(3, 0xAB), "flights": RowDigest(7, 0xCD)}
NODE = "db-herddb-1.nodes:9845"


def follower(**tables: RowDigest) -> FollowerDigest:
    return FollowerDigest(Lsn(4, 99), tables, NODE)


def test_a_follower_with_the_same_rows_is_equal() -> None:
    assert compare(OURS, follower(**OURS), "a-uuid") == FollowerComparison(NODE, "a-uuid", 4, 99)


def test_a_tablespace_without_tables_is_compared_as_well() -> None:
    assert compare({}, follower(), "a-uuid").different_tables == ()


@pytest.mark.parametrize(
    ("theirs", "tables", "sentence"),
    [
        (
            {**OURS, "flights": RowDigest(7, 0xCE)},
            ("flights",),
            "table 'flights' at 4,99: the fold of the log has 7 rows with digest 000000000000000000000000000000cd, "
            "the follower db-herddb-1.nodes:9845 has 7 rows with digest 000000000000000000000000000000ce",
        ),
        ({"airports": OURS["airports"]}, ("flights",), "has no such table"),
        ({**OURS, "gone": RowDigest(0, 0)}, ("gone",), "the fold of the log has no such table"),
        ({}, ("airports", "flights"), "has no such table; 1 more tables differ"),
    ],
    ids=["other rows", "a table that is missing", "a table too many", "several"],
)
def test_a_follower_that_differs_is_named_with_its_tables(theirs: dict[str, RowDigest], tables: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(FollowerDiffers) as raised:
        compare(OURS, follower(**theirs), "a-uuid")
    assert raised.value.comparison == FollowerComparison(NODE, "a-uuid", 4, 99, tables, len(tables))
    assert sentence in str(raised.value)


def test_a_leader_with_as_many_rows_is_equal_and_uncommitted_tables_count_as_empty() -> None:
    require_rows_of_leader(OURS, LeaderCounts(NODE, Lsn(4, 99), {"airports": 3, "flights": 7, "not_committed": 0}))


def test_a_leader_with_other_rows_is_a_violation_that_names_the_tables() -> None:
    """As after a TRUNCATE that the leader refused and every follower applied."""
    with pytest.raises(InvariantViolated, match=r"'airports' \(3 rows, 11 at the leader\), 'flights' \(7 rows, 0 at the leader\)\. A"):
        require_rows_of_leader(OURS, LeaderCounts(NODE, Lsn(4, 99), {"airports": 11}))
