"""Whether those who need a tablespace's log have had it before it is past its retention, and when that will be another answer.

Each needs the log from an LSN on, so the ledger that this one is in. Its retention runs from its end, which is when the next one was
opened; the ledger that is being written has all of it before it. So an idle log, in which nothing is about to be released, is no alarm
however old the newest Checkpoint is. Past the retention the ledger is released, and lost to those who need it, or kept for them, and then
it fills the bookies: either is to be known before.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator

from herdkeeper.api import Checkpoint, Tablespace
from herdkeeper.codecs.herddb.ledgers import LedgerList
from herdkeeper.herddb.log.checkpoint_base import Base, bases, is_made_for_a_drill
from herdkeeper.herddb.log.seen_archive import archive_begins, archived_at
from herdkeeper.herddb.log.standing import Need, Needer, Phase, Standing
from herdkeeper.herddb.tablespace.record import VersionedRecord
from herdkeeper.herddb.tablespace.state import TablespaceObserved
from herdkeeper.protocol.log_pin import BEGIN
from herdkeeper.shared.unknown import Unknown

NEAR_SHARE = 0.75
"""Of the retention: once so much of it is over it is told, so that a quarter is left for what has to be done."""
_AFTER_SECONDS = 1.0
"""To look in the very moment in which an answer turns could be to look before it."""


def log_standings(tablespace: Tablespace, seen: TablespaceObserved) -> tuple[Standing, ...] | Unknown:
    """How it stands with each need; nothing where nobody needs the log, or there is none yet. Unknown where something could not be read
    that decides it."""
    if not isinstance(seen.record, VersionedRecord) or seen.herddb is None:
        return ()
    uuid = seen.record.record.uuid
    if not _is_needed(tablespace, seen):
        return ()
    progress = None if tablespace.spec.log.archive is None else seen.archive.progress
    for unread in (seen.ledgers, seen.streams, seen.archive.unread, progress):
        if isinstance(unread, Unknown):
            return unread
    if seen.ledgers is None or isinstance(seen.ledgers, Unknown):
        return ()
    retention = datetime.timedelta(hours=seen.herddb.spec.ledgers.retention_hours)
    ledgers = seen.ledgers
    found = bases(seen.checkpoints, seen.log_of(uuid))
    if isinstance(found, Unknown):
        if _wants_checkpoints(tablespace, seen):
            return found
        found = ()
    needs = (*_needs(tablespace, seen, ledgers, found), *_needs_of_streams(seen))
    return tuple(standing(need, ledgers, retention, seen.now) for need in needs)


def standing(need: Need, ledgers: LedgerList, retention: datetime.timedelta, now: datetime.datetime) -> Standing:
    """How it stands with a need at a time. Of a ledger beyond the list, which was opened since it was read, nothing is near."""
    if not ledgers.active or (need.since is not None and need.since[0] > ledgers.active[-1]):
        return Standing(need, Phase.IN_TIME)
    wanted = ledgers.active[0] if need.since is None else need.since[0]
    if wanted not in ledgers.active:
        return Standing(need, Phase.GONE)
    ended = _end(ledgers, ledgers.active.index(wanted))
    if ended is None:
        return Standing(need, Phase.IN_TIME)
    over, near = ended + retention, ended + retention * NEAR_SHARE
    if now >= over:
        return Standing(need, Phase.PAST, ended, over)
    if now >= near:
        return Standing(need, Phase.NEARS, ended, over, turns_at=over)
    return Standing(need, Phase.IN_TIME, ended, over, turns_at=near)


def seconds_to_turn(standings: Iterable[Standing] | Unknown, now: datetime.datetime) -> float | None:
    """Until the first of them turns; None when none will by itself."""
    if isinstance(standings, Unknown):
        return None
    turns = min((each.turns_at for each in standings if each.turns_at is not None), default=None)
    return None if turns is None else (turns - now).total_seconds() + _AFTER_SECONDS


def seconds_to_stalled_stream(seen: TablespaceObserved) -> float | None:
    """Until a stream is told of as something else unless it moves; None when none will be."""
    streams = () if isinstance(seen.streams, Unknown) else seen.streams
    moments = [moment for each in streams for moment in (each.stands_at, each.counts_until) if moment is not None and moment >= seen.now]
    return (min(moments) - seen.now).total_seconds() + _AFTER_SECONDS if moments else None


def _end(ledgers: LedgerList, index: int) -> datetime.datetime | None:
    """When a ledger ended, as the node program reckons it (ReleaseRule): leaders' clocks differ, and one that is behind makes no ledger
    older than those before it. None while it is written."""
    if index + 1 >= len(ledgers.active):
        return None
    return datetime.datetime.fromtimestamp(max(ledgers.added_millis[: index + 2]) / 1000, datetime.UTC)


def _is_needed(tablespace: Tablespace, seen: TablespaceObserved) -> bool:
    log, streams = tablespace.spec.log, isinstance(seen.streams, tuple) and bool(seen.streams)
    return log.archive is not None or streams or _wants_checkpoints(tablespace, seen)


def _wants_checkpoints(tablespace: Tablespace, seen: TablespaceObserved) -> bool:
    return tablespace.spec.log.keep_until_checkpoint or any(_counts(each) for each in seen.checkpoints)


def _counts(checkpoint: Checkpoint) -> bool:
    """Whether somebody wants Checkpoints of the tablespace: one that a drill made for itself is about to go."""
    return checkpoint.metadata.deletion_timestamp is None and not is_made_for_a_drill(checkpoint)


def _needs(tablespace: Tablespace, seen: TablespaceObserved, ledgers: LedgerList, found: tuple[Base, ...]) -> Iterator[Need]:
    log = tablespace.spec.log
    newest = max(found, key=lambda base: (base.lsn, base.restart, base.name), default=None)
    if _wants_checkpoints(tablespace, seen) and (log.keep_until_checkpoint or not _is_archived(tablespace, seen, newest)):
        first = None if ledgers.first is None else (ledgers.first, 0)
        yield Need(Needer.CHECKPOINT, first if newest is None else newest.restart, log.keep_until_checkpoint, newest)
    if log.archive is not None:
        held = archived_at(seen.archive, log.archive.destination.place)
        yield Need(Needer.ARCHIVE, None if held is None else held.resume, kept=True)


def _needs_of_streams(seen: TablespaceObserved) -> Iterator[Need]:
    """One whose pin nobody can read keeps the whole log."""
    for stream in () if isinstance(seen.streams, Unknown) else seen.streams:
        if not stream.is_abandoned(seen.now):
            since = None if stream.pin is None or stream.pin.lsn == BEGIN else stream.pin.lsn
            yield Need(Needer.STREAM, since, kept=True, stream=stream)


def _is_archived(tablespace: Tablespace, seen: TablespaceObserved, newest: Base | None) -> bool:
    """Whether a Checkpoint made from the newest one finds in the archive what the log has no more."""
    archive = tablespace.spec.log.archive
    held = None if archive is None else archived_at(seen.archive, archive.destination.place)
    if archive is None or held is None:
        return False
    begins = archive_begins(held, seen.archive, archive.destination.place)
    begins_log = held.begins_log and begins == held.first
    return begins_log or (newest is not None and begins <= newest.restart)
