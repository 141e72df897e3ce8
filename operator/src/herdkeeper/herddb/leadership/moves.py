"""Returns moves of leaderships as actions, in the order in which clients wait for them.

Lost leaders come first, all of them before anything that may take seconds: a checkpoint, or waking a node. Of serving leaders, those whose
followers need no checkpoint come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from herdkeeper.api import HerdDBCluster
from herdkeeper.codecs.herddb.tablespace import tablespace_path
from herdkeeper.herddb.leadership.decision import Move
from herdkeeper.herddb.state.log_store import LogStore
from herdkeeper.herddb.tablespace.record import VersionedRecord
from herdkeeper.planning.actions import Action, ChangeTablespaceRecord, CheckpointFollower, WakeNodes
from herdkeeper.shared.reason import Reason

DueMove = tuple[VersionedRecord, Move]


def move_actions(cluster: HerdDBCluster, log: LogStore, due: Sequence[DueMove]) -> tuple[Action, ...]:
    """Returns all due moves; ties keep their given order."""
    lost = [each for each in due if each[1].leader_lost]
    serving = sorted((each for each in due if not each[1].leader_lost), key=lambda each: each[1].checkpoint_first)
    actions: list[Action] = [*(_change(cluster, log, each) for each in lost), *_wake(cluster, lost)]
    for each in serving:
        actions += (*_checkpoint(cluster, each), _change(cluster, log, each), *_wake(cluster, [each]))
    return tuple(actions)


def _checkpoint(cluster: HerdDBCluster, due: DueMove) -> tuple[CheckpointFollower, ...]:
    found, move = due
    return (CheckpointFollower(cluster.metadata.name, move.to, found.record.name),) if move.checkpoint_first else ()


def _change(cluster: HerdDBCluster, log: LogStore, due: DueMove) -> ChangeTablespaceRecord:
    found, move = due
    path = tablespace_path(cluster.names.herd_root, found.record.name)
    moved, why = replace(found.record, leader=move.to), f"led by {move.to}, since {move.why}"
    return ChangeTablespaceRecord(log.zookeeper_address, path, moved, found.version, why, Reason.LEADER_MOVED)


def _wake(cluster: HerdDBCluster, due: Iterable[DueMove]) -> tuple[WakeNodes, ...]:
    nodes = tuple(dict.fromkeys(move.to for _, move in due))
    return (WakeNodes(cluster.metadata.name, nodes),) if nodes else ()
