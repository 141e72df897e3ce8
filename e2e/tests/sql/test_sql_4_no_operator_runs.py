"""While no operator runs, HerdDB replaces a leader that hangs by itself; the operator that returns leaves the new one in peace, and under a
writer no acknowledged row is lost."""

from __future__ import annotations

from conftest import Stack, say
from leadership_steps import led_by, operator_away, record_of, same_leadership
from sql_steps import each_copy_has_every_row, settled_on
from under_load import during

from herdkeeper_e2e.sql_stack import TABLESPACE
from herdkeeper_e2e.waiting import Limit
from herdkeeper_e2e.writer_process import WriterProcess

MARGIN_SECONDS = 60
"""For HerdDB's look at heartbeats, the boot of the next leader, and the writer's way to it, on two busy processors."""


def patience_of_herddb(stack: Stack) -> int:
    """After so many seconds without a heartbeat a follower takes over by itself."""
    return int(stack.sql.get("tablespace", TABLESPACE)["spec"]["failover"]["maxLeaderInactivitySeconds"])


def test_herddb_replaces_a_hung_leader_without_an_operator_and_the_operator_that_returns_changes_nothing(stack: Stack) -> None:
    nodes = sorted(stack.sql.replicas())
    settled_on(stack, nodes)
    leader, other = stack.sql.leader(), stack.sql.other()
    longest = patience_of_herddb(stack) + MARGIN_SECONDS
    writer = WriterProcess(stack.tools, "no_operator").acknowledges()

    before = record_of(stack)
    try:
        with operator_away(stack):
            with during("the leader hangs, no operator runs", writer):
                stack.sql.signal("STOP", leader)
                taken = led_by(stack, other, Limit(longest))
            assert taken.version == before.version + 1, "one change of the record, by the follower"
        writer.order("mark the operator is back, the old leader hangs")
        writer.acknowledges()
        assert same_leadership(taken, record_of(stack))
    finally:
        stack.sql.resume(leader)
    with during("the old leader goes on", writer):
        writer.acknowledges()
        settled_on(stack, nodes)
    assert same_leadership(taken, record_of(stack)), "there was no reason for another leader"
    assert stack.sql.leader() == other

    each_copy_has_every_row(stack, writer)
    without_leader = float(writer.read()["gaps"][0]["seconds"])
    say(f"{without_leader:.1f} s without a leader, of {longest} s at most")
    assert without_leader <= longest
