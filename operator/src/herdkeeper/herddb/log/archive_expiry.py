"""What of a log's archive may expire, and which Checkpoints its recovery window needs.

A window that begins at W needs a base: a verified Checkpoint with nothing later than W. It also needs all of the log from the base's
restart position. Anything before is of no use. What is unknown keeps everything.

The status first moves the window's beginning. Only once that is stored does the archiver get the order to expire, and it reports that
before it deletes anything. An interruption leaves more than promised, never less.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass

from herdkeeper.api import Checkpoint, Tablespace
from herdkeeper.api.tablespace import LogArchive
from herdkeeper.codecs.herddb.ledgers import LedgerList
from herdkeeper.herddb.log.checkpoint_base import Base, bases
from herdkeeper.herddb.log.identity import LogIdentity, log_of
from herdkeeper.herddb.log.seen import ArchiveObserved, SeenOrder, archive_begins, archived_at
from herdkeeper.herddb.tablespace.state import TablespaceObserved
from herdkeeper.planning.actions import SetArchiveExpiry
from herdkeeper.protocol.log_archive import ArchivedRange, ExpiryOrder, expiry_order_path
from herdkeeper.shared.time import moment_of, moment_of_millis
from herdkeeper.shared.timetable import duration_of
from herdkeeper.shared.unknown import Unknown


@dataclass(frozen=True)
class KeptFrom:
    """The archive before `base.restart` may expire: the recovery window needs the base and the archive from there on."""

    base: Base


@dataclass(frozen=True)
class KeptWhole:
    """Nothing of the archive may expire for now."""

    why: str


def decide_expiry(
    archive: LogArchive,
    seen: ArchiveObserved,
    checkpoints: Iterable[Checkpoint],
    log: LogIdentity | Unknown,
    ledgers: LedgerList | Unknown | None = None,
) -> KeptFrom | KeptWhole | None:
    """Returns what of this log's archive may expire, or None if the spec keeps everything. `ledgers` is the log's list."""
    if archive.retention is None:
        return None
    place, within, found = archive.destination.place, archive.retention.keep_within, bases(checkpoints, log, ledgers)
    for unread in (seen.progress, seen.order, seen.unread, found):
        if isinstance(unread, Unknown):
            return KeptWhole(unread.why)
    held = archived_at(seen, place)
    if held is None or isinstance(found, Unknown):
        return KeptWhole("nothing is archived yet")
    start = window_start(within, datetime.datetime.fromtimestamp(seen.now, datetime.UTC), held.last_millis)
    reached = reached_bases(held, archive_begins(held, seen, place), found)
    old = [base for base in reached if (moment := base.holds_nothing_after) is not None and moment <= start]
    if old:
        newest = max(old, key=_order)
        doubt = seen.doubted.get(newest.name)
        return KeptFrom(newest) if doubt is None else KeptWhole(doubt)
    if held.begins_log and held.first_millis / 1000 >= start.timestamp():
        return KeptWhole(f"the log does not reach back for {within} yet")
    oldest = min(reached, key=_order, default=None)
    known = "and there is no base" if oldest is None else f"the oldest base is {oldest.name} ({oldest.moment})"
    return KeptWhole(f"no verified Checkpoint is {within} old or older, {known}")


def window_start(keep_within: str, now: datetime.datetime, archived_until_millis: int) -> datetime.datetime:
    """Returns the beginning of a window, counted back from the archive's end (leaders' clocks) or from now, whichever is earlier.

    Both clocks must advance for anything to expire; a wrong clock expires nothing.
    """
    return min(now, moment_of_millis(archived_until_millis)) - duration_of(keep_within)


def reached_bases(held: ArchivedRange, begins: tuple[int, int], found: Iterable[Base]) -> tuple[Base, ...]:
    """Returns the bases from which an archive that begins at an LSN can continue."""
    return tuple(base for base in found if begins <= base.restart and base.lsn <= held.last)


def expiry_steps(seen: TablespaceObserved, uuid: str) -> tuple[SetArchiveExpiry, ...]:
    """Returns the order to the archiver to expire; none until the status shows the later window."""
    archive, order = seen.tablespace.spec.log.archive, seen.archive.order
    if isinstance(order, Unknown):
        return ()
    decision = None if archive is None else decide_expiry(archive, seen.archive, seen.with_files, seen.log_of(uuid), seen.ledgers)
    match decision:
        case None:
            return withdraw(seen, uuid, "spec.log.archive.retention is no longer set")
        case KeptWhole(why):
            return withdraw(seen, uuid, why)
        case KeptFrom(base) if archive is not None and _published(seen.tablespace, base):
            return _order_expiry(archive, seen, base, uuid)
        case KeptFrom():
            return ()


def withdraw(seen: TablespaceObserved, uuid: str, why: str) -> tuple[SetArchiveExpiry, ...]:
    """Withdraw the order to expire, if there is one."""
    return _set(seen, uuid, None, why) if isinstance(seen.archive.order, SeenOrder) else ()


def needed_by_archive(
    tablespace: Tablespace, checkpoints: Iterable[Checkpoint], instance_id: str | Unknown, now: datetime.datetime
) -> frozenset[str] | Unknown:
    """Returns the names of the Checkpoints that a schedule must keep for the recovery window of a tablespace's archive. Its log is kept by
    the BookKeeper cluster of this INSTANCEID.

    One is the base in the status. With a retention, another one is the newest one of a moment at or before the window's beginning. So is
    the oldest one after it, the next base. Without it, a schedule that keeps few would delete every Checkpoint before it is as old as the
    window. The archive would then grow forever.

    The window may move on, at most to `keepWithin` ago, before the schedule has deleted what it decided on. So the bases in between, one
    for each LSN, are kept, and the next one. They are few while the archive follows the log.
    """
    archive, status = tablespace.spec.log.archive, tablespace.status
    if archive is None:
        return frozenset()
    if status is None or tablespace.made_uuid is None:
        why = f"the Tablespace {tablespace.metadata.name} does not report its uuid"
        return Unknown(f"{why}, so it is unknown which Checkpoints its archive needs")
    if status.archive is None:
        why = f"the Tablespace {tablespace.metadata.name} does not report its archive"
        return Unknown(f"{why}, so it is unknown which Checkpoints the archive needs")
    found = bases(checkpoints, log_of(instance_id, tablespace.made_uuid))
    if isinstance(found, Unknown):
        return Unknown(f"{found.why}; so it is unknown which Checkpoints the archive of the Tablespace {tablespace.metadata.name} needs")
    begin = status.recovery_window.from_lsn if status.recovery_window is not None else None
    needed = {base.name for base in found if begin is not None and base.lsn == begin.position}
    if archive.retention is None:
        # The window begins later while the key of its first base is gone. Somebody may put the key back.
        first = status.archive.first_lsn.position if status.archive.first_lsn is not None else None
        reached = (base for base in found if first is not None and first <= base.restart)
        oldest = min(reached, key=_order, default=None) if begin is None or begin.position != first else None
        return frozenset(needed | ({oldest.name} if oldest is not None else set()))
    until = moment_of(status.archive.lsn_timestamp)
    dated = [(moment, base) for base in found if (moment := base.holds_nothing_after) is not None]
    within, never = archive.retention.keep_within, datetime.datetime.min.replace(tzinfo=datetime.UTC)
    start, latest = never if until is None else window_start(within, now, int(until.timestamp() * 1000)), now - duration_of(within)
    before = [base for moment, base in dated if moment <= start]
    between = {base.lsn: base for base in sorted((base for moment, base in dated if start < moment <= latest), key=_order)}
    after = [base for moment, base in dated if moment > latest]
    ends = (max(before, key=_order, default=None), min(after, key=_order, default=None))
    return frozenset(needed | {base.name for base in (*ends, *between.values()) if base is not None})


def _order(base: Base) -> tuple[tuple[int, int], str]:
    return base.lsn, base.name


def _published(tablespace: Tablespace, base: Base) -> bool:
    """Returns whether the stored status begins the window with this base."""
    window = tablespace.status.recovery_window if tablespace.status is not None else None
    return window is not None and window.from_lsn is not None and window.from_lsn.position == base.lsn


def _order_expiry(archive: LogArchive, seen: TablespaceObserved, base: Base, uuid: str) -> tuple[SetArchiveExpiry, ...]:
    place, held, before = archive.destination.place, seen.archived, seen.archive.order
    order = ExpiryOrder(place, base.restart, base.manifest if base.place == place else "")
    if held is None or base.restart <= held.first or (isinstance(before, SeenOrder) and before.order == order):
        return ()
    return _set(seen, uuid, order, f"the Checkpoint {base.name} is the newest verified one as old as the recovery window")


def _set(seen: TablespaceObserved, uuid: str, order: ExpiryOrder | None, why: str) -> tuple[SetArchiveExpiry, ...]:
    if seen.herddb is None or seen.log is None:
        return ()
    root = seen.herddb.names.herd_root
    version = seen.archive.order.version if isinstance(seen.archive.order, SeenOrder) else None
    return (SetArchiveExpiry(seen.log.zookeeper_address, expiry_order_path(root, uuid), order, version, why),)
