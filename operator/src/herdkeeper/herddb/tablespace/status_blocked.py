"""Why a tablespace is not Ready though its leader leads: statements hang there.

Only Ready tells of it. Nobody is moved or restarted for it: a long CREATE INDEX or checkpoint does the same and ends by itself, and the
leader that is told of here may be the only one that has caught up. A roll, a drain and a switchover go on, since they go by what the nodes
say of their copies; each of them cures it, as the deletion of the leader's pod does. A Checkpoint is made: it reads the log.
A full check waits: it would queue up behind the rest.
"""

from __future__ import annotations

from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.herddb.state.cluster import NodeTablespace
from herdkeeper.planning.summary import Health
from herdkeeper.protocol.self_report import BLOCKED_SECONDS
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

_TOLD = tuple(60 * minutes for minutes in (1, 2, 5, 10, 20, 30, 60, 120, 240, 480, 1440))
"""Times that the message names, in seconds: with more of them the status would be written more often."""


def statements_blocked(record: TablespaceRecord, leader: NodeTablespace | Unknown | None) -> Health | None:
    """The health of a tablespace with such a leader; None where nobody hangs for long, and where the node does not tell."""
    if not isinstance(leader, NodeTablespace) or leader.blocked_seconds is None or leader.blocked_seconds <= BLOCKED_SECONDS:
        return None
    node, name = record.leader, record.name
    after = "another replica leads then" if len(record.replicas) > 1 else "it boots from the log and leads again"
    message = (
        f"{node} leads, and for over {_shown(leader.blocked_seconds)} nobody who waits for the lock of {name} has got it: all statements "
        "that change rows hang, or more and more of them. A long CREATE INDEX or checkpoint, or a copy for a new replica, causes that and "
        "ends by itself. A statement that never ends causes it, too, once a change of definitions or a checkpoint waits for it: end its "
        f"transaction, or delete the pod {node}: {after}, and nothing that was acknowledged is lost"
    )
    return Health("False", Reason.STATEMENTS_BLOCKED, message)


def _shown(seconds: float) -> str:
    told = max(each for each in _TOLD if each <= seconds)
    count, unit = (told // 3600, "hour") if told >= 3600 else (told // 60, "minute")
    return f"{count} {unit}{'s' if count > 1 else ''}"
