"""While SQL and a client with striped ledgers write, bookies with two ledger volumes each have one that is full, get larger ones, and lose
one of them for good."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bookie_steps import LONG
from conftest import START, Stack, say
from load import Load
from proof import both_lost_nothing, found_nothing_in
from under_load import during
from volumes_by_hand import VolumesByHand

from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.conditions import all_ready, condition
from herdkeeper_e2e.kubectl import Object
from herdkeeper_e2e.tools_pod import Database, ToolsPod
from herdkeeper_e2e.waiting import Pending, wait_for

SMALL, LARGE = 256, 512
KINDS = "bookkeepercluster,herddbcluster,tablespace"
NAMES = ("growing", "growing-db")


@pytest.fixture(scope="module")
def volumes(stack: Stack) -> Iterator[VolumesByHand]:
    """A database of its own on the stack's ensemble, whose bookies' ledgers are on volumes that can be full."""
    made = VolumesByHand(stack)
    made.provide("small", SMALL, per_machine=4)
    stack.kubectl.apply(REPOSITORY / "e2e/tests/storage/growing.yaml")
    wait_for("the growing database", lambda: all_ready(own(stack), 3), START, say)
    yield made
    stack.kubectl.run("delete", "pods", "growing-tools", "clients-of-growing", "--ignore-not-found")
    for kind in ("tablespace/growing", "herddbcluster/growing-db", "bookkeepercluster/growing"):
        stack.kubectl.run("delete", kind, "--timeout=300s", timeout_seconds=310)
    wait_for("the end of its claims", lambda: Pending("there yet") if claims(stack) else True, LONG, say)
    made.remove()


@pytest.fixture(scope="module")
def tools(stack: Stack, volumes: VolumesByHand) -> ToolsPod:
    return ToolsPod(stack.kubectl, "growing-tools", Database.of(stack.kubectl, "growing-db", "growing", "growing")).start()


def own(stack: Stack) -> list[Object]:
    return [item for item in stack.kubectl.list(KINDS) if item["metadata"]["name"] in NAMES]


def claims(stack: Stack) -> dict[str, Object]:
    found = stack.kubectl.list("persistentvolumeclaims", "herdkeeper.io/owner-name=growing")
    return {item["metadata"]["name"]: item for item in found if "ledgers" in item["metadata"]["name"]}


def growing(stack: Stack) -> Object:
    return stack.sql.get("bookkeepercluster", "growing")


def states(stack: Stack) -> dict[int, str]:
    return {bookie["number"]: bookie["state"] for bookie in growing(stack)["status"]["bookies"]}


def until(stack: Stack, wanted: dict[int, str]) -> None:
    def ask() -> bool | Pending:
        found = states(stack)
        return True if found == wanted else Pending(f"bookies of growing: {found}")

    wait_for(f"bookies of growing: {wanted}", ask, LONG, say)


def whole(stack: Stack) -> None:
    wait_for("the growing database", lambda: all_ready(own(stack), 3), LONG, say)


def test_a_full_volume_makes_its_bookie_read_only_and_a_larger_one_writable_again(
    stack: Stack, tools: ToolsPod, volumes: VolumesByHand
) -> None:
    load = Load(Stack(stack.kubectl, tools), "full_and_grown", "growing").acknowledges()
    with during("a volume is full", load):
        volumes.fill(claims(stack)["growing-bookie-1-ledgers-1"], 97)
        until(stack, {0: "Writable", 1: "ReadOnly", 2: "Writable", 3: "Writable"})

    with during("volumes grow", load):
        stack.kubectl.want("bookkeepercluster", "growing", ledgers={"size": f"{LARGE}Mi"})
        wait_for("claims that ask for more", lambda: all_ask_for(stack, f"{LARGE}Mi"), LONG, say)
        for claim in claims(stack).values():
            volumes.grow(claim, LARGE)
        until(stack, {0: "Writable", 1: "Writable", 2: "Writable", 3: "Writable"})
        whole(stack)
    both_lost_nothing(load)
    found_nothing_in(stack, "growing", "after-the-growth")


def all_ask_for(stack: Stack, size: str) -> bool | Pending:
    asked = {name: claim["spec"]["resources"]["requests"]["storage"] for name, claim in claims(stack).items()}
    return True if len(asked) == 8 and set(asked.values()) == {size} else Pending(str(asked))


def test_one_of_two_ledger_volumes_is_lost_and_the_bookie_replaced(stack: Stack, tools: ToolsPod, volumes: VolumesByHand) -> None:
    volumes.provide("spare", LARGE, per_machine=2)
    load = Load(Stack(stack.kubectl, tools), "a_volume_lost", "growing").acknowledges()
    load.order("mark a ledger volume is lost")
    stack.kubectl.run("delete", "persistentvolumeclaim", "growing-bookie-0-ledgers-1", "--wait=false")
    stack.kubectl.run("delete", "pod", "growing-bookie-0-0", "--grace-period=0", "--force")
    wait_for("the end of its ledgers", lambda: needed_by_nobody(stack), LONG, say)
    for claim in ("journal", "ledgers"):  # what could hold data is a person's to give up
        stack.kubectl.run("delete", "persistentvolumeclaim", f"growing-bookie-0-{claim}", "--wait=false")
    until(stack, {1: "Writable", 2: "Writable", 3: "Writable", 4: "Writable"})
    whole(stack)
    load.acknowledges()
    both_lost_nothing(load)
    found_nothing_in(stack, "growing", "after-a-volume")


def needed_by_nobody(stack: Stack) -> bool | Pending:
    """Once the operator says what is left of the bookie, and the command that gives it up."""
    told = condition(growing(stack), "Ready")
    command = "`kubectl delete pvc growing-bookie-0-journal growing-bookie-0-ledgers -n"
    if told is not None and told["reason"] == "ClaimLost" and command in told["message"] and "no ledger needs it" in told["message"]:
        return True
    return Pending(str(told))
