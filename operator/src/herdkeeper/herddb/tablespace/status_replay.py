"""The condition LogReplayable: an entry that a node can't apply, or a ledger that is lost or not the log's own, and the way out."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter

from herdkeeper.herddb.state.cluster import FOREIGN_LEDGER, LOST_LEDGER, NodeView, Unreplayable, copies_of
from herdkeeper.planning.summary import Health
from herdkeeper.protocol.log_pin import BEGIN
from herdkeeper.shared import names
from herdkeeper.shared.conditions import LOG_REPLAYABLE
from herdkeeper.shared.lsn import lsn_text
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

WAYS_OUT = {
    FOREIGN_LEDGER: (
        "The BookKeeperCluster does not have this log. Delete the HerdDBCluster (deletionPolicy: Retain), and create it with the "
        "BookKeeperCluster that has the log, or under another name"
    ),
    LOST_LEDGER: (
        "Put it back from a backup of ZooKeeper as it was last: an older list lacks ledgers, and the log then goes on without their rows. "
        "The node tries again each half minute. Without such a backup, make a new Tablespace from the newest Checkpoint (spec.bootstrap), "
        "which lacks what was acknowledged behind it"
    ),
}
"""What to do about a ledger, by the type in the place of an entry's."""


def log_replayable(name: str, uuid: str, nodes: Mapping[str, NodeView | Unknown]) -> Mapping[str, Health]:
    """Returns the condition by its type; nothing while no node reports such an entry or ledger of the tablespace `name`."""
    copies = sorted(copies_of(nodes, uuid), key=itemgetter(0))
    found = [(node, copy.unreplayable) for node, copy in copies if copy.unreplayable is not None]
    if not found:
        return {}
    for entry_type, way_out in WAYS_OUT.items():
        of_type = [(node, entry) for node, entry in found if entry.entry_type == entry_type]
        if of_type:
            return {LOG_REPLAYABLE: Health("False", Reason.LOG_UNREPLAYABLE, _bad_ledger(name, of_type, way_out))}
    of_log = [(node, entry) for node, entry in found if not entry.disk]
    entry = min((entry for _, entry in of_log or found), key=lambda each: each.lsn)
    stuck = ", ".join(node for node, _ in of_log or found)
    lsn, table = lsn_text(entry.lsn), f" of {entry.table}" if entry.table is not None else ""
    cause = f"{stuck} can't apply the entry at LSN {lsn} of {name} ({entry.entry_type}{table}): {entry.message}"
    rebuild = f"if no tablespace has its only replica there, delete the volume claim and the pod of {stuck} to rebuild it"
    if not of_log:
        claims = " ".join(f"{names.DATA_CLAIM_PREFIX}{node}" for node, _ in found)
        room = f"delete /data/herddb/data/evidence there, or grow its volume claim (kubectl edit pvc {claims}; spec.storage can't change)"
        repair = f"If its disk is full, {room}. If the disk is damaged, and {rebuild}"
        return {LOG_REPLAYABLE: Health("False", Reason.DISK_REFUSES_REPLAY, f"{cause}. Its disk is the cause, not the log. {repair}")}
    past = [node for node, copy in copies if copy.role == "follower" and copy.unreplayable is None and (copy.lsn or BEGIN) >= entry.lsn]
    restored = f"make a Checkpoint of the moment before LSN {lsn} (spec.target), and a new Tablespace from it (spec.bootstrap)"
    way_out = (
        f"{', '.join(past)} is past it, so that replica may be bad rather than the log: {rebuild}; if it stops at the same entry again, "
        f"{restored}"
        if past
        else f"No node that must replay it can lead: {restored}"
    )
    return {LOG_REPLAYABLE: Health("False", Reason.LOG_UNREPLAYABLE, f"{cause}. {way_out}")}


def _bad_ledger(name: str, found: list[tuple[str, Unreplayable]], way_out: str) -> str:
    refusing = ", ".join(node for node, _ in found)
    return f"{refusing} can't replay the log of {name}: {found[0][1].message}. {way_out}"
