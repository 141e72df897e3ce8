"""While SQL and a client with striped ledgers write, a bookie loses both disks, and then another one: what it held is copied, its identity
retired, and a new one takes its place."""

from __future__ import annotations

from bookie_steps import lose_the_disks_of_one, numbers_of, settled_on, want
from conftest import Stack
from load import Load
from proof import all_is_whole
from under_load import during

DELAY_SECONDS = 30


def test_two_bookies_lose_their_disks_in_turn_and_are_replaced_under_load(stack: Stack) -> None:
    settled_on(stack, numbers_of(stack))
    want(stack, autoRecovery={"lostBookieRecoveryDelaySeconds": DELAY_SECONDS})
    settled_on(stack, numbers_of(stack))
    load = Load(stack, "disks_lost_under_load").acknowledges()

    for turn in ("the first", "the second"):
        with during(f"{turn} disk lost", load):
            replaced = lose_the_disks_of_one(stack)
        assert not [path for path in stack.tools.znodes() if replaced in path]

    all_is_whole(load, "after-the-loss")
