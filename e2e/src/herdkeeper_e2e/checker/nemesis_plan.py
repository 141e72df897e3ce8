"""Which faults happen, in which order, after which pause: drawn from a seed. Pure; the same seed gives the same steps."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Action(StrEnum):
    """What the nemesis can do."""

    KILL_LEADER = "leader killed"
    PAUSE_LEADER = "leader paused"
    DELETE_LEADER = "leader's pod deleted"
    SWITCH_OVER = "switchover"
    PARTITION_FROM_ZOOKEEPER = "leader parted from ZooKeeper"
    PARTITION_FROM_BOOKIES = "leader parted from the bookies"
    PARTITION_FROM_OPERATOR = "leader parted from the operator"
    KILL_OPERATOR = "operator killed"
    KILL_LEADER_AND_OPERATOR = "leader and operator killed"
    ROLL = "SQL nodes rolled"
    SCALE = "one SQL node more, then one fewer"


LONG_ACTIONS = (Action.ROLL, Action.SCALE)
"""Minutes each; the others take well below one."""
PAUSE_SECONDS = (1.0, 8.0)
HOLD_SECONDS = (1.0, 15.0)
"""Below and above what a leader may hang before it is replaced (5)."""


@dataclass(frozen=True)
class Step:
    """`pause_seconds` after all was healthy the action begins; one that lasts is taken back after `hold_seconds`."""

    action: Action
    pause_seconds: float
    hold_seconds: float


def steps(seed: int, actions: Sequence[Action] = tuple(Action)) -> Iterator[Step]:
    """Endless: round after round of all actions, each round in an order of its own, its long actions last: a short run meets most kinds.

    Raises:
        ValueError: no actions.
    """
    if not actions:
        raise ValueError("there is no action to draw from: name at least one")
    drawn = random.Random(seed)
    while True:
        order = drawn.sample(list(actions), len(actions))
        for action in sorted(order, key=lambda each: each in LONG_ACTIONS):
            yield Step(action, round(drawn.uniform(*PAUSE_SECONDS), 1), round(drawn.uniform(*HOLD_SECONDS), 1))
