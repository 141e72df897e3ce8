"""Under a writer: a preferred leader that was killed gets its leadership back where the resource says so, and nowhere else; a request for
another leader is met once, or refused with the reason. No acknowledged row is lost."""

from __future__ import annotations

from conftest import Stack, say
from leadership_steps import Record, led_by, moves, record_of, same_leadership
from sql_steps import CHANGE, answer_to, each_copy_has_every_row, settled_on
from under_load import during

from herdkeeper_e2e.sql_stack import TABLESPACE
from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_e2e.writer_process import WriterProcess

HEALTHY_SECONDS = 60
"""So long a record must have stood before a preferred node leads again (docs/how-to/who-leads.md)."""
MARGIN_SECONDS = 60
"""For the restart of the preferred node's process, its way to the end of the log, and the operator's next look."""
FAILED_OVER = Limit(60, 0.5)


def killed(stack: Stack, writer: WriterProcess, node: str, mark: str) -> Record:
    """The leader is killed at once; the record once the other one leads, writes go on, and the killed one follows."""
    nodes = sorted(stack.sql.replicas())
    (other,) = (each for each in nodes if each != node)
    with during(mark, writer):
        stack.sql.signal("KILL", node)
        found = led_by(stack, other, FAILED_OVER)
    settled_on(stack, nodes)
    return found


def unchanged(stack: Stack, since: Record, seconds: float) -> None:
    """Until the record has stood for so long. AssertionError when somebody changes it meanwhile."""

    def ask() -> bool | Pending:
        found = record_of(stack)
        assert same_leadership(since, found), moves(stack)
        return True if found.unchanged_seconds >= seconds else Pending("the record has not stood for long enough")

    wait_for(f"a record that has stood for {seconds:g} s", ask, Limit(seconds + 30, 5), say)


def leads_again(stack: Stack, writer: WriterProcess, preferred: str) -> Record:
    """The record once the preferred node has its leadership back, and writes there."""
    found = led_by(stack, preferred, Limit(HEALTHY_SECONDS + MARGIN_SECONDS))
    writer.acknowledges()
    assert f"since {preferred} is preferred and healthy" in moves(stack)[-1]
    settled_on(stack, sorted(stack.sql.replicas()))
    return found


def test_a_preferred_leader_that_was_killed_leads_again_with_failback_and_never_without(stack: Stack) -> None:
    settled_on(stack, sorted(stack.sql.replicas()))
    preferred = stack.sql.leader()
    writer = WriterProcess(stack.tools, "preferred").acknowledges()
    try:
        stack.kubectl.want("tablespace", TABLESPACE, preferredLeader=preferred, failback="Never")
        took_over = killed(stack, writer, preferred, "the preferred leader is killed, failback Never")
        unchanged(stack, took_over, HEALTHY_SECONDS + 10)

        writer.marked("failback WhenHealthy")
        stack.kubectl.want("tablespace", TABLESPACE, failback="WhenHealthy")
        back = leads_again(stack, writer, preferred)
        assert back.version == took_over.version + 1

        took_over = killed(stack, writer, preferred, "the preferred leader is killed, failback WhenHealthy")
        writer.marked("it is waited for the preferred leader")
        back = leads_again(stack, writer, preferred)
        assert back.version == took_over.version + 1
        assert back.changed_at - took_over.changed_at >= HEALTHY_SECONDS
        say(f"{preferred} leads again {back.changed_at - took_over.changed_at:.0f} s after it was replaced")
    finally:
        stack.kubectl.want("tablespace", TABLESPACE, preferredLeader=None, failback=None)
    each_copy_has_every_row(stack, writer)


def test_a_request_for_another_leader_is_met_once_or_refused_with_the_reason(stack: Stack) -> None:
    nodes = sorted(stack.sql.replicas())
    settled_on(stack, nodes)
    leader, other = stack.sql.leader(), stack.sql.other()
    writer = WriterProcess(stack.tools, "asked_for").acknowledges()
    before = record_of(stack)

    assert answer_to(stack, "switchover", leader) == f"done: {leader} already leads"
    stranger = answer_to(stack, "switchover", "db-herddb-7")
    assert stranger == f"refused: db-herddb-7 holds no replica; replicas are on {', '.join(nodes)}"
    try:
        stack.sql.signal("STOP", other)
        hung = answer_to(stack, "switchover", other)
    finally:
        stack.sql.resume(other)
    say(hung)
    assert hung.startswith(f"refused: {other} can't lead now: it does not answer")
    settled_on(stack, nodes)
    assert same_leadership(before, record_of(stack))
    writer.acknowledges()

    told = f"done: led by {other}, since {other} was requested"
    with during("a request that is met", writer):
        assert answer_to(stack, "switchover", other) == told
        met = led_by(stack, other, CHANGE)
        assert met.version == before.version + 1

    def tells() -> bool | Pending:
        status = stack.sql.get("tablespace", TABLESPACE)["status"]
        said = (status["leader"], status.get("lastSwitchover"))
        return True if said == (other, told) else Pending(f"the status says {said}")

    wait_for("the status", tells, CHANGE, say)
    settled_on(stack, nodes)
    assert same_leadership(met, record_of(stack)), "it is not done twice"
    each_copy_has_every_row(stack, writer)
