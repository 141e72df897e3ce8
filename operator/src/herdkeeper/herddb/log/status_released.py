"""The condition LogReleased: ledgers that are kept past their retention because they are needed."""

from __future__ import annotations

from collections.abc import Mapping

from herdkeeper.herddb.state.cluster import NodeTablespace
from herdkeeper.planning.summary import Health
from herdkeeper.protocol.log_pin import ARCHIVE, CHECKPOINT, SECOND_DISK, stream_of
from herdkeeper.shared.conditions import LOG_RELEASED
from herdkeeper.shared.counted import counted
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.time import moment_of_millis, text_of
from herdkeeper.shared.unknown import Unknown


def log_released(leader: NodeTablespace | Unknown | None) -> Mapping[str, Health]:
    """Returns the condition by its type, from the leader's report; nothing if no ledger is held back. A silent leader is reported
    elsewhere.
    """
    retained = leader.retained_log if isinstance(leader, NodeTablespace) else None
    if retained is None:
        return {}
    since = text_of(moment_of_millis(retained.since_millis))
    needed = " and ".join(_who(name) for name in retained.kept_for)
    held = counted(retained.ledgers, "ledger of the log is", "ledgers of the log are")
    message = f"{held} past retentionHours, and on the bookies all the same: the oldest ended at {since} and is needed by {needed}"
    return {LOG_RELEASED: Health("False", Reason.LOG_RETAINED, message)}


def _who(name: str) -> str:
    if name == ARCHIVE:
        return "the archive, which has not copied it yet (spec.log.archive): see the condition LogArchived"
    if (stream := stream_of(name)) is not None:
        return f"the stream {stream}, which has not read it yet: see status.streams"
    if name == SECOND_DISK:
        return (
            "only one SQL node's disk, which may be lost: a settled second replica (spec.replicas), a Checkpoint with verify: Follower "
            "or spec.log.archive releases it; spec.log.releaseOnOneDisk accepts the risk"
        )
    if name == CHECKPOINT:
        return (
            "the next Checkpoint (spec.log.keepUntilCheckpoint): see why there is no newer one, or why the newest one proves nothing "
            "(its status.verified)"
        )
    return name
