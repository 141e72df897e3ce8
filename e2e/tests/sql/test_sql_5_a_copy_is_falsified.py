"""A row on a follower's disk has another value than the log says. A Checkpoint finds it out; the copy does not lead, neither asked for nor
by itself; it is made anew with the evidence kept, and is found equal. Meanwhile a writer goes on, and loses nothing."""

from __future__ import annotations

import json

import pytest
from conftest import Stack, goes_in_the_end, say
from leadership_steps import operator_away, record_of, same_leadership
from runs import SMALL, claimed, own_volume
from sql_steps import CHANGE, answer_to, each_copy_has_every_row, settled_on
from under_load import during

from herdkeeper_e2e.conditions import message_of
from herdkeeper_e2e.kubectl import KubectlError, Object, resource
from herdkeeper_e2e.sql_stack import TABLESPACE
from herdkeeper_e2e.tools_pod import CHECKPOINTS, ToolsPod
from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_e2e.writer_process import WriterProcess

TABLE, WRITTEN, FALSE = "falsified", "as it was written", "as it was misread"
FILES = "falsified-files"
COMPARED = Limit(600, 1)
EVIDENCE = "/data/herddb/data/evidence"
ATTEMPTS = 3
"""So often the follower shall have tried to make itself the leader."""
TRIED = Limit(90, 1)
"""HerdDB waits for `maxLeaderInactivitySeconds` (10 by default), and looks each second."""


def said_by(stack: Stack, node: str) -> Object:
    """What a SQL node says of its copy."""
    found: Object = json.loads(stack.tools.run("sql_node", "--host", stack.sql.host_of(node)))
    return found


def written_to_disk(stack: Stack, node: str) -> None:
    """A follower that has applied the row writes its tables to its disk, as the operator orders it."""
    wait_for("the row", lambda: said_by(stack, node)["rows"].get(TABLE) == 1 or Pending(f"{node} has not applied it"), CHANGE, say)
    token = stack.kubectl.secret(stack.tools.database.credentials_secret)["token"]
    order = stack.tools.program("sql_node", "--host", stack.sql.host_of(node), "--order", "checkpoint")
    stack.kubectl.exec(stack.tools.name, *order, stdin=token.encode())


def restarts(stack: Stack, node: str) -> int:
    return sum(int(each["restartCount"]) for each in stack.sql.get("pod", node)["status"]["containerStatuses"])


def falsify(stack: Stack, node: str) -> None:
    """While its process stands still the row on its disk gets another value; then the process is killed, and another one reads that."""
    uuid, before = stack.sql.get("tablespace", TABLESPACE)["status"]["uuid"], restarts(stack, node)
    pod = ToolsPod(stack.kubectl, "falsifier", stack.tools.database, claim=f"data-{node}", machine=stack.sql.node_of(node))
    with pod.for_a_while() as beside:
        stack.sql.signal("STOP", node)
        try:
            say(beside.run("falsified_page", f"{CHECKPOINTS}/herddb/data/{uuid}.tablespace", WRITTEN, FALSE))
        finally:
            stack.sql.signal("KILL", node)

    def follows() -> bool | Pending:
        if restarts(stack, node) == before:
            return Pending(f"{node} has not started anew yet")
        try:
            said = said_by(stack, node)
        except KubectlError as error:
            return Pending(f"{node} does not answer yet: {error.said.strip()[-100:]}")
        return True if (said["role"], said["ready"]) == ("follower", True) else Pending(f"{node} is {said['role']}")

    wait_for(f"{node} to follow with what its disk has", follows, CHANGE, say)


def compared(stack: Stack, name: str) -> Object:
    """What a Checkpoint found out about the follower, once it has ended; it must not have failed for anything else."""
    spec = {"tablespaceRef": {"name": TABLESPACE}, "destination": claimed(FILES), "verify": "Follower", "job": SMALL}
    stack.kubectl.apply(resource("Checkpoint", name, {"scenario": TABLE}, **spec))

    def ended() -> Object | Pending:
        status: Object = stack.sql.get("checkpoint", name).get("status", {})
        return status if status.get("phase") in ("Succeeded", "Failed") else Pending(f"{name}: {status.get('message', 'no status yet')}")

    status = wait_for(f"the end of {name}", ended, COMPARED, say)
    say(f"{name}: {status['phase']}: {status.get('message')}")
    assert "comparison" in status, status
    return dict(status["comparison"])


def judgement_of(stack: Stack, node: str) -> tuple[str, tuple[str, ...]]:
    """The verdict on a node's copy in the Tablespace's status, and the tables that differ."""
    replicas = stack.sql.get("tablespace", TABLESPACE)["status"]["replicas"]
    (found,) = (each for each in replicas if each["node"] == node)
    return str(found["verdict"]), tuple(found.get("differentTables", ()))


def verified(stack: Stack, reason: str) -> None:
    """The condition ReplicasVerified has this reason."""
    wait_for(reason, lambda: message_of(stack.sql.get("tablespace", TABLESPACE), "ReplicasVerified", reason), CHANGE, say)


def mark_of(stack: Stack, node: str) -> str | None:
    """The Tablespace's annotation about a copy that was moved aside."""
    found: str | None = stack.sql.get("tablespace", TABLESPACE)["metadata"].get("annotations", {}).get(f"set-aside.herdkeeper.io/{node}")
    return found


def annotate(stack: Stack, mark: str) -> None:
    stack.kubectl.run("annotate", "tablespace", TABLESPACE, f"set-aside.herdkeeper.io/{mark}", "--overwrite")


def keeps_from_leading(stack: Stack, writer: WriterProcess, node: str, leader: str) -> None:
    """No operator runs and the leader hangs: HerdDB's own failover asks the node again and again, and it does not take over."""
    refusal = f"this node does not promote itself to leader of tablespace {TABLESPACE}: its replica is barred"
    before = record_of(stack)
    assert before.leader == leader

    def refused() -> bool | Pending:
        times = stack.kubectl.run("logs", node).count(refusal)
        return True if times >= ATTEMPTS else Pending(f"{node} has refused {times} of {ATTEMPTS} times")

    with operator_away(stack):
        writer.marked("the leader hangs, no operator runs, the follower is barred")
        stack.sql.signal("STOP", leader)
        try:
            wait_for(f"{node} to refuse", refused, TRIED, say)
            assert same_leadership(before, record_of(stack))
        finally:
            stack.sql.resume(leader)
        writer.acknowledges()
        assert same_leadership(before, record_of(stack))


def made_anew(stack: Stack, node: str) -> None:
    """Of a copy that a person has looked at: what it had is kept as evidence, with the false row, and the node gets another one."""
    uuid = str(stack.sql.get("tablespace", TABLESPACE)["status"]["uuid"])
    annotate(stack, f"{node}-")
    wait_for("the old copy to be moved aside", lambda: mark_of(stack, node) or Pending("it is still there"), CHANGE, say)
    settled_on(stack, sorted({node, stack.sql.leader()}))
    (evidence,) = stack.kubectl.exec(node, "ls", EVIDENCE).split()
    assert evidence.startswith(f"{uuid}."), evidence
    pages = stack.kubectl.exec(node, "grep", "-rlF", FALSE, f"{EVIDENCE}/{evidence}").split()
    say(f"evidence: {', '.join(pages)}")
    assert said_by(stack, node)["barred"] is False
    assert judgement_of(stack, node) == ("NotChecked", ())


def test_a_follower_with_a_false_row_is_found_out_kept_from_leading_and_made_anew(stack: Stack, request: pytest.FixtureRequest) -> None:
    nodes = sorted(stack.sql.replicas())
    settled_on(stack, nodes)
    leader, follower = stack.sql.leader(), stack.sql.other()
    own_volume(request, stack.kubectl, FILES)
    goes_in_the_end(request, stack.kubectl, "checkpoints", "-l", f"scenario={TABLE}")
    writer = WriterProcess(stack.tools, "beside_a_false_row").acknowledges()
    stack.tools.run(
        "query",
        f"CREATE TABLE {TABLE} (id int primary key, payload string)",
        f"INSERT INTO {TABLE} (id, payload) VALUES (1, '{WRITTEN}')",
    )
    # as if it had been made anew before: then it stays on the list, barred, until somebody has looked at it
    at = said_by(stack, leader)["applied"]
    annotate(stack, f"{follower}={at['ledgerId']},{at['entryId']}")
    writer.acknowledges()

    written_to_disk(stack, follower)
    falsify(stack, follower)
    writer.order("mark a Checkpoint finds the false row")
    found = compared(stack, "falsified-1")
    assert (found["node"], found["result"], found["differentTables"]) == (follower, "Different", [TABLE])
    verified(stack, "RebuiltInVain")
    assert judgement_of(stack, follower) == ("Different", (TABLE,))
    wait_for("the bar", lambda: said_by(stack, follower)["barred"] is True or Pending("it is not barred"), CHANGE, say)

    asked = answer_to(stack, "switchover", follower)
    say(asked)
    assert asked.startswith(f"refused: {follower} can't lead now: it had other rows than the log at LSN ")
    keeps_from_leading(stack, writer, follower, leader)

    with during("the copy is made anew", writer):
        made_anew(stack, follower)
    found = compared(stack, "falsified-2")
    assert (found["node"], found["result"]) == (follower, "Equal")
    verified(stack, "Verified")
    assert judgement_of(stack, follower) == ("Equal", ())
    wait_for("the mark", lambda: " verified" in str(mark_of(stack, follower)) or Pending(f"{mark_of(stack, follower)}"), CHANGE, say)

    settled_on(stack, nodes)
    each_copy_has_every_row(stack, writer)
    if stack.sql.leader() != follower:  # of two nodes, the last one in order leads by now
        stack.sql.switch_over(follower)
    assert [row["payload"] for row in stack.tools.query(f"SELECT payload FROM {TABLE}")] == [WRITTEN]
