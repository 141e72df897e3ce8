"""Draws faults, their order and their pauses from a seed. Pure; the same seed gives the same steps.

Faults come in bursts without waits for health, so that they overlap. No fault removes a volume: any combination, including an ensemble
without a majority, may stop writes for a while but must not lose any.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Target(StrEnum):
    """Kinds of pods to hit."""

    LEADER = "leader"
    FOLLOWER = "follower"
    BOOKIE = "bookie"
    ZOOKEEPER = "ZooKeeper member"


class Way(StrEnum):
    """Ways to hit a pod."""

    KILLED = "killed"
    """SIGKILL; its container restarts."""
    PAUSED = "paused"
    """SIGSTOP, and SIGCONT later."""
    DELETED = "deleted"
    """With the grace period of the pod."""
    REMOVED = "deleted without grace"
    """A successor may start before the processes of this pod have ended."""


@dataclass(frozen=True)
class Hit:
    """A fault of one pod."""

    target: Target
    way: Way

    def __str__(self) -> str:
        return f"{self.target.value} {self.way.value}"


class Maneuver(StrEnum):
    """Other actions of the nemesis."""

    SWITCH_OVER = "switchover"
    PARTITION_FROM_ZOOKEEPER = "leader parted from ZooKeeper"
    PARTITION_FROM_BOOKIES = "leader parted from the bookies"
    PARTITION_FROM_OPERATOR = "leader parted from the operator"
    KILL_OPERATOR = "operator killed"
    ROLL = "SQL nodes rolled"
    SCALE = "one SQL node more, then one fewer"


Action = Hit | Maneuver
ACTIONS: tuple[Action, ...] = (*(Hit(target, way) for target in Target for way in Way), *Maneuver)
MOST_AT_ONCE = 4
FIRST_PAUSE_SECONDS = (1.0, 8.0)
"""After everything was healthy."""
PAUSE_SECONDS = (0.0, 5.0)
"""After the begin of the previous fault."""
HOLD_SECONDS = (1.0, 15.0)
"""Below and above the time that a leader may hang (5)."""
VICTIMS = 60
"""Range of the numbers that choose pods: a multiple of every possible count."""


@dataclass(frozen=True)
class Step:
    """The action begins `pause_seconds` after the previous one began, and is undone after `hold_seconds` if it lasts. `victim` chooses
    among several pods.
    """

    action: Action
    pause_seconds: float
    hold_seconds: float
    victim: int


Burst = tuple[Step, ...]
"""Steps that may overlap."""


def action_of(name: str) -> Action:
    """Returns the action of this name. Raises ValueError, with all names, if there is none."""
    known = {str(action): action for action in ACTIONS}
    if name not in known:
        raise ValueError(f"{name!r} is no action of the nemesis: use {', '.join(known)}")
    return known[name]


def bursts(seed: int, actions: Sequence[Action] = ACTIONS) -> Iterator[Burst]:
    """Yields endless bursts: rounds of all actions, each in its own order. Adding and removing a node comes alone, at the end of a round:
    it waits for health itself, and takes minutes.

    Raises ValueError without actions.
    """
    if not actions:
        raise ValueError("there is no action to draw from: name at least one")
    drawn = random.Random(seed)
    while True:
        left = drawn.sample(list(actions), len(actions))
        alone = [action for action in left if action is Maneuver.SCALE]
        left = [action for action in left if action is not Maneuver.SCALE]
        while left:
            size = drawn.randint(1, MOST_AT_ONCE)
            yield _burst(drawn, left[:size])
            left = left[size:]
        for action in alone:
            yield _burst(drawn, [action])


def _burst(drawn: random.Random, actions: Sequence[Action]) -> Burst:
    return tuple(
        Step(
            action,
            round(drawn.uniform(*(PAUSE_SECONDS if number else FIRST_PAUSE_SECONDS)), 1),
            round(drawn.uniform(*HOLD_SECONDS), 1),
            drawn.randrange(VICTIMS),
        )
        for number, action in enumerate(actions)
    )
