"""While SQL and a client with striped ledgers write, bookies come, are rolled, and leave, a middle one too; the operator dies after each
step of it. Nothing is lost, and the audit finds nothing."""

from __future__ import annotations

from collections.abc import Callable

from bookie_steps import bookies, numbers_of, settled_on, settled_with_others_for, waits_for, want
from conftest import Stack
from load import Load
from operator_death import Step, dies_after_each
from proof import both_lost_nothing, found_nothing, made_whole
from runs import audited
from under_load import during

from herdkeeper_e2e.conditions import condition
from herdkeeper_e2e.kubectl import Object


def objects_of(stack: Stack, number: int) -> list[str]:
    kinds = "statefulsets,persistentvolumeclaims,jobs,configmaps,pods"
    return [item["metadata"]["name"] for item in stack.kubectl.list(kinds) if item["metadata"]["name"].startswith(f"bk-bookie-{number}")]


def repairs(stack: Stack, name: str) -> Callable[[], None]:
    """Has an audit repair what a client acknowledged with a copy too few ("Striped ledgers" in docs/limits.md), whenever a drain asks."""
    asked = 0

    def repair() -> None:
        nonlocal asked
        drains = [bookie["drain"]["message"] for bookie in bookies(stack)["status"]["bookies"] if "drain" in bookie]
        if any("ReplicationAudit with repair: Repair" in message for message in drains):
            asked += 1
            audited(stack.kubectl, f"asked-for-by-a-drain-{name}-{asked}", repair="Repair")

    return repair


def drained(stack: Stack, numbers: list[int]) -> None:
    """Until only these bookies are there."""
    settled_on(stack, numbers, repairs(stack, "-".join(map(str, numbers))))


def is_there(kind: str, name: str) -> Callable[[Stack], bool]:
    return lambda stack: stack.kubectl.get(kind, name) is not None


def is_gone(kind: str, name: str) -> Callable[[Stack], bool]:
    return lambda stack: stack.kubectl.get(kind, name) is None


def steps_of_a_drain(number: int) -> list[Step]:
    """In the order of `bookkeeper/drain/procedure.py`. Ledgers that nobody writes are closed in between, which leaves no object."""
    named = f"bk-bookie-{number}"

    def marked(stack: Stack) -> bool:
        claim = stack.kubectl.get("persistentvolumeclaim", f"{named}-journal")
        return claim is not None and "herdkeeper.io/draining" in claim["metadata"].get("annotations", {})

    def read_only(stack: Stack) -> bool:
        return any("/readonly/" in path and named in path for path in stack.tools.znodes())

    def stopped(stack: Stack) -> bool:
        found = stack.kubectl.get("statefulset", named)
        return found is not None and found["spec"]["replicas"] == 0

    return [
        Step("marked as draining", marked),
        Step("read-only", read_only),
        Step("what it holds is recorded", is_there("configmap", f"{named}-drain-1")),
        Step("its ledgers move", is_there("job", f"{named}-drain-1")),
        Step("stopped", stopped),
        Step("its identity is being removed", is_there("job", f"{named}-retire")),
        Step("its volume claims are deleted", is_gone("persistentvolumeclaim", f"{named}-journal")),
        Step("its traces are removed", is_gone("statefulset", named)),
    ]


def steps_of_a_roll(stack: Stack) -> list[Step]:
    """One bookie after the other, in whatever order: its pod is another one, then that one serves."""
    before = pods(stack)

    def replaced(count: int, *, ready: bool) -> Callable[[Stack], bool]:
        def taken(stack: Stack) -> bool:
            now = pods(stack)
            fresh = [uid for name, (uid, serves) in now.items() if before[name][0] != uid and (serves or not ready)]
            return len(fresh) >= count

        return taken

    return [
        step
        for count in range(1, len(before) + 1)
        for step in (
            Step(f"{count} of {len(before)} bookies are replaced", replaced(count, ready=False)),
            Step(f"{count} of {len(before)} bookies serve again", replaced(count, ready=True)),
        )
    ]


def pods(stack: Stack) -> dict[str, tuple[str, bool]]:
    """uid and readiness of each bookie's pod."""

    def serves(pod: Object) -> bool:
        ready = condition(pod, "Ready")
        return ready is not None and ready["status"] == "True"

    found = stack.kubectl.list("pods", "app.kubernetes.io/name=bookie")
    return {pod["metadata"]["name"]: (pod["metadata"]["uid"], serves(pod)) for pod in found}


def test_a_bookie_in_the_middle_is_drained_under_load_and_the_operator_dies_after_each_step(stack: Stack) -> None:
    leaving = bookies(stack)["status"]["bookies"][1]["bookieId"]
    load = Load(stack, "drained_under_load").acknowledges()

    want(stack, bookies=3)
    waits_for(stack, "TooFewBookies")  # ensembles of three, and one to spare
    want(stack, bookies=4, drain=[1])
    with during("a bookie drained", load):
        dies_after_each(stack, steps_of_a_drain(1), repairs(stack, "beside-deaths"))
        drained(stack, [0, 2, 3, 4])

    assert objects_of(stack, 1) == []
    assert not [path for path in stack.tools.znodes() if leaving in path]
    both_lost_nothing(load)
    found_nothing(stack, "after-the-drain")


def test_four_bookies_become_six_and_four_again_under_load(stack: Stack) -> None:
    four = numbers_of(stack)
    load = Load(stack, "four_six_four").acknowledges()
    with during("four bookies become six", load):
        want(stack, bookies=6, drain=[])
        settled_with_others_for(stack, set(), 6)
    racks = {bookie["rack"] for bookie in bookies(stack)["status"]["bookies"]}
    assert len(racks) == 3, racks

    others = set(numbers_of(stack)) - set(four)
    with during("six bookies become four", load):
        want(stack, bookies=4)
        drained(stack, four)
    assert [objects_of(stack, number) for number in sorted(others)] == [[], []]
    both_lost_nothing(load)
    found_nothing(stack, "after-six")


def test_a_configuration_is_rolled_under_load_and_the_operator_dies_after_each_step(stack: Stack) -> None:
    leader = stack.sql.leader()
    numbers = numbers_of(stack)
    load = Load(stack, "rolled_under_load").acknowledges()
    steps = steps_of_a_roll(stack)
    with during("all bookies restarted", load):
        want(stack, config={"openFileLimit": "10000"})
        dies_after_each(stack, steps)
        settled_on(stack, numbers)
    stops = both_lost_nothing(load)
    assert stack.sql.leader() == leader, "clients of the bookies lost more than one at a time"
    stack.wait_until_ready()
    made_whole(stack, "after-the-roll", stops)
