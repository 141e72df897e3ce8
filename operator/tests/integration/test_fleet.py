"""The operator's process and a fleet of played stacks, by counts: how much it asks, and how often it looks.

`make bench-fleet` takes the times.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from herdkeeper.engine.queue import BURST, CHANGE_SECONDS
from herdkeeper.planning import requeue
from herdkeeper.process.watched_kinds import WATCHED_KINDS
from herdkeeper_e2e.control_plane import wait_until_ready
from herdkeeper_e2e.fleet.bench import LOOKED_AT, RESOURCES
from herdkeeper_e2e.fleet.figures import waits
from herdkeeper_e2e.fleet.fleet import Fleet, made
from herdkeeper_e2e.fleet.launcher import PATIENCE as PATIENCE_OF_THE_OPERATOR
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

STACKS = 10
LOOKS = "herdkeeper_reconcile_total"
TOUCHES = 200
PATIENCE = Limit(120, 0.1)
MOST_REQUESTS_OF_A_START = 10 * len(WATCHED_KINDS)
"""Each kind is discovered, listed twice and watched; lists have pages, and a Kubernetes node is read by its name."""


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """Ten stacks with which nothing is left to do, and an operator that has ended. Only what happens brings another look."""
    with made(STACKS, tmp_path) as fleet:
        fleet.operator.settings["HERDKEEPER_RESYNC_SECONDS"] = "3600"
        fleet.operator.settings[PATIENCE_OF_THE_OPERATOR] = "30"  # a session that it gives up, or a silent node, brings looks of their own
        start(fleet)  # the one that made them may have left something to do
        fleet.operator.stop()
        yield fleet


def looked_at(fleet: Fleet) -> Pending | None:
    seen = len(fleet.operator.metric(LOOKED_AT))
    return None if seen == STACKS * RESOURCES else Pending(f"{seen} resources were looked at")


def start(fleet: Fleet) -> float:
    """Start the operator, and wait until it has looked at all and does nothing more; when it began, in seconds since 1970."""
    begin = fleet.operator.start()
    wait_for("a look at each resource", partial(looked_at, fleet), PATIENCE)
    wait_until_still(fleet)
    return begin


def looks(fleet: Fleet) -> dict[str, float]:
    """How often it looked, by the kind of the resource or the name of the controller."""
    found: dict[str, float] = {}
    for labels, count in fleet.operator.metric(LOOKS).items():
        kind = labels.partition('kind="')[2].partition('"')[0]
        found[kind] = found.get(kind, 0) + count
    return found


def wait_until_still(fleet: Fleet) -> None:
    """Until no look brings another one."""
    last, since = looks(fleet), time.monotonic()

    def still() -> Pending | None:
        nonlocal last, since
        found = looks(fleet)
        if found != last:
            last, since = found, time.monotonic()
        return None if time.monotonic() - since > 2 * requeue.SOON else Pending(f"it still looks: {found}")

    wait_for("that the operator looks at nothing any more", still, PATIENCE)


def asked(fleet: Fleet, begin: float) -> Counter[str]:
    """What it asked the API server for, but for its Lease: how often, by verb, resource and the namespace that it named."""
    found = (request for request in fleet.audit.since(begin, time.time()) if request.resource != "leases")
    return Counter(f"{request.verb} {request.resource} {request.namespace}".strip() for request in found)


def asked_by_looks(fleet: Fleet, begin: float) -> list[str]:
    """The same without watches, which no look begins: kopf begins one again that told nothing for 70 s."""
    return [request for request in asked(fleet, begin) if not request.startswith("watch ")]


def a_start_reads_no_object_of_a_stack_by_itself(fleet: Fleet) -> None:
    begin = start(fleet)
    requests = asked(fleet, begin)
    assert [request for request in requests if request.endswith(tuple(fleet.namespaces))] == []
    assert requests.total() < MOST_REQUESTS_OF_A_START


def a_settled_fleet_is_looked_at_without_a_request(fleet: Fleet) -> None:
    begin, before = time.time(), sum(looks(fleet).values())
    for namespace in fleet.namespaces:
        for kind, name in (("ZooKeeperCluster", "zk"), ("BookKeeperCluster", "bk"), ("HerdDBCluster", "db"), ("Tablespace", "flights")):
            fleet.annotate(kind, namespace, name)

    def all_looked_at() -> Pending | None:
        seen = sum(looks(fleet).values()) - before
        return None if seen >= STACKS * RESOURCES else Pending(f"{seen} looks")

    wait_for("a look at each resource", all_looked_at, PATIENCE)
    wait_until_still(fleet)
    assert asked_by_looks(fleet, begin) == []


def a_noisy_pod_brings_one_look_a_second_at_its_cluster_alone(fleet: Fleet) -> None:
    begin, before = time.time(), looks(fleet)
    for _ in range(TOUCHES):
        fleet.touch(fleet.namespaces[0])
    wait_until_still(fleet)
    most = BURST + (time.time() - begin) / CHANGE_SECONDS
    after = looks(fleet)
    more = {kind: count - before.get(kind, 0) for kind, count in after.items() if count != before.get(kind, 0)}
    assert more.keys() == {"HerdDBCluster", "leadership"}
    assert max(more.values()) <= most
    assert asked_by_looks(fleet, begin) == []


def an_api_server_that_was_away_is_waited_for_by_one_process(fleet: Fleet) -> None:
    lost = fleet.operator.restarts
    fleet.plane.api_server.kill()

    def waits_for_it() -> Pending | None:
        waiting = "the API server does not answer yet" in fleet.operator.log.read_text()
        return None if waiting else Pending("the process that lost its Lease has not been replaced")

    wait_for("that another process waits for the API server", waits_for_it, PATIENCE)
    begin = time.time()  # watches may begin before it calls itself ready
    fleet.plane.api_server.start()
    wait_until_ready(fleet.plane)
    wait_for("a look at each resource", partial(looked_at, fleet), PATIENCE)
    wait_until_still(fleet)
    assert fleet.operator.restarts == lost + 1

    def watches() -> Pending | None:
        watched = {request.resource for request in fleet.audit.since(begin, time.time()) if request.verb == "watch"}
        missing = {kind.plural for kind in WATCHED_KINDS} - watched
        return Pending(f"no watch of {sorted(missing)}") if missing else None

    wait_for("a watch of each kind", watches, PATIENCE)


def no_stack_waits_for_one_whose_zookeeper_is_silent(fleet: Fleet) -> None:
    silent, *others = fleet.namespaces
    begin = time.time()
    fleet.player.order("silence", silent)
    changes = [fleet.change(namespace) for namespace in fleet.namespaces]

    def written() -> Pending | None:
        found = waits(changes[1:], fleet.audit.since(begin, time.time()))
        missing = [namespace for namespace, seconds in zip(others, found, strict=True) if seconds == float("inf")]
        return Pending(f"no write to {missing}") if missing else None

    wait_for("a write to each other stack", written, PATIENCE)
    fleet.player.order("speak", silent)


@pytest.mark.skipif(sys.platform != "linux", reason="each played pod has an address of its own in 127.0.0.0/8")
def test_one_operator_serves_a_fleet(fleet: Fleet) -> None:
    a_start_reads_no_object_of_a_stack_by_itself(fleet)
    a_settled_fleet_is_looked_at_without_a_request(fleet)
    a_noisy_pod_brings_one_look_a_second_at_its_cluster_alone(fleet)
    an_api_server_that_was_away_is_waited_for_by_one_process(fleet)
    no_stack_waits_for_one_whose_zookeeper_is_silent(fleet)
