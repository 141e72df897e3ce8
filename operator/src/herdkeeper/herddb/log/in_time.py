"""Whether each reader of a tablespace's log has read it before its retention ends, and when that answer changes (docs/decisions/0319).

A reader needs the log from an LSN on, hence the ledger of that LSN. A ledger's retention starts at its end, when the next one was opened; a
ledger that is being written has its full retention left.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator

from herdkeeper.codecs.herddb.ledgers import LedgerList
from herdkeeper.herddb.log.checkpoint_base import Base, bases, is_made_for_a_drill
from herdkeeper.herddb.log.seen import archive_begins
from herdkeeper.herddb.log.standing import Need, Needer, Phase, Standing
from herdkeeper.herddb.tablespace.state import TablespaceObserved
from herdkeeper.protocol.log_pin import BEGIN
from herdkeeper.shared.time import moment_of_millis
from herdkeeper.shared.unknown import Unknown

NEAR_SHARE = 0.75
"""Share of the retention after which a warning starts: a quarter is left to act."""
_AFTER_SECONDS = 1.0
"""A check at the very moment of a change could come too early."""


def log_standings(seen: TablespaceObserved) -> tuple[Standing, ...] | Unknown:
    """Returns the standing of each need; none if nobody needs the log, or there is none yet. Unknown if a decisive read failed."""
    if seen.known_record is None or seen.herddb is None or not _is_needed(seen):
        return ()
    ledgers, progress = seen.ledgers, None if seen.tablespace.spec.log.archive is None else seen.archive.progress
    for unread in (ledgers, seen.streams, seen.archive.unread, progress):
        if isinstance(unread, Unknown):
            return unread
    if ledgers is None or isinstance(ledgers, Unknown):
        return ()
    retention = datetime.timedelta(hours=seen.herddb.spec.ledgers.retention_hours)
    found = bases(seen.with_files, seen.log_of(seen.known_record.uuid), ledgers)
    if isinstance(found, Unknown) and _wants_checkpoints(seen):
        return found
    needs = (*_needs(seen, ledgers, () if isinstance(found, Unknown) else found), *_needs_of_streams(seen))
    return tuple(standing(need, ledgers, retention, seen.now) for need in needs)


def standing(need: Need, ledgers: LedgerList, retention: datetime.timedelta, now: datetime.datetime) -> Standing:
    """Returns the standing of a need at a time. A ledger beyond the list, opened after the read, is in time."""
    if not ledgers.active or (need.since is not None and need.since[0] > ledgers.active[-1]):
        return Standing(need, Phase.IN_TIME)
    wanted = ledgers.active[0] if need.since is None else need.since[0]
    if wanted not in ledgers.active:
        return Standing(need, Phase.GONE)
    ended = _end(ledgers, ledgers.active.index(wanted), now)
    if ended is None:
        return Standing(need, Phase.IN_TIME)
    over, near = ended + retention, ended + retention * NEAR_SHARE
    if now >= over:
        return Standing(need, Phase.PAST, ended, over)
    if now >= near:
        return Standing(need, Phase.NEARS, ended, over, turns_at=over)
    return Standing(need, Phase.IN_TIME, ended, over, turns_at=near)


def seconds_to_turn(standings: Iterable[Standing] | Unknown, now: datetime.datetime) -> float | None:
    """Returns the seconds until the first of them changes by itself, or None."""
    if isinstance(standings, Unknown):
        return None
    turns = min((each.turns_at for each in standings if each.turns_at is not None), default=None)
    return None if turns is None else (turns - now).total_seconds() + _AFTER_SECONDS


def seconds_to_stalled_stream(seen: TablespaceObserved) -> float | None:
    """Returns the seconds until the reported state of a stream changes unless it moves, or None."""
    streams = () if isinstance(seen.streams, Unknown) else seen.streams
    moments = [moment for each in streams for moment in (each.stands_at, each.counts_until) if moment is not None and moment >= seen.now]
    return (min(moments) - seen.now).total_seconds() + _AFTER_SECONDS if moments else None


def _end(ledgers: LedgerList, index: int, now: datetime.datetime) -> datetime.datetime | None:
    """Returns when a ledger ended, as the node program computes it (ReleaseRule), or None while it is written. Leaders' clocks differ: one
    that is behind makes no ledger older than earlier ones, and of one that is ahead the next opening counts.
    """
    openings = [(place, millis) for place, millis in enumerate(ledgers.added_millis) if millis / 1000 <= now.timestamp()]
    successor = next((place for place, _ in openings if place > index), None)
    if successor is None:
        return None
    return moment_of_millis(max(millis for place, millis in openings if place <= successor))


def _is_needed(seen: TablespaceObserved) -> bool:
    log, streams = seen.tablespace.spec.log, isinstance(seen.streams, tuple) and bool(seen.streams)
    return log.archive is not None or streams or _wants_checkpoints(seen)


def _wants_checkpoints(seen: TablespaceObserved) -> bool:
    # one made for a drill does not show that they are wanted
    made = (each for each in seen.checkpoints if each.metadata.deletion_timestamp is None and not is_made_for_a_drill(each))
    return seen.tablespace.spec.log.keep_until_checkpoint or any(made)


def _needs(seen: TablespaceObserved, ledgers: LedgerList, found: tuple[Base, ...]) -> Iterator[Need]:
    log = seen.tablespace.spec.log
    newest = max(found, key=lambda base: (base.lsn, base.restart, base.name), default=None)
    if _wants_checkpoints(seen) and (log.keep_until_checkpoint or not _is_archived(seen, newest)):
        first = None if ledgers.first is None else (ledgers.first, 0)
        yield Need(Needer.CHECKPOINT, first if newest is None else newest.restart, log.keep_until_checkpoint, newest)
    if log.archive is not None:
        yield Need(Needer.ARCHIVE, None if seen.archived is None else seen.archived.resume, kept=True)


def _needs_of_streams(seen: TablespaceObserved) -> Iterator[Need]:
    """A stream with an unreadable pin needs the whole log."""
    for stream in () if isinstance(seen.streams, Unknown) else seen.streams:
        if not stream.is_abandoned(seen.now):
            since = None if stream.pin is None or stream.pin.lsn == BEGIN else stream.pin.lsn
            yield Need(Needer.STREAM, since, kept=True, stream=stream)


def _is_archived(seen: TablespaceObserved, newest: Base | None) -> bool:
    """Returns whether a Checkpoint made from the newest one finds the released log in the archive."""
    archive, held = seen.tablespace.spec.log.archive, seen.archived
    if archive is None or held is None:
        return False
    begins = archive_begins(held, seen.archive, archive.destination.place)
    begins_log = held.begins_log and begins == held.first
    return begins_log or (newest is not None and begins <= newest.restart)
