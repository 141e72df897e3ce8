"""While SQL and a client with striped ledgers write, a bookie loses both disks, and then another one: what it held is copied, its identity
retired, and a new one takes its place."""

from __future__ import annotations

import time

from bookie_steps import bookies, lose_the_disks_of_one, settled_on, want
from conftest import Stack, say
from load import Load
from proof import both_lost_nothing, made_whole

DELAY_SECONDS = 30
ROWS = 50


def test_two_bookies_lose_their_disks_in_turn_and_are_replaced_under_load(stack: Stack) -> None:
    settled_on(stack, [bookie["number"] for bookie in bookies(stack)["status"]["bookies"]])
    want(stack, autoRecovery={"lostBookieRecoveryDelaySeconds": DELAY_SECONDS})
    settled_on(stack, [bookie["number"] for bookie in bookies(stack)["status"]["bookies"]])
    load = Load(stack, "disks_lost_under_load")
    load.acknowledges(ROWS)

    for turn in ("the first", "the second"):
        began = time.monotonic()
        load.order(f"mark {turn} disk lost")
        replaced = lose_the_disks_of_one(stack)
        say(f"{turn}: replaced in {time.monotonic() - began:.0f} s")
        load.acknowledges(ROWS)
        assert not [path for path in stack.tools.znodes() if replaced in path]

    stops = both_lost_nothing(load)
    stack.wait_until_ready()
    made_whole(stack, "after-the-loss", stops)
