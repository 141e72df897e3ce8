"""Turns of tablespaces that are handed over while their leaders still serve.

A SQL node boots its tablespaces one after the other. Were all given to it at once, each would stand still for the boots of those before it,
too; so it gets the next one once the last one is led, and meanwhile the old leader goes on acknowledging writes. HerdDB's own tablespace
goes last: it has no rows of users.

Nothing is remembered: which tablespace has yet to be led follows from its record and from what the new leader says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from herdkeeper.api import HerdDBCluster
from herdkeeper.codecs.herddb.tablespace import DEFAULT_TABLESPACE

SERVES_KEY = "herdkeeper.hand-over.seconds"
SERVES_SECONDS = 20.0
"""So long a SQL node that was asked to stop serves on while it leads what another one could lead (images/herddb, NodeSettings)."""
PATIENCE_SECONDS = 60.0
"""So long the next tablespace waits for the last one to be led: meanwhile its leader serves, and who can't boot the one shall not get the
other. Whoever has not taken it over by then is given nothing for a while (herddb/leadership/take_over.py)."""
RESERVE_SECONDS = 12.0
"""With so little left before a node stops everything leaves it at once. A follower's checkpoint before a turn may take 10 s of that."""
CLOCK_SECONDS = 1.0
"""By so much the clocks of Kubernetes and of the operator may differ."""


@dataclass(frozen=True)
class Deadline:
    """A leader was asked to stop `asked` seconds ago, and leads nothing any more in `left` seconds."""

    asked: float
    left: float

    @property
    def at_once(self) -> bool:
        """Whether there is no time for turns, nor for a follower's checkpoint: too little is left, or turns have taken too much. A leader
        that will be asked to stop only later is a clock that can't be trusted."""
        return self.left < RESERVE_SECONDS or self.asked < -CLOCK_SECONDS or self.asked >= SERVES_SECONDS - RESERVE_SECONDS


NO_DEADLINE = Deadline(asked=0.0, left=math.inf)
"""Of a leader that goes on for as long as it takes."""


@dataclass(frozen=True)
class HandOver:
    """A tablespace whose leader serves until `to` gets it, or until the deadline."""

    tablespace: str
    to: str
    deadline: Deadline = NO_DEADLINE


@dataclass(frozen=True)
class PendingTakeOver:
    """A tablespace that `node` was given `seconds` ago and does not lead yet. Negative when ZooKeeper's clock is ahead."""

    tablespace: str
    node: str
    seconds: float


def serves_seconds(cluster: HerdDBCluster) -> float:
    """How long its nodes go on serving after SIGTERM. A longer setting is ignored: a node may have started before it."""
    told = cluster.spec.config.get(SERVES_KEY, "")
    return min(float(told), SERVES_SECONDS) if told.isdecimal() else SERVES_SECONDS


def turn_key(tablespace: str) -> tuple[bool, str]:
    """Sorts tablespaces into the order in which they are moved."""
    return tablespace == DEFAULT_TABLESPACE, tablespace


def why_waiting(leaving: Sequence[HandOver], pending: Sequence[PendingTakeOver]) -> Mapping[str, str]:
    """Tablespaces that wait for their turn, with the reason; all others are moved now.

    Each node gets one at a time, so several nodes may get one at the same time. The default tablespace waits for all nodes: what has
    users' rows goes first wherever it goes.
    """
    awaited = {each.node: each.tablespace for each in pending if abs(each.seconds) < PATIENCE_SECONDS}
    waiting = {}
    for each in sorted(leaving, key=lambda one: turn_key(one.tablespace)):
        first = next(iter(awaited), each.to) if each.tablespace == DEFAULT_TABLESPACE else each.to
        if first in awaited and not each.deadline.at_once:
            waiting[each.tablespace] = f"{first} does not lead {awaited[first]} yet"
        else:
            awaited.setdefault(each.to, each.tablespace)
    return waiting
