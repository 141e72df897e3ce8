"""Which faults happen, in which order, after which pause: drawn from a seed. Pure; the same seed gives the same steps.

Faults come in bursts: within one nothing waits for health, so that they overlap. No fault takes a volume away: whatever else comes
together, an ensemble without a majority included, may stop writes for a while and must lose none.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Target(StrEnum):
    """Whose pod is hit."""

    LEADER = "leader"
    FOLLOWER = "follower"
    BOOKIE = "bookie"
    ZOOKEEPER = "ZooKeeper member"


class Way(StrEnum):
    """How."""

    KILLED = "killed"
    """SIGKILL; its container starts again."""
    PAUSED = "paused"
    """SIGSTOP, and SIGCONT later."""
    DELETED = "deleted"
    """With the grace that its pod asks for."""
    REMOVED = "deleted without grace"
    """Another pod of its name may start before the processes of this one have ended."""


@dataclass(frozen=True)
class Hit:
    """A fault of one pod."""

    target: Target
    way: Way

    def __str__(self) -> str:
        return f"{self.target.value} {self.way.value}"


class Maneuver(StrEnum):
    """What else the nemesis can do."""

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
"""After all was healthy."""
PAUSE_SECONDS = (0.0, 5.0)
"""After the fault before it began."""
HOLD_SECONDS = (1.0, 15.0)
"""Below and above what a leader may hang before it is replaced (5)."""
VICTIMS = 60
"""Numbers by which pods are chosen: a multiple of how many there may be of a kind."""


@dataclass(frozen=True)
class Step:
    """`pause_seconds` after the one before it began the action begins; one that lasts is taken back after `hold_seconds`. `victim` chooses
    among several pods."""

    action: Action
    pause_seconds: float
    hold_seconds: float
    victim: int


Burst = tuple[Step, ...]
"""Steps of which each begins while those before it may still go on."""


def action_of(name: str) -> Action:
    """The action that is called so. ValueError with all names when none is."""
    known = {str(action): action for action in ACTIONS}
    if name not in known:
        raise ValueError(f"{name!r} is no action of the nemesis: use {', '.join(known)}")
    return known[name]


def bursts(seed: int, actions: Sequence[Action] = ACTIONS) -> Iterator[Burst]:
    """Endless: round after round of all actions, each round in an order of its own. A node more and fewer comes alone, at a round's end: it
    waits for health itself, and takes minutes.

    Raises:
        ValueError: no actions.
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
