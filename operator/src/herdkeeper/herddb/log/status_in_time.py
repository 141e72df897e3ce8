"""The condition LogUsedInTime: whether each reader of the log has read it well before its retention ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from herdkeeper.herddb.log.checkpoint_base import Base
from herdkeeper.herddb.log.seen import SeenStream
from herdkeeper.herddb.log.standing import Need, Needer, Phase, Standing
from herdkeeper.planning.summary import Health
from herdkeeper.shared.conditions import LOG_USED_IN_TIME
from herdkeeper.shared.lsn import lsn_text
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.time import text_of
from herdkeeper.shared.unknown import Unknown

_REASONS = {
    Phase.IN_TIME: Reason.USED_IN_TIME,
    Phase.NEARS: Reason.RETENTION_NEARS,
    Phase.PAST: Reason.RETENTION_OVER,
    Phase.GONE: Reason.LOG_GONE,
}
"""In order of urgency."""


def log_used_in_time(standings: tuple[Standing, ...] | Unknown) -> Mapping[str, Health]:
    """Returns the condition by its type, or nothing if nobody needs the log. It has absolute times: relative ones would cause a status
    write at each reconcile.
    """
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
