"""While SQL and a client with striped ledgers write, a machine stands still with all that runs there: first it comes back, then it is
gone for good, and a person says so and gives its disks up, as docs/how-to/dead-node.md has it. Nothing is lost, and all is whole again
on the machines that are left."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from bookie_steps import bookies, numbers_of, settled_on, settled_with_others_for, want
from conftest import Stack, say
from load import Load
from proof import all_is_whole
from stops import SILENCE_SECONDS
from under_load import during, uids

from herdkeeper_e2e.conditions import condition
from herdkeeper_e2e.kubectl import SERVERS, Object
from herdkeeper_e2e.waiting import Limit, Pending, wait_for

DELAY_SECONDS = 30
SILENT = Limit(300, 1)
CLUSTERS = {"zookeepercluster": "zk", "bookkeepercluster": "bk", "herddbcluster": "db"}
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"


@pytest.fixture
def beside_the_operator(stack: Stack) -> Stack:
    """The same stack, written to from the machine of the operator, which is not the one that is lost."""
    tools = replace(stack.tools, name="tools-beside-the-operator", machine=stack.sql.machine_of_operator()).start()
    return Stack(stack.kubectl, tools)


def machine_to_lose(stack: Stack) -> str:
    """One that has a single bookie, so that those that are left suffice for ensembles of three."""
    machines = Counter(str(pod["spec"]["nodeName"]) for pod in stack.kubectl.list("pods", "app.kubernetes.io/name=bookie"))
    return next(name for name, count in machines.items() if count == 1 and name != stack.sql.machine_of_operator())


def tellings(stack: Stack) -> dict[str, Object | None]:
    """What each cluster says of lost nodes, None for one that says nothing."""
    return {name: condition(stack.sql.get(kind, name), "NodesReachable") for kind, name in CLUSTERS.items()}


def told_of(stack: Stack, machine: str, reason: str) -> None:
    """Until each resource with a pod there says what happened to that machine."""
    concerned = {pod["metadata"]["labels"]["herdkeeper.io/owner-name"] for pod in servers_on(stack, machine)}

    def ask() -> bool | Pending:
        for name, told in tellings(stack).items():
            if name in concerned and (told is None or told["reason"] != reason or machine not in told["message"]):
                return Pending(f"{name}: {told}")
        return True

    wait_for(f"{reason} of {machine}", ask, SILENT, say)


def forgotten(stack: Stack) -> None:
    """Until no resource speaks of a node any more."""

    def ask() -> bool | Pending:
        told = tellings(stack)
        return Pending(str(told)) if any(each is not None and each["status"] != "True" for each in told.values()) else True

    wait_for("no lost node", ask, SILENT, say)


def servers_on(stack: Stack, machine: str) -> list[Object]:
    return [pod for pod in stack.kubectl.list("pods", SERVERS) if pod["spec"].get("nodeName") == machine]


def claims_of(pods: list[Object]) -> list[str]:
    volumes = [volume for pod in pods for volume in pod["spec"]["volumes"]]
    return [volume["persistentVolumeClaim"]["claimName"] for volume in volumes if "persistentVolumeClaim" in volume]


def test_a_machine_that_is_silent_for_a_while_is_told_and_nothing_is_lost(beside_the_operator: Stack) -> None:
    stack = beside_the_operator
    machine = machine_to_lose(stack)
    before = uids(stack)
    load = Load(stack, "machine_silent").acknowledges()
    with during("a machine stands still", load), stack.sql.standing_still(machine):
        load.acknowledges()
        told_of(stack, machine, "NodeSilent")
        say(f"{condition(bookies(stack), 'NodesReachable')}")
        load.acknowledges()
    forgotten(stack)
    stack.wait_until_ready()
    assert uids(stack) == before
    all_is_whole(load, "after-the-silence", SILENCE_SECONDS)


def test_a_machine_that_is_gone_for_good_is_done_without_once_a_person_gives_its_disks_up(beside_the_operator: Stack) -> None:
    stack = beside_the_operator
    machine = machine_to_lose(stack)
    numbers = numbers_of(stack)
    want(stack, autoRecovery={"lostBookieRecoveryDelaySeconds": DELAY_SECONDS})
    settled_on(stack, numbers)
    load = Load(stack, "machine_gone").acknowledges()
    lost = servers_on(stack, machine)
    (bookie,) = (
        int(pod["metadata"]["labels"]["herdkeeper.io/bookie"]) for pod in lost if "herdkeeper.io/bookie" in pod["metadata"]["labels"]
    )
    with during("a machine is gone", load), stack.sql.standing_still(machine):
        told_of(stack, machine, "NodeSilent")
        stack.kubectl.run("taint", "nodes", machine, OUT_OF_SERVICE)
        try:
            wait_for("the removal of its pods", lambda: Pending("there yet") if servers_on(stack, machine) else True, SILENT)
            stack.kubectl.run("delete", "persistentvolumeclaims", *claims_of(lost), "--wait=false")
            settled_with_others_for(stack, {bookie}, len(numbers))
            stack.wait_until_ready()
            forgotten(stack)
            load.acknowledges()
            assert servers_on(stack, machine) == []
        finally:
            stack.kubectl.run("taint", "nodes", machine, f"{OUT_OF_SERVICE}-")
    all_is_whole(load, "after-the-machine", SILENCE_SECONDS)
