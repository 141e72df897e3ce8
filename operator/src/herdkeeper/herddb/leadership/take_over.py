"""Nodes that failed to take over a leadership, or lost it soon: for a while they get no other one unless needed.

What is tried again at once fails again, and a tablespace stands still each time until its leadership comes back. Nothing else in the
cluster tells later that it was tried, so a mark on the HerdDBCluster does (`did-not-lead.herdkeeper.io/<node>`). It keeps nobody from
replacing a leader that is lost, from leaving one that ends, or from asking for that node.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from herdkeeper.herddb.state.cluster import NodeView
from herdkeeper.herddb.tablespace.record import VersionedRecord
from herdkeeper.shared import names
from herdkeeper.shared.unknown import Unknown

TAKE_OVER_SECONDS = 10.0
"""A node that does not lead by then what it was given has failed to, or boots longer than anybody should wait for without need."""
HELD_SECONDS = 60.0
"""A leadership that was lost sooner was not taken over."""
LATE_SECONDS = 4.0
"""From then on other nodes are given the next one, where there are others. A boot takes less."""
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 120.0, 3600.0
"""For how long a node is given nothing, since it was given what it did not lead: twice as long each time in a row."""

_TEXT = re.compile(r"([1-9][0-9]{0,5}) in a row, last (\S{1,100}) at ([0-9]{1,12})")


@dataclass(frozen=True)
class MissedTakeOver:
    """A node was given a leadership, `times` in a row, and did not lead: the last of `tablespace`, at `at` (whole seconds since 1970, by
    ZooKeeper's clock)."""

    tablespace: str
    at: int
    times: int = 1

    @property
    def text(self) -> str:
        """As the annotation has it."""
        return f"{self.times} in a row, last {self.tablespace} at {self.at}"

    @property
    def pause_seconds(self) -> float:
        """For how long since then the node is given nothing without need."""
        return min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * float(2 ** min(self.times - 1, 10)))

    def why_not(self, now: float) -> str | None:
        """Why the node is given nothing now; None when it may be tried again."""
        if abs(now - self.at) >= self.pause_seconds:
            return None
        often = f", {self.times} times in a row" if self.times > 1 else ""
        return f"it was given {self.tablespace} and did not lead it{often}: not tried again within {self.pause_seconds:.0f} s"


@dataclass(frozen=True)
class TakeOvers:
    """`missed` are the nodes that did not take over, and have not since; `not_now` those that are given nothing now, with the reason;
    `late` those that do not lead yet what they got a moment ago; `over` those whose marks tell nothing any more."""

    missed: Mapping[str, MissedTakeOver] = field(default_factory=dict)
    not_now: Mapping[str, str] = field(default_factory=dict)
    late: frozenset[str] = frozenset()
    over: tuple[str, ...] = ()


NOTHING_KNOWN = TakeOvers()


def read_marks(annotations: Mapping[str, str]) -> dict[str, MissedTakeOver]:
    """What a HerdDBCluster's annotations say, by node. What can't be read says nothing."""
    found = {}
    for name, text in annotations.items():
        match = _TEXT.fullmatch(text) if name.startswith(names.DID_NOT_LEAD_PREFIX) else None
        if match is not None:
            found[name.removeprefix(names.DID_NOT_LEAD_PREFIX)] = MissedTakeOver(match[2], int(match[3]), int(match[1]))
    return found


def take_overs(
    annotations: Mapping[str, str], records: Iterable[VersionedRecord], nodes: Mapping[str, NodeView | Unknown], now: float
) -> TakeOvers:
    """What is known of take-overs. `nodes` is what the nodes say of their tablespaces, `now` the time by ZooKeeper's clock."""
    marks = read_marks(annotations)
    given = [found for found in records if found.changed_at is not None]
    has_led = {node for node, mark in marks.items() if _has_led(nodes, node, mark, given)}
    forgotten = {node for node, mark in marks.items() if abs(now - mark.at) > 2 * LONGEST_PAUSE_SECONDS}
    over = tuple(sorted(has_led | forgotten))
    missed = {node: mark for node, mark in marks.items() if node not in over}
    return TakeOvers(
        missed,
        {node: why for node, mark in missed.items() if (why := mark.why_not(now)) is not None},
        frozenset(found.record.leader for found in given if _is_late(nodes, found, now)),
        over,
    )


def _has_led(nodes: Mapping[str, NodeView | Unknown], node: str, mark: MissedTakeOver, given: Sequence[VersionedRecord]) -> bool:
    """Whether a node leads what it was marked for, or what it was given after that. What it got in the same second says nothing, and
    nothing does while it has what it was marked for and does not lead it: the mark would be written anew with each look."""
    led = [found for found in given if _leads(nodes, node, found)]
    if any(found.record.name == mark.tablespace and _since(found) >= mark.at for found in led):
        return True
    stands = any((found.record.name, found.record.leader, _since(found)) == (mark.tablespace, node, mark.at) for found in given)
    return not stands and any(_since(found) > mark.at for found in led)


def _since(found: VersionedRecord) -> int:
    return int(found.changed_at or 0)


def _is_late(nodes: Mapping[str, NodeView | Unknown], found: VersionedRecord, now: float) -> bool:
    return LATE_SECONDS <= now - (found.changed_at or 0) < HELD_SECONDS and not _leads(nodes, found.record.leader, found)


def _leads(nodes: Mapping[str, NodeView | Unknown], node: str, found: VersionedRecord) -> bool:
    view = nodes.get(node, Unknown("it was not asked"))
    record = found.record
    return (
        record.leader == node
        and not isinstance(view, Unknown)
        and any((copy.name, copy.uuid, copy.role) == (record.name, record.uuid, "leader") for copy in view)
    )
