"""While SQL and a client with striped ledgers write, ZooKeeper grows from three members to five and shrinks to three again, its members
are restarted, and the operator dies meanwhile; nothing is lost."""

from __future__ import annotations

import time

from conftest import Stack, say
from ensemble_steps import CHANGE, Ensemble
from load import Load
from proof import both_lost_nothing, made_whole

from herdkeeper_e2e.waiting import Limit, Pending, wait_for

ROWS = 50


def test_zookeeper_grows_to_five_and_shrinks_to_three_under_load(stack: Stack) -> None:
    ensemble = Ensemble(stack.kubectl, "zk")
    address = ensemble.seen()["status"]["address"]
    load = Load(stack, "members_under_load")
    load.acknowledges(ROWS)

    began = time.monotonic()
    load.order("mark three members become five")
    ensemble.want(replicas=5)
    ensemble.waits_for("Joining")
    stack.sql.kill_operator()
    ensemble.settled_on(5)
    say(f"three became five in {time.monotonic() - began:.0f} s")
    assert len(ensemble.pods()) == 5
    load.acknowledges(ROWS)

    began = time.monotonic()
    load.order("mark five members become three")
    ensemble.want(replicas=3)
    stack.sql.kill_operator()
    ensemble.settled_on(3)
    say(f"five became three in {time.monotonic() - began:.0f} s")
    ensemble.has_pods(3)
    assert ensemble.marks() == ["true"] * 3 + ["left"] * 2
    assert ensemble.seen()["status"]["address"] == address  # no client was restarted for it
    load.acknowledges(ROWS)

    stops = both_lost_nothing(load)
    stack.wait_until_ready()
    made_whole(stack, "after-five-members", stops)


def test_members_are_restarted_one_by_one_and_the_leader_last(stack: Stack) -> None:
    ensemble = Ensemble(stack.kubectl, "zk")
    before, leader = ensemble.pods(), ensemble.seen()["status"]["leader"]
    load = Load(stack, "members_restarted")
    load.acknowledges(ROWS)
    load.order("mark ZooKeeper restarted")
    order: list[str] = []
    ensemble.want(config={"snapCount": "50000"})

    def ask() -> bool | Pending:
        now = ensemble.pods()
        order.extend(name for name in now if now[name] != before.get(name) and name not in order)
        return True if len(order) == len(before) else Pending(f"restarted: {', '.join(order) or 'none'}")

    wait_for("the restart of all members", ask, Limit(CHANGE.seconds, 0.3), say)
    assert order[-1] == leader
    ensemble.settled_on(3)
    load.acknowledges(ROWS)
    stops = both_lost_nothing(load)
    stack.wait_until_ready()
    made_whole(stack, "after-the-members", stops)
