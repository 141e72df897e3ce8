"""The condition LogReplayable: an entry of the log that a node can't apply, and the way out."""

from __future__ import annotations

from collections.abc import Mapping

from herdkeeper.herddb.state.cluster import NodeView
from herdkeeper.planning.summary import Health
from herdkeeper.protocol.log_pin import BEGIN
from herdkeeper.shared.conditions import LOG_REPLAYABLE
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown


def log_replayable(name: str, uuid: str, nodes: Mapping[str, NodeView | Unknown]) -> Mapping[str, Health]:
    """The condition, by its type; nothing while no node tells of such an entry of the tablespace `name`."""
    views = ((node, view) for node, view in sorted(nodes.items()) if not isinstance(view, Unknown))
    copies = [(node, copy) for node, view in views for copy in view if copy.uuid == uuid]
    found = [(node, copy.unreplayable) for node, copy in copies if copy.unreplayable is not None]
    if not found:
        return {}
    entry = min((entry for _, entry in found), key=lambda each: each.lsn)
    stuck = ", ".join(node for node, _ in found)
    lsn, table = f"{entry.lsn[0]},{entry.lsn[1]}", f" of {entry.table}" if entry.table is not None else ""
    past = [node for node, copy in copies if copy.role == "follower" and copy.unreplayable is None and (copy.lsn or BEGIN) >= entry.lsn]
    restored = f"make a Checkpoint of the moment before LSN {lsn} (spec.target), and a new Tablespace of it (spec.bootstrap)"
    way_out = (
        f"{', '.join(past)} is past it, so that copy may be bad, and not the log. Where no tablespace has its only copy there, delete "
        f"the volume claim and the pod of {stuck}, which gets a copy anew; if that one stops at the same entry, {restored}"
        if past
        else f"No node that has to replay it can lead: {restored}"
    )
    message = f"{stuck} can't apply the entry at LSN {lsn} of {name} ({entry.entry_type}{table}): {entry.message}. {way_out}"
    return {LOG_REPLAYABLE: Health("False", Reason.LOG_UNREPLAYABLE, message)}
