"""The archive of a tablespace's log: status.archive, status.recoveryWindow and the condition LogArchived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from herdkeeper.api import Tablespace
from herdkeeper.api.tablespace import LogArchive
from herdkeeper.herddb.log.archive_expiry import KeptFrom, KeptWhole, decide_expiry, reached_bases
from herdkeeper.herddb.log.checkpoint_base import Base, bases
from herdkeeper.herddb.log.seen import ArchiveObserved, archive_begins, archived_at
from herdkeeper.herddb.tablespace.state import TablespaceObserved
from herdkeeper.planning.summary import Health
from herdkeeper.protocol.log_archive import ArchivedRange, ArchiveProgress
from herdkeeper.shared.conditions import LOG_ARCHIVED
from herdkeeper.shared.lsn import lsn_fields, lsn_text
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.time import text_of_millis
from herdkeeper.shared.unknown import Unknown

LATE_SECONDS = 60.0
"""How late after its next read an archive counts as lagging: a read takes time."""
LATE_LOOKS = 3


def archive_fields(seen: TablespaceObserved, uuid: str) -> dict[str, Any]:
    """Returns the status fields of a tablespace with this uuid; the previous ones while unknown."""
    tablespace, archive = seen.tablespace, seen.tablespace.spec.log.archive
    if archive is None:
        return {}
    place, progress = archive.destination.place, seen.archive.progress
    if isinstance(progress, Unknown):
        return remembered_archive(tablespace)
    if progress is None or progress.destination != place:
        return {"archive": _where(archive), **_remembered_window(tablespace, place)}
    held, log = progress.held, seen.log_of(uuid)
    decision = decide_expiry(archive, seen.archive, seen.with_files, log, seen.ledgers)
    known = {
        **_where(archive),
        "firstLsn": None if held is None else lsn_fields(held.first),
        "lsn": None if held is None else lsn_fields(held.last),
        "lsnTimestamp": None if held is None else text_of_millis(held.last_millis),
        "currentAt": None if progress.current_at_millis is None else text_of_millis(progress.current_at_millis),
        "lagSeconds": None if progress.lag_seconds is None else round(progress.lag_seconds),
        "expiry": _expiry(archive, decision, progress.expiry_trouble),
    }
    shown = {"archive": {key: value for key, value in known.items() if value is not None}}
    if held is None:
        return {**shown, **_remembered_window(tablespace, place)}
    readable = tuple(each for each in seen.with_files if each.metadata.name not in seen.archive.locked)
    window = recovery_window(held, archive_begins(held, seen.archive, place), bases(readable, log, seen.ledgers), decision)
    if isinstance(window, Unknown):
        window = remembered_archive(tablespace).get("recoveryWindow")
    return {**shown, **({} if window is None else {"recoveryWindow": window})}


def _remembered_window(tablespace: Tablespace, place: str) -> dict[str, Any]:
    """Returns the window as stored, if it is of the archive at this place: a lost report does not end it."""
    before = tablespace.status.archive if tablespace.status is not None else None
    there = before is not None and place == (before.claim_name if before.object_store is None else before.object_store.place)
    return {name: value for name, value in remembered_archive(tablespace).items() if there and name == "recoveryWindow"}


def recovery_window(
    held: ArchivedRange,
    begins: tuple[int, int],
    found: tuple[Base, ...] | Unknown,
    decision: KeptFrom | KeptWhole | None,
) -> dict[str, Any] | Unknown | None:
    """Returns the moments that an archive, which exists from `begins` on, can restore; None if none.

    An archive that begins with the log needs nothing else. Otherwise the window begins with the oldest verified checkpoint from which the
    archive continues. If something may expire, it begins with what is kept, whether the rest is already gone or not. `found` are the
    bases, `decision` is that on expiry. Unknown if it depends on unknown bases.
    """
    to = {"to": text_of_millis(held.last_millis), "toLsn": lsn_fields(held.last)}
    if isinstance(decision, KeptFrom):
        return {**_since([decision.base]), **to}
    if held.begins_log and begins == held.first:
        return {"from": text_of_millis(held.first_millis), "fromLsn": lsn_fields(held.first), **to}
    if isinstance(found, Unknown):
        return found
    reached = reached_bases(held, begins, found)
    return {**_since(sorted(reached, key=lambda base: base.lsn)), **to} if reached else None


def _since(bases_in_order: Sequence[Base]) -> dict[str, Any]:
    """Returns the first LSN, and the first time, that can be made from these bases. One without `latest` is the base of no time."""
    first = next((base.latest for base in bases_in_order if base.latest is not None), None)
    return {**({} if first is None else {"from": first}), "fromLsn": lsn_fields(bases_in_order[0].lsn)}


def _expiry(archive: LogArchive, decision: KeptFrom | KeptWhole | None, trouble: str) -> str | None:
    """Returns what happens to old parts, as a sentence. It has no times that change with each reconcile."""
    if decision is None or archive.retention is None:
        return None
    stuck = f"; earlier segments could not be deleted: {trouble}" if trouble else ""
    match decision:
        case KeptFrom(base):
            at, since = lsn_text(base.lsn), lsn_text(base.restart)
            of = f"the newest verified one that is {archive.retention.keep_within} old"
            return f"kept from LSN {since} on for the Checkpoint {base.name} at {at}, {of}{stuck}"
        case KeptWhole(why):
            return f"nothing expires: {why}"
        case _:
            assert_never(decision)


def log_archived(seen: TablespaceObserved) -> Mapping[str, Health]:
    """Returns the condition by its type, or nothing without an archive."""
    archive = seen.tablespace.spec.log.archive
    return {} if archive is None else {LOG_ARCHIVED: _health(archive, seen.archive)}


def _health(archive: LogArchive, seen: ArchiveObserved) -> Health:
    where, progress = archive.destination, seen.progress
    if isinstance(progress, Unknown):
        return Health("Unknown", Reason.UNREADABLE, progress.why)
    pod = f"; its pod: {seen.trouble}" if seen.trouble else ""
    if progress is None or progress.destination != where.place:
        return _unopened(seen, "nothing is archived yet") or Health(
            "False", Reason.ARCHIVE_STARTING, f"nothing is archived yet at {where.described}{pod}"
        )
    if progress.trouble:
        return _unopened(seen, _until(progress)) or Health("False", Reason.ARCHIVE_STANDS, f"{_until(progress)}: {progress.trouble}")
    if progress.current_at_millis is None:
        return _unopened(seen, _until(progress)) or Health(
            "False", Reason.ARCHIVE_STARTING, f"the existing log is being archived at {where.described}{pod}"
        )
    # A previous archiver may not have encrypted as declared.
    is_to_stop = where.encryption is not None and isinstance(seen.store, Problem)
    if is_to_stop or seen.now - progress.current_at_millis / 1000 > LATE_LOOKS * archive.every_seconds + LATE_SECONDS:
        return _unopened(seen, _until(progress)) or Health("False", Reason.ARCHIVE_LAGS, f"{_until(progress)}{pod}")
    start = "" if archived_at(seen, where.place) is not None else "; the log has no confirmed entry yet"
    stuck = f"; nothing expires: {progress.expiry_trouble}" if progress.expiry_trouble else ""
    no_other = f"; another pod could not open it: {seen.store.why}" if isinstance(seen.store, Problem) else ""
    done = f"the log is archived at {where.described}, every {archive.every_seconds} s"
    archived = Health("True", Reason.ARCHIVED, f"{done}{start}{stuck}{no_other}")
    why = f"{archived.message}; but its beginning can't be read: {progress.locked}"
    return Health("False", Reason.WAITING_FOR_SECRET, why) if progress.locked else archived


def _unopened(seen: ArchiveObserved, so_far: str) -> Health | None:
    """Returns that a Secret is missing or lacks a key, if the archive does not continue: a pod that has its keys may."""
    return Health("False", seen.store.reason, f"{so_far}: {seen.store.why}") if isinstance(seen.store, Problem) else None


def _until(progress: ArchiveProgress) -> str:
    if progress.current_at_millis is None:
        return "the archive has not reached the log's end yet"
    return f"all that was confirmed at {text_of_millis(progress.current_at_millis)} is archived, but nothing since"


def remembered_archive(tablespace: Tablespace) -> dict[str, Any]:
    """Returns the status fields as stored: schedules keep Checkpoints by them."""
    status = tablespace.status if tablespace.spec.log.archive is not None else None
    found = {} if status is None else {"archive": status.archive, "recoveryWindow": status.recovery_window}
    return {name: value.document() for name, value in found.items() if value is not None}


def _where(archive: LogArchive) -> dict[str, Any]:
    """The place of the archive, as its status names it."""
    claim, store = archive.destination.claim_name, archive.destination.object_store
    if store is not None:
        return {"objectStore": store.document()}
    return {"claimName": claim}
