"""While a writer goes on, SQL nodes and copies of the tablespace come and leave, and lose their volumes; each copy has every acknowledged
row. The Service of the leader leads to whoever leads."""

from __future__ import annotations

import json

from conftest import Stack, say
from sql_steps import CHANGE, connection_of, each_copy_has_every_row, settled_on
from under_load import during

from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_e2e.writer_process import WriterProcess


def wiped(stack: Stack, node: str) -> None:
    """The volume of a node goes for good, and its pod at once with it."""
    uid = stack.sql.get("pod", node)["metadata"]["uid"]
    stack.kubectl.run("delete", "persistentvolumeclaim", f"data-{node}", "--wait=false")
    stack.kubectl.run("delete", "pod", node, "--grace-period=0", "--force")
    wait_for(f"another {node}", lambda: stack.sql.replaced(node, uid), CHANGE, say)


def test_a_third_node_gets_a_copy_and_takes_it_with_it_when_it_leaves(stack: Stack) -> None:
    two = [f"db-herddb-{number}" for number in range(2)]
    third = "db-herddb-2"
    settled_on(stack, two)
    writer = WriterProcess(stack.tools, "third_copy").acknowledges()

    with during("a third node and copy come", writer):
        stack.kubectl.want("herddbcluster", "db", replicas=3)
        stack.kubectl.want("tablespace", "flights", replicas=3)
        settled_on(stack, [*two, third])
    with during("the third leads", writer):
        stack.sql.switch_over(third)
    with during("the third, which leads, leaves", writer):
        stack.kubectl.want("tablespace", "flights", replicas=2)
        stack.kubectl.want("herddbcluster", "db", replicas=2)
        settled_on(stack, two)
    assert not [path for path in stack.tools.znodes() if third in path]
    each_copy_has_every_row(stack, writer)


def rows_outlive_the_volume_of(stack: Stack, role: str, node: str, then_leads: str) -> None:
    """A node that has this role loses its volume under a writer, and is made anew while `then_leads` leads."""
    nodes = sorted(stack.sql.replicas())
    writer = WriterProcess(stack.tools, f"wiped_{role}").acknowledges()
    with during(f"a {role} loses its volume", writer):
        wiped(stack, node)
        # not by an acknowledged row: a leader without a volume may have acknowledged until its process ended
        wait_for(f"{then_leads} to lead", lambda: stack.sql.leader() == then_leads or Pending("another one leads"), CHANGE)
        writer.acknowledges()
        settled_on(stack, nodes)
        assert stack.sql.leader() == then_leads
    each_copy_has_every_row(stack, writer)


def test_a_follower_that_lost_its_volume_is_made_anew(stack: Stack) -> None:
    rows_outlive_the_volume_of(stack, "follower", stack.sql.other(), then_leads=stack.sql.leader())


def test_a_leader_that_lost_its_volume_is_replaced_and_made_anew(stack: Stack) -> None:
    rows_outlive_the_volume_of(stack, "leader", stack.sql.leader(), then_leads=stack.sql.other())


def test_the_leader_s_service_leads_to_whoever_leads(stack: Stack) -> None:
    there = connection_of(stack)
    ask = ("query", "--host", there["host"], "--port", there["port"])
    stack.tools.run(*ask, "CREATE TABLE through_the_service (id int primary key)")
    for number in range(4):
        stack.tools.run(*ask, f"INSERT INTO through_the_service (id) VALUES ({number})")
        stack.sql.switch_over(stack.sql.other())
        leader = stack.sql.leader()

        def follows(leader: str = leader) -> bool | Pending:
            slices = stack.kubectl.list("endpointslices", f"kubernetes.io/service-name={there['host'].split('.')[0]}")
            led = [address["targetRef"]["name"] for each in slices for address in each["endpoints"] or ()]
            return True if led == [leader] else Pending(f"{led}, and {leader} leads")

        wait_for("the Service", follows, Limit(60, 0.2), say)
    (found,) = (
        json.loads(line)
        for line in stack.tools.run(*ask[:1], "--json", *ask[1:], "SELECT COUNT(*) AS n FROM through_the_service").splitlines()
    )
    assert found["n"] == 4
