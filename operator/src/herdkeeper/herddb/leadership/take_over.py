"""Nodes that failed to take over a leadership, or lost it soon, get no other one for a while unless needed.

An immediate retry fails again, and each time the tablespace pauses until its leadership returns. Nothing else in the cluster records the
attempt, so an annotation of the HerdDBCluster does (`did-not-lead.herdkeeper.io/<node>`). It does not prevent replacing a lost or ending
leader, or requesting that node.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from herdkeeper.herddb.state.cluster import NodeView, VersionedRecord
from herdkeeper.shared import names
from herdkeeper.shared.unknown import Unknown

TAKE_OVER_SECONDS = 10.0
"""A node that does not lead by then has failed to take over, or boots longer than necessary."""
HELD_SECONDS = 60.0
"""A leadership that is lost sooner counts as not taken over."""
LATE_SECONDS = 4.0
"""From then on other nodes get the next leadership, if there are any. A boot takes less."""
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 120.0, 3600.0
"""For how long a node gets no leadership after a failed take-over; doubled each time in a row."""

_TEXT = re.compile(r"([1-9][0-9]{0,5}) in a row, last (.+) at ([0-9]{1,12})", re.DOTALL)  # the name is any text of a SQL user


@dataclass(frozen=True)
class MissedTakeOver:
    """A node failed to take over a leadership `times` in a row: the last of `tablespace`, which it got at `at` (whole Unix seconds by
    ZooKeeper's clock).
    """

    tablespace: str
    at: int
    times: int = 1

    @property
    def text(self) -> str:
        """The value of the annotation."""
        return f"{self.times} in a row, last {self.tablespace} at {self.at}"

    @property
    def pause_seconds(self) -> float:
        """For how long after that the node gets no leadership unless needed."""
        return min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * float(2 ** min(self.times - 1, 10)))

    def why_not(self, now: float) -> str | None:
        """Returns why the node gets no leadership now, or None."""
        if abs(now - self.at) >= self.pause_seconds:
            return None
        often = f", {self.times} times in a row" if self.times > 1 else ""
        return f"it failed to take over {self.tablespace}{often}: no further attempt within {self.pause_seconds:.0f} s"


@dataclass(frozen=True)
class TakeOvers:
    """What is known of nodes that had to take over. `missed` failed to, and have not led since. `held_back` get no leadership now, with the
    reason. `late` don't lead yet what they just got. `obsolete` are those whose marks go.
    """

    missed: Mapping[str, MissedTakeOver] = field(default_factory=dict)
    held_back: Mapping[str, str] = field(default_factory=dict)
    late: frozenset[str] = frozenset()
    obsolete: tuple[str, ...] = ()


NOTHING_KNOWN = TakeOvers()


def read_marks(annotations: Mapping[str, str]) -> dict[str, MissedTakeOver]:
    """Returns the marks in a HerdDBCluster's annotations, by node. Unreadable ones are ignored."""
    found = {}
    for name, text in annotations.items():
        match = _TEXT.fullmatch(text) if name.startswith(names.DID_NOT_LEAD_PREFIX) else None
        if match is not None:
            found[name.removeprefix(names.DID_NOT_LEAD_PREFIX)] = MissedTakeOver(match[2], int(match[3]), int(match[1]))
    return found


def take_overs(
    annotations: Mapping[str, str], records: Iterable[VersionedRecord], nodes: Mapping[str, NodeView | Unknown], now: float
) -> TakeOvers:
    """Returns what is known of take-overs. `nodes` is the nodes' view of their tablespaces, `now` the time by ZooKeeper's clock."""
    marks = read_marks(annotations)
    given = [found for found in records if found.changed_at is not None]
    has_led = {node for node, mark in marks.items() if _has_led(nodes, node, mark, given)}
    forgotten = {node for node, mark in marks.items() if abs(now - mark.at) > 2 * LONGEST_PAUSE_SECONDS}
    obsolete = tuple(sorted(has_led | forgotten))
    missed = {node: mark for node, mark in marks.items() if node not in obsolete}
    return TakeOvers(
        missed,
        {node: why for node, mark in missed.items() if (why := mark.why_not(now)) is not None},
        frozenset(found.record.leader for found in given if _is_late(nodes, found, now)),
        obsolete,
    )


def _has_led(nodes: Mapping[str, NodeView | Unknown], node: str, mark: MissedTakeOver, given: Sequence[VersionedRecord]) -> bool:
    """Returns whether a node leads what it was marked for, or got later.

    What it got in the same second proves nothing. Nor does anything while it has what it was marked for and does not lead it: the mark
    would be rewritten each time.
    """
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
