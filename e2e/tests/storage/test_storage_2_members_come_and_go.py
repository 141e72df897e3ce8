"""While a writer goes on, ZooKeeper grows from three members to five and shrinks to three again, its members are restarted, and the
operator dies meanwhile; nothing is lost."""

from __future__ import annotations

import json
import time

from conftest import Stack, say
from operator_death import kill_the_operator
from proof import lost_nothing

from herdkeeper_e2e.conditions import condition
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.waiting import Limit, Pending, wait_for
from herdkeeper_e2e.writer_process import WriterProcess

CHANGE = Limit(900, 1)
ROWS = 50


def ensemble(stack: Stack) -> Object:
    found = stack.kubectl.get("zookeepercluster", "zk")
    assert found is not None
    return found


def want(stack: Stack, **spec: object) -> None:
    stack.kubectl.run("patch", "zookeepercluster", "zk", "--type", "merge", "-p", json.dumps({"spec": spec}))


def waits_for(stack: Stack, reason: str) -> None:
    """Until the operator says that this is what it does, or waits for."""

    def ask() -> bool | Pending:
        progressing = condition(ensemble(stack), "Progressing")
        return True if progressing is not None and progressing["reason"] == reason else Pending(str(progressing))

    wait_for(reason, ask, Limit(CHANGE.seconds, 0.3), say)


def settled_on(stack: Stack, members: int) -> None:
    """Until so many members vote and serve, and nothing is left to do."""

    def ask() -> bool | Pending:
        found = ensemble(stack)
        progressing = condition(found, "Progressing")
        seen = found["status"].get("observedGeneration") == found["metadata"]["generation"]
        if seen and found["status"].get("voters") == members and progressing is not None and progressing["reason"] == "Settled":
            return True
        return Pending(f"{found['status'].get('voters')} voters; {progressing and progressing['message']}")

    wait_for(f"{members} members", ask, CHANGE, say)


def pods(stack: Stack) -> dict[str, str]:
    found = stack.kubectl.list("pods", "app.kubernetes.io/name=zookeeper")
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in found}


def marks(stack: Stack) -> list[str]:
    claims = stack.kubectl.list("persistentvolumeclaims", "app.kubernetes.io/name=zookeeper")
    return [
        claim["metadata"]["annotations"]["herdkeeper.io/founded"] for claim in sorted(claims, key=lambda each: each["metadata"]["name"])
    ]


def test_zookeeper_grows_to_five_and_shrinks_to_three_under_load(stack: Stack) -> None:
    address = ensemble(stack)["status"]["address"]
    writer = WriterProcess(stack.tools, "members_under_load")
    writer.acknowledges(ROWS)

    began = time.monotonic()
    writer.order("mark three members become five")
    want(stack, replicas=5)
    waits_for(stack, "Joining")
    kill_the_operator(stack)
    settled_on(stack, 5)
    say(f"three became five in {time.monotonic() - began:.0f} s")
    assert len(pods(stack)) == 5
    writer.acknowledges(ROWS)

    began = time.monotonic()
    writer.order("mark five members become three")
    want(stack, replicas=3)
    kill_the_operator(stack)
    settled_on(stack, 3)
    say(f"five became three in {time.monotonic() - began:.0f} s")
    wait_for("three pods", lambda: True if len(pods(stack)) == 3 else Pending(str(sorted(pods(stack)))), CHANGE)
    assert marks(stack) == ["true"] * 3 + ["left"] * 2
    assert ensemble(stack)["status"]["address"] == address  # no client was restarted for it
    writer.acknowledges(ROWS)

    lost_nothing(writer)
    stack.wait_until_ready()


def test_members_are_restarted_one_by_one_and_the_leader_last(stack: Stack) -> None:
    before, leader = pods(stack), ensemble(stack)["status"]["leader"]
    writer = WriterProcess(stack.tools, "members_restarted")
    writer.acknowledges(ROWS)
    writer.order("mark ZooKeeper restarted")
    order: list[str] = []
    want(stack, config={"snapCount": "50000"})

    def ask() -> bool | Pending:
        now = pods(stack)
        order.extend(name for name in now if now[name] != before.get(name) and name not in order)
        return True if len(order) == len(before) else Pending(f"restarted: {', '.join(order) or 'none'}")

    wait_for("the restart of all members", ask, Limit(CHANGE.seconds, 0.3), say)
    assert order[-1] == leader
    settled_on(stack, 3)
    writer.acknowledges(ROWS)
    lost_nothing(writer)
