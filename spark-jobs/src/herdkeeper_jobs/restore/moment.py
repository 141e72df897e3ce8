"""The checkpoint of a moment, found or made from files alone: the checkpoints of a tablespace, and the archive of its log.

Neither ZooKeeper nor a bookie of the old cluster is asked. It is made as the Checkpoint job makes it, at the place and under the name that
it would have there, so who asks for the same moment again finds it. A time becomes an LSN here, without Spark: the segments tell which of
them has the first entry that was stamped later. What a run has chosen is noted beside the checkpoints before anything is loaded
(`restores/<run>.json`): a retry, for which the archive may have grown meanwhile, goes on with that.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Never, assert_never

import structlog
from pyspark.sql import SparkSession

from herdkeeper_jobs.archive.archive_only_log import archive_only_log, identity_of_archive
from herdkeeper_jobs.archive.parts import WholeLog
from herdkeeper_jobs.archive.segment import (
    ArchiveBroken,
    SegmentManifest,
    holds,
    newest_segment,
    oldest_segment,
    proven,
    read_segment,
    segments,
    segments_one_by_one,
)
from herdkeeper_jobs.archive.window import windows_of_files
from herdkeeper_jobs.checkpoint.base import BaseUnusable, CheckpointBase, candidates, described
from herdkeeper_jobs.checkpoint.origin import Mode
from herdkeeper_jobs.checkpoint.run import Order, make_checkpoint
from herdkeeper_jobs.checkpoint.target import Target
from herdkeeper_jobs.encryption.keys import Key
from herdkeeper_jobs.errors import CheckpointRefused, CheckpointRetryable, InvariantViolated, KeyUnusable, NothingToBeginWith
from herdkeeper_jobs.manifests.manifest import Identity, lsn_of_name, manifest_path, manifests, read_outline, tablespace_folder
from herdkeeper_jobs.restore.errors import RestoreRefused, RestoreRetryable
from herdkeeper_jobs.storage.stored_path import StoredPath, replace_file, sync_folder
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.moment import Time, parse_moment, stamp

_log = structlog.get_logger()
_MOST_WINDOWS = 3
"""Of those that a refusal names, the newest ones."""


class Latest(Enum):
    """The last moment that the files have."""

    LATEST = "latest"


Moment = Lsn | Time | Latest


@dataclass(frozen=True, slots=True)
class MomentSource:
    """Which moment of which tablespace, and where its files are.

    `folder` is its folder among the checkpoints, `<place>/<INSTANCEID>/<tablespace uuid>`, where the new one goes; `archived_at` the place
    where its log is archived; `named` the manifest by which a user named it, None for one that was named by its folder. `key` encrypts
    what is made; None: it is written in the clear.
    """

    folder: StoredPath
    archived_at: StoredPath
    at: Moment
    run_id: str
    named: StoredPath | None = None
    key: Key | None = None

    @property
    def asked(self) -> str:
        """As the user asked for it."""
        match self.at:
            case Lsn():
                return f"spec.bootstrap.target.lsn (--to) is {self.at}"
            case Time(_, text):
                return f"spec.bootstrap.target.timestamp (--to) is {text}"
            case Latest():
                return "spec.bootstrap.target.latest (--to) is asked for"
            case _:
                assert_never(self.at)


def parse_restored_moment(text: str) -> Moment:
    """From `latest`, `LEDGER,ENTRY`, or a time of RFC 3339 with its offset. Raises ValueError that names the text and the forms."""
    if text == Latest.LATEST.value:
        return Latest.LATEST
    found = None if text == "now" else parse_moment(text)
    if found is None:
        raise ValueError(f"{text!r} is not a moment of an archive: expected latest, LEDGER,ENTRY, or a time with its offset")
    return found


def checkpoint_of_moment(start: Callable[[], SparkSession], source: MomentSource) -> StoredPath:
    """The manifest of the checkpoint of a moment, which is made where there is none. `start` gives the session, once there is work for it.

    Raises:
        RestoreRefused: the files don't have that moment; names the field, its value and the moments that can be had.
        RestoreRetryable: something is not there now.
        InvariantViolated: the files contradict themselves.
        KeyUnusable: something is encrypted, and its key is not here.
    """
    if (noted := _noted(source)) is not None:
        _log.info("continuing with the choice of an earlier attempt", manifest=str(noted))
        return noted
    whole = archive_only_log(*_archive(source))
    try:
        chosen = _chosen(whole, source)
        path = chosen if not isinstance(chosen, Lsn) else _made(start, whole, source, chosen)
    except KeyUnusable:
        raise  # no other moment would be of help
    except NothingToBeginWith as error:
        _refuse(whole, source, error.missing, error, error.no_base)
    except (ArchiveBroken, CheckpointRefused) as error:
        _refuse(whole, source, str(error), error)
    except CheckpointRetryable as error:
        raise RestoreRetryable(str(error)) from error
    _note(source, path, _left_out(whole, source, lsn_of_name(path)))
    return path


def left_out_of(source: MomentSource) -> int | None:
    """Entries behind the moment that was chosen which are stamped at or before the time that was asked for: some clock was ahead. None
    when the archive behind it could not be read."""
    note = _note_path(source)
    found = json.loads(note.read_bytes()).get("leftOut", 0) if note.is_file() else 0
    return None if found is None else int(found)


def _left_out(whole: WholeLog, source: MomentSource, lsn: Lsn) -> int | None:
    """What lies behind the moment is only told about: damage there holds up nothing."""
    match source.at:
        case Time(millis, _):
            behind = segments_one_by_one(whole.folder, whole.identity, lsn)
            found = (entry for segment in behind if segment.lowest_timestamp_millis <= millis for entry in _entries(segment, whole.folder))
            try:
                return sum(Lsn(ledger, number) > lsn and stamped <= millis for ledger, number, stamped in found)
            except (CheckpointRefused, CheckpointRetryable, InvariantViolated, OSError) as error:
                _log.warning("the skipped entries are unknown", reason=str(error))
                return None
        case Lsn() | Latest():
            return 0
        case _:
            assert_never(source.at)


def _refuse(whole: WholeLog, source: MomentSource, why: str, cause: Exception | None = None, no_base: str = "") -> Never:
    """What there is comes before what may be long, why there is no base: a summary may be cut off."""
    windows = windows_of_files(whole, source.folder)
    there = "; ".join(str(window) for window in windows[-_MOST_WINDOWS:]) + ": take one of these"
    if not windows:
        there = "no moment can be had of these files but those of the checkpoints themselves (spec.bootstrap.files without a target)"
    looked_at = f". No checkpoint at the place is a base ({no_base})" if no_base else ""
    raise RestoreRefused(f"{source.asked}: {why}. From the archive, {there}{looked_at}") from cause


def _archive(source: MomentSource) -> tuple[StoredPath, Identity]:
    """The tablespace's folder where its log is archived, and whose log it is."""
    folder = source.archived_at / source.folder.parent.name / source.folder.name
    if (found := identity_of_archive(folder)) is not None:
        return folder, found
    if source.named is not None and source.named.is_file():
        return folder, read_outline(source.named).identity
    raise RestoreRefused(
        f"spec.bootstrap.archive (--archive) leads to {folder}, which has no archive of a log (log/segments); name the place that has "
        "<INSTANCEID>/<tablespace uuid>/log of the old tablespace"
    )


def _chosen(whole: WholeLog, source: MomentSource) -> StoredPath | Lsn:
    """The LSN of the moment, or its checkpoint where there is one."""
    lsn = _lsn_of(whole, source)
    path = manifest_path(source.folder, lsn)
    if path.is_file():
        return path
    if (why := _why_not_archived(whole, lsn)) is not None:
        _refuse(whole, source, why)
    return lsn


def _lsn_of(whole: WholeLog, source: MomentSource) -> Lsn:
    match source.at:
        case Lsn():
            return source.at
        case Time():
            return _lsn_of_time(whole, source, source.at)
        case Latest():
            newest = newest_segment(whole.folder, whole.identity)
            ends = [lsn_of_name(path) for path in _manifests(source)[-1:]] + ([] if newest is None else [newest.last.lsn])
            return max(ends) if ends else _refuse(whole, source, "nothing is archived, and no checkpoint exists")
        case _:
            assert_never(source.at)


def _lsn_of_time(whole: WholeLog, source: MomentSource, time_: Time) -> Lsn:
    """Where a log is cut for a time: before its first entry that is stamped later, see wal/cut.py.

    Of everything before the segment that the search begins with it must be known that nothing in it is stamped later: it is the log's
    beginning, or a checkpoint says so.
    """
    oldest = oldest_segment(whole.folder, whole.identity)
    if oldest is None:
        _refuse(whole, source, "nothing of the log is archived")
    base = _base_that_meets(oldest, candidates(source.folder, whole.identity, time_))
    if isinstance(base, str) and not oldest.begins_log:
        why = f"the archive begins with {oldest.first.lsn}, and no checkpoint exists that holds nothing later"
        _refuse(whole, source, why, no_base=base)
    for segment in segments_one_by_one(whole.folder, whole.identity, base if isinstance(base, Lsn) else None):
        proven(segment, whole.folder)  # by its times the log is cut
        if segment.highest_timestamp_millis > time_.millis:
            return _before_first_later(whole, source, segment, time_)
    end = newest_segment(whole.folder, whole.identity) or oldest
    _refuse(
        whole,
        source,
        f"the archive has no later entry, so entries of that time may be missing: the archive ends with {end.last.lsn}, "
        f"stamped {stamp(end.highest_timestamp_millis)}; take an earlier time, or latest",
    )


def _base_that_meets(oldest: SegmentManifest, found: Iterable[CheckpointBase | BaseUnusable]) -> Lsn | str:
    """Where the newest base is, unless it ends before an archive begins: what lies between the two may be later. Else why there is none."""
    begin = oldest.first.lsn if oldest.follows is None else oldest.follows.lsn
    reasons: list[BaseUnusable] = []
    for candidate in found:
        if isinstance(candidate, CheckpointBase):
            if candidate.start.at >= begin:
                return candidate.start.at
            reasons.append(BaseUnusable(f"{candidate.path.stem}: the entries between it and the archive are unknown"))
            break  # the others end earlier
        reasons.append(candidate)
    return described(reasons)


def _before_first_later(whole: WholeLog, source: MomentSource, segment: SegmentManifest, time_: Time) -> Lsn:
    """The last entry before the first one of a segment that is stamped later than a time."""
    before = None if segment.follows is None else segment.follows.lsn
    for ledger, entry, millis in _entries(segment, whole.folder):
        if millis > time_.millis:
            break
        before = Lsn(ledger, entry)
    if before is None:
        began = stamp(segment.lowest_timestamp_millis)
        _refuse(whole, source, f"the log begins after it, with {segment.first.lsn}, and no entry of that segment is stamped before {began}")
    return before


def _entries(segment: SegmentManifest, folder: StoredPath) -> Iterator[tuple[int, int, int]]:
    rows = read_segment(segment, folder)
    columns = (rows.column(name).to_pylist() for name in ("ledger_id", "entry_id", "timestamp"))
    return zip(*columns, strict=True)


def _why_not_archived(whole: WholeLog, lsn: Lsn) -> str | None:
    """What is wrong with an LSN that the archive shall have; None when it has it."""
    folder, identity = whole.folder, whole.identity
    oldest, newest = oldest_segment(folder, identity), newest_segment(folder, identity)
    if oldest is None or newest is None:
        return "nothing of the log is archived, and no checkpoint exists at that LSN"
    if lsn < oldest.first.lsn:
        return f"the archive begins with {oldest.first.lsn}, and no checkpoint exists at that LSN"
    if lsn > newest.last.lsn:
        return f"the archive ends with {newest.last.lsn}"
    (around,) = segments(folder, identity, lsn, lsn)
    if holds(around, folder, lsn):
        return None
    return f"the archive has no such entry, neither in its segment from {around.first.lsn} to {around.last.lsn} nor behind it"


def _made(start: Callable[[], SparkSession], whole: WholeLog, source: MomentSource, lsn: Lsn) -> StoredPath:
    order = Order(source.folder.parent.parent, source.run_id, Mode.AUTO, time.monotonic(), source.key)
    if tablespace_folder(order.destination, whole.identity) != source.folder:
        raise InvariantViolated(f"{source.folder} has the files of {whole.identity.instance_id}/{whole.identity.tablespace_uuid}")
    return make_checkpoint(start, whole, Target(lsn, lsn), order).committed.path


def _manifests(source: MomentSource) -> list[StoredPath]:
    folder = source.folder
    return list(manifests(folder.parent.parent, folder.parent.name, folder.name))


def _note_path(source: MomentSource) -> StoredPath:
    return source.folder / "restores" / f"{source.run_id}.json"


def _noted(source: MomentSource) -> StoredPath | None:
    """The manifest that an earlier attempt of the same run chose; None where there was none, or the checkpoint has gone since."""
    note = _note_path(source)
    if not note.is_file():
        return None
    try:
        path = source.folder / "manifests" / str(json.loads(note.read_bytes())["manifest"])
    except (ValueError, KeyError, TypeError) as error:
        raise InvariantViolated(f"{note} does not say which checkpoint this restore began with: {error}") from error
    return path if path.is_file() else None


def _note(source: MomentSource, path: StoredPath, left_out: int | None) -> None:
    note = _note_path(source)
    replace_file(note, json.dumps({"manifest": path.name, "asked": source.asked, "leftOut": left_out}).encode())
    sync_folder(note.parent)
