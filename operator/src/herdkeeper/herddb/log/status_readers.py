"""The readers of a tablespace's log: two conditions, and status.streams. LogUsedInTime: each has read it well before its retention ends.
LogReleased: ledgers are kept past their retention because they are needed.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, assert_never

from herdkeeper.herddb.log.checkpoint_base import Base
from herdkeeper.herddb.log.seen import SeenStream
from herdkeeper.herddb.log.standing import Need, Needer, Phase, Standing
from herdkeeper.herddb.state.cluster import NodeTablespace
from herdkeeper.herddb.tablespace.state import TablespaceObserved
from herdkeeper.planning.summary import Health
from herdkeeper.protocol.log_pin import ARCHIVE, CHECKPOINT, SECOND_DISK, stream_of
from herdkeeper.shared.conditions import LOG_RELEASED, LOG_USED_IN_TIME
from herdkeeper.shared.counted import counted
from herdkeeper.shared.lsn import lsn_fields, lsn_text
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.time import moment_of_millis, text_of
from herdkeeper.shared.unknown import Unknown

_REASONS = {
    Phase.IN_TIME: Reason.USED_IN_TIME,
    Phase.NEARS: Reason.RETENTION_NEARS,
    Phase.PAST: Reason.RETENTION_OVER,
    Phase.GONE: Reason.LOG_GONE,
}
"""In order of urgency."""
MOST_STREAMS = 50
"""Bounds the status: endless names of streams must not make it too large to store."""
_NOWHERE = (-1, -2)
"""Before all LSNs: an unreadable pin keeps everything."""


def log_used_in_time(standings: tuple[Standing, ...] | Unknown) -> Mapping[str, Health]:
    """Returns the condition by its type, or nothing if nobody needs the log. Its times are absolute, so that it rarely changes."""
    if isinstance(standings, Unknown):
        return {LOG_USED_IN_TIME: Health("Unknown", Reason.UNREADABLE, standings.why)}
    if not standings:
        return {}
    late = [each for each in standings if each.phase is not Phase.IN_TIME]
    if not late:
        return {LOG_USED_IN_TIME: Health("True", Reason.USED_IN_TIME, "nothing needs the part of the log that is released next")}
    worst = max((each.phase for each in late), key=list(_REASONS).index)
    return {LOG_USED_IN_TIME: Health("False", _REASONS[worst], "; and ".join(_sentence(each) for each in late))}


def _sentence(standing: Standing) -> str:
    if standing.phase is Phase.GONE:
        return f"{_has(standing)}, and the log after that is gone: {_when_gone(standing)}"
    assert standing.ended is not None
    assert standing.retention_ends is not None
    ended, over = text_of(standing.ended), text_of(standing.retention_ends)
    past = standing.phase is Phase.PAST
    if standing.need.kept:
        fate = f"since {over} it is kept beyond retentionHours" if past else f"from {over} on it is kept beyond retentionHours"
        return f"{_has(standing)}; the log after that ended at {ended}; {fate} and fills the bookies: {_to_do(standing)}"
    fate = "it may be released at any moment" if past else f"it is released at {over}"
    return f"{_has(standing)}; the log after that ended at {ended}; {fate}: {_to_do(standing)}"


def _has(standing: Standing) -> str:
    """How far the log has been read."""
    match standing.need:
        case Need(Needer.CHECKPOINT, base=None):
            return "no Checkpoint is verified yet, so the next one needs the whole log"
        case Need(Needer.CHECKPOINT, base=Base() as base):
            of = f" of {base.stamp}" if base.stamp is not None else ""
            return f"the newest verified Checkpoint is {base.name}{of}, and the next one continues from LSN {lsn_text(base.restart)}"
        case Need(Needer.ARCHIVE, since=None):
            return "nothing of the log is archived yet"
        case Need(Needer.STREAM, stream=SeenStream(pin=None, name=name)):
            return f"the position of the stream {name} can't be read (its znode stream-{name} is malformed)"
        case Need(Needer.ARCHIVE, since=since) if since is not None:
            return f"the log is archived up to LSN {lsn_text(since)}"
        case Need(since=since, stream=stream):
            name = "" if stream is None else stream.name
            return f"the stream {name} {'has read nothing' if since is None else f'needs the log from LSN {lsn_text(since)} on'}"


def _to_do(standing: Standing) -> str:
    match standing.need.by:
        case Needer.CHECKPOINT:
            make = "make a Checkpoint, or see why the last one failed or proves nothing (its status.verified)"
            return make if standing.need.kept else f"{make}; spec.log.keepUntilCheckpoint keeps the log until there is one"
        case Needer.ARCHIVE:
            return "see the condition LogArchived"
        case Needer.STREAM:
            until = standing.need.stream.counts_until if standing.need.stream is not None else None
            kept = "" if until is None else f", which counts until {text_of(until)} unless it moves"
            return f"restart the stream, find out why it is slow, or remove its pin{kept}"
        case _:
            assert_never(standing.need.by)


def _when_gone(standing: Standing) -> str:
    match standing.need.by:
        case Needer.CHECKPOINT:
            return (
                "make a Checkpoint now; it starts from a follower's tables if there are at least two replicas (three to verify them "
                "against another follower). Otherwise copy the rows into a new Tablespace, and make Checkpoints of that"
            )
        case Needer.ARCHIVE:
            return "see the condition LogArchived"
        case Needer.STREAM:
            return "it can't continue (LogTruncatedError); restart it after a Checkpoint, or remove its pin"
        case _:
            assert_never(standing.need.by)


def log_released(leader: NodeTablespace | Unknown | None) -> Mapping[str, Health]:
    """Returns the condition by its type, from the leader's report; nothing if no ledger is held back, or the leader is silent."""
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


def stream_fields(seen: TablespaceObserved) -> dict[str, Any]:
    """Returns status.streams, those that need most of the log first; the previous ones while unknown. Movement alone changes nothing."""
    if isinstance(seen.streams, Unknown):
        before = seen.tablespace.status.streams if seen.tablespace.status is not None else ()
        return {"streams": [each.document() for each in before]}
    ordered = sorted(seen.streams, key=lambda each: (each.pin.lsn if each.pin is not None else _NOWHERE, each.name))
    return {"streams": [_field(each, seen.now) for each in ordered[:MOST_STREAMS]]}


def _field(stream: SeenStream, now: datetime.datetime) -> dict[str, Any]:
    if stream.pin is None:
        return {"name": stream.name, "state": "Unreadable", "standsSince": text_of(stream.moved_at)}
    if now <= stream.stands_at:
        return {"name": stream.name, "state": "Moves"}
    until = stream.counts_until
    return {
        "name": stream.name,
        "state": "Abandoned" if stream.is_abandoned(now) else "Stands",
        "standsSince": text_of(stream.moved_at),
        **({} if until is None else {"countsUntil": text_of(until)}),
        **({"lsn": lsn_fields(stream.pin.lsn)} if stream.pin.lsn[0] >= 0 else {}),
    }
