"""While SQL and a client with striped ledgers write, ZooKeeper grows from three members to five and shrinks to three again, its members
are restarted, and the operator dies meanwhile; nothing is lost."""

from __future__ import annotations

from conftest import Stack, say
from ensemble_steps import CHANGE, Ensemble
from load import Load
from proof import all_is_whole
from under_load import during

from herdkeeper_e2e.waiting import Limit, Pending, wait_for


def test_zookeeper_grows_to_five_and_shrinks_to_three_under_load(stack: Stack) -> None:
    ensemble = Ensemble(stack.kubectl, "zk")
    address = ensemble.seen()["status"]["address"]
    load = Load(stack, "members_under_load").acknowledges()

    with during("three members become five", load):
        ensemble.want(replicas=5)
        ensemble.waits_for("Joining")
        stack.sql.kill_operator()
        ensemble.settled_on(5)
        assert len(ensemble.pods()) == 5

    with during("five members become three", load):
        ensemble.want(replicas=3)
        stack.sql.kill_operator()
        ensemble.settled_on(3)
        ensemble.has_pods(3)
    assert ensemble.marks() == ["true"] * 3 + ["left"] * 2
    assert ensemble.seen()["status"]["address"] == address  # no client was restarted for it
    all_is_whole(load, "after-five-members")


def test_members_are_restarted_one_by_one_and_the_leader_last(stack: Stack) -> None:
    ensemble = Ensemble(stack.kubectl, "zk")
    before, leader = ensemble.pods(), ensemble.seen()["status"]["leader"]
    load = Load(stack, "members_restarted").acknowledges()
    order: list[str] = []

    def ask() -> bool | Pending:
        now = ensemble.pods()
        order.extend(name for name in now if now[name] != before.get(name) and name not in order)
        return True if len(order) == len(before) else Pending(f"restarted: {', '.join(order) or 'none'}")

    with during("ZooKeeper restarted", load):
        ensemble.want(config={"snapCount": "50000"})
        wait_for("the restart of all members", ask, Limit(CHANGE.seconds, 0.3), say)
        assert order[-1] == leader
        ensemble.settled_on(3)
    all_is_whole(load, "after-the-members")
