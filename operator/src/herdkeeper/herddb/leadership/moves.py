"""Returns moves of leaderships as actions, in the order in which clients wait for them.

Lost leaders come first, all of them before anything that may take seconds: a checkpoint, or waking a node. Of serving leaders, those whose
followers need no checkpoint come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from herdkeeper.api import HerdDBCluster
from herdkeeper.herddb.leadership.decision import Move
from herdkeeper.herddb.record_change import record_change
from herdkeeper.herddb.state.cluster import VersionedRecord
from herdkeeper.herddb.state.log_store import LogStore
from herdkeeper.planning.actions import Action, ChangeTablespaceRecord, CheckpointFollower, WakeNodes
from herdkeeper.shared.reason import Reason


class TablespaceMove(NamedTuple):
    """A move of a tablespace's leadership, and the tablespace's record before it."""

    found: VersionedRecord
    move: Move


def move_actions(cluster: HerdDBCluster, log: LogStore, moves: Sequence[TablespaceMove]) -> tuple[Action, ...]:
    """Returns all moves; ties keep their given order."""
    lost = [each for each in moves if each.move.leader_lost]
    serving = sorted((each for each in moves if not each.move.leader_lost), key=lambda each: each.move.checkpoint_first)
    actions: list[Action] = [*(_change(cluster, log, each) for each in lost), *_wake(cluster, lost)]
    for each in serving:
        actions += (*_checkpoint(cluster, each), _change(cluster, log, each), *_wake(cluster, [each]))
    return tuple(actions)


def _checkpoint(cluster: HerdDBCluster, due_move: TablespaceMove) -> tuple[CheckpointFollower, ...]:
    found, move = due_move
    return (CheckpointFollower(cluster.metadata.name, move.to, found.record.name),) if move.checkpoint_first else ()


def _change(cluster: HerdDBCluster, log: LogStore, due_move: TablespaceMove) -> ChangeTablespaceRecord:
    found, move = due_move
    moved = replace(found, record=replace(found.record, leader=move.to))
    return record_change(cluster, log, moved, f"led by {move.to}, since {move.why}", Reason.LEADER_MOVED)


def _wake(cluster: HerdDBCluster, moves: Iterable[TablespaceMove]) -> tuple[WakeNodes, ...]:
    nodes = tuple(dict.fromkeys(move.to for _, move in moves))
    return (WakeNodes(cluster.metadata.name, nodes),) if nodes else ()
