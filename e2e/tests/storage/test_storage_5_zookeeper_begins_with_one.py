"""A stack whose ensemble begins with one member, under SQL, striped ledgers, and a client that creates znodes one by one: one member
becomes three and five, and three again. The operator dies at each change; nothing that was acknowledged is lost."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from bookie_steps import numbers_of, settled_on
from conftest import Stack, say
from ensemble_steps import Ensemble
from load import Load
from own_stack import stack_of_its_own
from proof import all_is_whole
from under_load import tell

from herdkeeper_e2e.kubectl import Kubectl

HISTORY = "/tmp/history-of-znodes"
WRITES = 50


@pytest.fixture
def beginning(kubectl: Kubectl) -> Iterator[Stack]:
    """The quickstart with one member of ZooKeeper."""
    with stack_of_its_own(kubectl, "from-one", {"ZooKeeperCluster": {"replicas": 1, "deletionPolicy": "Delete"}}) as stack:
        yield stack


def changed(stack: Stack, ensemble: Ensemble, before: int, after: int) -> None:
    """The operator dies when it has begun, and again after the first step."""
    ensemble.want(replicas=after)
    if after > before:
        ensemble.waits_for("Joining")
    stack.sql.kill_operator()
    ensemble.takes_a_step(before)
    stack.sql.kill_operator()
    ensemble.settled_on(after)
    ensemble.has_pods(after)


def test_one_member_becomes_three_and_five_and_three_under_load(beginning: Stack) -> None:
    stack = beginning
    ensemble = Ensemble(stack.kubectl, "zk")
    numbers = numbers_of(stack)
    first = ensemble.seen()["status"]["address"]
    operator = stack.tools.as_operator()
    znodes = operator.steered("znode_writer", "--hosts", first, "--history", HISTORY)
    load = Load(stack, "from_one_member")
    for before, after in ((1, 3), (3, 5), (5, 3)):
        for each in (znodes, load):
            each.acknowledges(WRITES)
            each.order(f"mark {before} become {after}")
        began = time.monotonic()
        changed(stack, ensemble, before, after)
        say(f"{before} become {after} in {time.monotonic() - began:.0f} s")
        # clients are told of further members: what was built for one address is rolled
        settled_on(stack, numbers)
        stack.wait_until_ready()
        say(f"all is Ready {time.monotonic() - began:.0f} s after the change")
    for each in (znodes, load):
        each.acknowledges(WRITES)
    assert ensemble.marks() == ["true"] * 3  # deletionPolicy Delete: the volumes of members that left go
    znodes.stop()

    # through any of the members: the address has them all by now, and the first alone would hide that one lacks something
    address = ensemble.seen()["status"]["address"]
    assert len(address.split(",")) == 3
    for host in address.split(","):
        found = json.loads(operator.run("znode_writer", "--compare", "--hosts", host, "--history", HISTORY))
        assert found["violation"] is None, host
    tell(found)
    assert len(found["gaps"]) == 3
    all_is_whole(load, "after-the-members")
