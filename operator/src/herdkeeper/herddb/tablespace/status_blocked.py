"""Why a tablespace is not Ready although its leader leads: statements hang.

Only Ready reports it. No leader is moved or restarted for it: a long CREATE INDEX or checkpoint has the same effect and ends by itself. And
this leader may be the only replica that has caught up. Rolls, drains and switchovers continue, since they go by the nodes' views. Each of
them resolves it, as does deleting the leader's pod. Checkpoints run, since they read the log. A full check waits: it would only join the
queue.
"""

from __future__ import annotations

from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.herddb.state.cluster import NodeTablespace
from herdkeeper.planning.summary import Health
from herdkeeper.protocol.self_report import BLOCKED_SECONDS
from herdkeeper.shared.counted import counted
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

_TOLD = tuple(60 * minutes for minutes in (1, 2, 5, 10, 20, 30, 60, 120, 240, 480, 1440))
"""Durations in the message, in seconds. More of them would cause more writes of the status."""


def statements_blocked(record: TablespaceRecord, leader: NodeTablespace | Unknown | None) -> Health | None:
    """Returns the health of a tablespace with such a leader. None if no statement hangs for long, or the node does not report it."""
    if not isinstance(leader, NodeTablespace) or leader.blocked_seconds is None or leader.blocked_seconds <= BLOCKED_SECONDS:
        return None
    node, name = record.leader, record.name
    after = "another replica then leads" if len(record.replicas) > 1 else "it boots from the log and leads again"
    message = (
        f"statements have waited for over {_shown(leader.blocked_seconds)} for the lock of {name} on its leader {node}: statements that "
        "change rows hang. A long CREATE INDEX or checkpoint, or a copy for a new replica, holds it and ends by itself. A statement that "
        "never ends blocks the others once a change of definitions or a checkpoint waits for it: end its transaction, or delete the pod "
        f"{node}: {after}, and no acknowledged write is lost"
    )
    return Health("False", Reason.STATEMENTS_BLOCKED, message)


def _shown(seconds: float) -> str:
    told = max(each for each in _TOLD if each <= seconds)
    count, unit = (told // 3600, "hour") if told >= 3600 else (told // 60, "minute")
    return counted(count, unit)
