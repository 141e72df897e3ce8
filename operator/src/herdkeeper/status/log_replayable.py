"""The condition LogReplayable: an entry of the log that a node can't apply, and the way out."""

from __future__ import annotations

from collections.abc import Mapping

from herdkeeper.domain.conditions import LOG_REPLAYABLE
from herdkeeper.domain.observed.herddb import NodeView
from herdkeeper.domain.reason import Reason
from herdkeeper.domain.unknown import Unknown
from herdkeeper.status.summary import Health


def log_replayable(name: str, uuid: str, nodes: Mapping[str, NodeView | Unknown]) -> Mapping[str, Health]:
    """The condition, by its type; nothing while no node tells of such an entry of the tablespace `name`."""
    views = ((node, view) for node, view in sorted(nodes.items()) if not isinstance(view, Unknown))
    found = [(node, copy.unreplayable) for node, view in views for copy in view if copy.uuid == uuid and copy.unreplayable is not None]
    if not found:
        return {}
    entry = min((entry for _, entry in found), key=lambda each: each.lsn)
    lsn, table = f"{entry.lsn[0]},{entry.lsn[1]}", f" of {entry.table}" if entry.table is not None else ""
    message = (
        f"{', '.join(node for node, _ in found)} can't apply the entry at LSN {lsn} of {name} ({entry.entry_type}{table}): "
        f"{entry.message}. Nobody can lead it who has to replay that: make a Checkpoint of the moment before LSN {lsn} (spec.target), "
        "and a new Tablespace of it (spec.bootstrap)"
    )
    return {LOG_REPLAYABLE: Health("False", Reason.LOG_UNREPLAYABLE, message)}
