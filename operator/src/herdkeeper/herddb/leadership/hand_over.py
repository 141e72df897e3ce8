"""Queues tablespaces that are handed over while their leaders serve.

A SQL node boots its tablespaces one after the other. If it got all at once, each would wait for the boots of the earlier ones. So it gets
the next one once it leads the last one, and the old leader keeps acknowledging writes meanwhile. HerdDB's own tablespace comes last: it has
no rows of users.

No state is kept: records and the new leader's report show which tablespaces are not led yet.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from herdkeeper.api import HerdDBCluster
from herdkeeper.codecs.herddb.tablespace import DEFAULT_TABLESPACE

SERVES_KEY = "herdkeeper.hand-over.seconds"
SERVES_SECONDS = 20.0
"""How long a stopping SQL node serves on while it leads what another one could lead (images/herddb, NodeSettings)."""
PATIENCE_SECONDS = 60.0
"""How long the next tablespace waits until the last one is led. Its leader serves meanwhile, and a node that can't boot one must not get
another. A node that takes longer gets no leadership for a while (herddb/leadership/take_over.py)."""
RESERVE_SECONDS = 12.0
"""With so little time left before a node stops, all its tablespaces move at once. A follower's checkpoint before a turn may take 10 s of
it."""
CLOCK_SECONDS = 1.0
"""Maximum difference between the clocks of Kubernetes and of the operator."""


@dataclass(frozen=True)
class Deadline:
    """A leader was asked to stop `asked` seconds ago, and ends all its leaderships in `left` seconds."""

    asked: float
    left: float

    @property
    def at_once(self) -> bool:
        """Whether there is no time for turns, nor for a follower's checkpoint: too little is left, or turns took too long. If the request
        to stop lies in the future, the clock can't be trusted.
        """
        return self.left < RESERVE_SECONDS or self.asked < -CLOCK_SECONDS or self.asked >= SERVES_SECONDS - RESERVE_SECONDS


NO_DEADLINE = Deadline(asked=0.0, left=math.inf)
"""For a leader that serves for as long as necessary."""


@dataclass(frozen=True)
class HandOver:
    """A tablespace whose leader serves until `to` takes over, or until the deadline."""

    tablespace: str
    to: str
    deadline: Deadline = NO_DEADLINE


@dataclass(frozen=True)
class PendingTakeOver:
    """A tablespace that `node` got `seconds` ago and does not lead yet. Negative if ZooKeeper's clock is ahead."""

    tablespace: str
    node: str
    seconds: float


def serves_seconds(cluster: HerdDBCluster) -> float:
    """Returns for how long its nodes serve after SIGTERM. A longer setting is ignored: a node may have started before it."""
    told = cluster.spec.config.get(SERVES_KEY, "")
    return min(float(told), SERVES_SECONDS) if told.isdecimal() else SERVES_SECONDS


def turn_key(tablespace: str) -> tuple[bool, str]:
    """Sort key for the order of moves."""
    return tablespace == DEFAULT_TABLESPACE, tablespace


def why_waiting(leaving: Sequence[HandOver], pending: Sequence[PendingTakeOver]) -> Mapping[str, str]:
    """Returns the tablespaces that wait for their turn, with the reason. All others move now.

    Each node gets one at a time, so several nodes can get one simultaneously. The default tablespace waits for all nodes: tablespaces with
    users' rows go first.
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
