"""Finds or makes the checkpoint of a moment from files alone: a tablespace's checkpoints, and the archive of its log.

It needs no ZooKeeper and no bookie of the old cluster. The checkpoint is made as the Checkpoint job makes it, with the same place and
name, so a later request for the moment finds it. A time becomes an LSN here, without Spark: segments show which of them has the first later
entry. The choice is noted beside the checkpoints before anything is loaded (`restores/<run>.json`). So a retry uses the same one, even if
the archive has grown.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import assert_never

import structlog
from pyspark.sql import SparkSession

from herdkeeper_jobs.archive.archive_only_log import archive_only_log, identity_of_archive
from herdkeeper_jobs.archive.parts import WholeLog, log_parts
from herdkeeper_jobs.archive.segment import (
    ArchiveBroken,
    SegmentManifest,
    entry_at,
    holds,
    newest_segment,
    oldest_segment,
    prove,
    read_segment,
    segments,
    segments_one_by_one,
)
from herdkeeper_jobs.archive.window import windows_of_files
from herdkeeper_jobs.checkpoint.base import BaseUnusable, CheckpointBase, candidates, described
from herdkeeper_jobs.checkpoint.origin import require_its_log
from herdkeeper_jobs.checkpoint.run import CheckpointRequest, make_checkpoint
from herdkeeper_jobs.checkpoint.target import Target, TargetRequest
from herdkeeper_jobs.encryption.keys import Key
from herdkeeper_jobs.errors import (
    CheckpointRefused,
    CheckpointRetryable,
    InvariantViolated,
    KeyUnusable,
    NothingToBeginWith,
    RestoreRefused,
    RestoreRetryable,
)
from herdkeeper_jobs.manifests.manifest import Identity, lsn_of_name, manifest_path, manifests_in, read_outline, tablespace_folder
from herdkeeper_jobs.storage.stored_path import StoredPath, create_if_absent, replace_file, sync_folder
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.moment import Time, parse_moment, stamp

_log = structlog.get_logger()
_MOST_WINDOWS = 3
"""At most so many windows in a refusal, the newest ones."""


class Latest(Enum):
    """The last moment that the files have."""

    LATEST = "latest"


Moment = Lsn | Time | Latest


@dataclass(frozen=True, slots=True)
class MomentSource:
    """The moment, the tablespace, and the place of its files.

    `folder`: `<place>/<INSTANCEID>/<tablespace uuid>`, with the checkpoints; the new one goes there. `archived_at`: the place of the log's
    archive. `named`: the manifest that the user gave, None if the folder was given. `key` encrypts the new checkpoint; None: no encryption.
    """

    folder: StoredPath
    archived_at: StoredPath
    at: Moment
    run_id: str
    named: StoredPath | None = None
    key: Key | None = None

    @property
    def asked(self) -> str:
        """The request, as the user wrote it."""
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
    """Parses `latest`, `LEDGER,ENTRY`, or a time of RFC 3339 with its offset. Raises ValueError, naming the text and the forms."""
    if text == Latest.LATEST.value:
        return Latest.LATEST
    found = None if text == "now" else parse_moment(text)
    if found is None:
        raise ValueError(f"{text!r} is not a moment of an archive: expected latest, LEDGER,ENTRY, or a time with its offset")
    return found


def checkpoint_of_moment(start: Callable[[], SparkSession], source: MomentSource) -> StoredPath:
    """Returns the manifest of a moment's checkpoint, which is made if missing. `start` gives the session, once there is work for it.

    Raises:
        RestoreRefused: the files lack that moment; names field, value and the possible moments.
        RestoreRetryable: something is unavailable now.
        InvariantViolated: the files contradict each other.
        KeyUnusable: something is encrypted, and its key is missing.
    """
    if (noted := _noted(source)) is not None:
        _log.info("continuing with the choice of an earlier attempt", manifest=str(noted))
        return noted
    whole = archive_only_log(*_archive(source))
    try:
        chosen = _chosen(whole, source)
        path = chosen if not isinstance(chosen, Lsn) else _made(start, whole, source, chosen)
    except KeyUnusable:
        raise  # no other moment would help
    except NothingToBeginWith as error:
        raise _refusal(whole, source, error.missing, error.no_base) from error
    except (ArchiveBroken, CheckpointRefused) as error:
        raise _refusal(whole, source, str(error)) from error
    except CheckpointRetryable as error:
        raise RestoreRetryable(str(error)) from error
    return _note(source, path, _left_out(whole, source, lsn_of_name(path)))


def left_out_of(source: MomentSource) -> int | None:
    """Returns how many entries after the chosen moment are stamped at or before the requested time: a clock was ahead. None if the archive
    after it could not be read."""
    note = _note_path(source)
    found = json.loads(note.read_bytes()).get("leftOut", 0) if note.is_file() else 0
    return None if found is None else int(found)


def _left_out(whole: WholeLog, source: MomentSource, lsn: Lsn) -> int | None:
    """Counts entries for a message only, so damage after the moment raises nothing."""
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


def _refusal(whole: WholeLog, source: MomentSource, why: str, no_base: str = "") -> RestoreRefused:
    """Names possible moments before the reasons against each base, which may be long: a summary may be cut off."""
    windows = windows_of_files(whole, source.folder, _missed(whole, source) if no_base else None)
    there = "; ".join(str(window) for window in windows[-_MOST_WINDOWS:]) + ": take one of these"
    if not windows:
        there = "these files hold only the moments of the checkpoints themselves (spec.bootstrap.files without a target)"
    looked_at = f". No checkpoint at the place is a base ({no_base})" if no_base else ""
    return RestoreRefused(f"{source.asked}: {why}. From the archive, {there}{looked_at}")


def _missed(whole: WholeLog, source: MomentSource) -> Lsn | Time | None:
    newest = newest_segment(whole.folder, whole.identity)
    end = None if newest is None else newest.last.lsn
    return end if isinstance(source.at, Latest) else source.at


def _archive(source: MomentSource) -> tuple[StoredPath, Identity]:
    """Returns the tablespace's folder in the archive, and the identity of its log."""
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
    """Returns the moment's LSN, or its checkpoint if there is one."""
    lsn = _lsn_of(whole, source)
    path = manifest_path(source.folder, lsn)
    if path.is_file():
        if (contradiction := _why_of_another_log(whole, path)) is not None:
            raise CheckpointRefused(contradiction)
        return path
    if (why := _why_not_archived(whole, lsn)) is not None:
        raise CheckpointRefused(why)
    return lsn


def _why_of_another_log(whole: WholeLog, path: StoredPath) -> str | None:
    """Returns why a checkpoint and the archive are of two histories: a cluster that was put back to an earlier state writes its lost LSNs
    anew. None also if the archive can't tell.
    """
    found = read_outline(path)
    lsn = found.lsn.lsn
    try:
        around = [each for each in segments(whole.folder, whole.identity, lsn, lsn) if each.first.lsn <= lsn <= each.last.lsn]
        times = [entry_at(read_segment(each, whole.folder), lsn).column("timestamp").to_pylist() for each in around]
    except (InvariantViolated, CheckpointRefused, OSError) as error:
        _log.warning("the archive was not compared with the checkpoint", reason=str(error))
        return None
    if found.lsn_timestamp_millis is None or times in ([], [[found.lsn_timestamp_millis]]):
        return None
    there = "another" if times[0] else "no"
    return (
        f"the checkpoint {path.stem} is there, and the archive has {there} entry at its LSN: one of the two is of a time that the cluster "
        "lost. Restore that checkpoint alone (spec.bootstrap.files without a target), or move its manifest away"
    )


def _lsn_of(whole: WholeLog, source: MomentSource) -> Lsn:
    match source.at:
        case Lsn():
            return source.at
        case Time():
            return _lsn_of_time(whole, source, source.at)
        case Latest():
            newest = newest_segment(whole.folder, whole.identity)
            ends = [lsn_of_name(path) for path in manifests_in(source.folder)[-1:]] + ([] if newest is None else [newest.last.lsn])
            if not ends:
                raise CheckpointRefused("nothing is archived, and no checkpoint exists")
            return max(ends)
        case _:
            assert_never(source.at)


def _lsn_of_time(whole: WholeLog, source: MomentSource, time_: Time) -> Lsn:
    """Cuts the log for a time: before its first later entry, see wal/cut.py.

    Nothing before the segment where the search begins may be stamped later. So the search begins at the log's beginning, or at a checkpoint
    that proves it.
    """
    oldest = oldest_segment(whole.folder, whole.identity)
    if oldest is None:
        raise CheckpointRefused("nothing of the log is archived")
    base = _base_that_meets(whole, oldest, candidates(source.folder, whole.identity, time_))
    if isinstance(base, str) and not oldest.begins_log:
        why = f"the archive begins with {oldest.first.lsn}, and no checkpoint exists that holds nothing later"
        raise NothingToBeginWith(why, why, base)
    for segment in segments_one_by_one(whole.folder, whole.identity, base if isinstance(base, Lsn) else None):
        prove(segment, whole.folder)  # its times decide the cut
        if segment.highest_timestamp_millis > time_.millis:
            return _before_first_later(whole, segment, time_)
    end = newest_segment(whole.folder, whole.identity) or oldest
    raise CheckpointRefused(
        f"the archive has no later entry, so entries of that time may be missing: the archive ends with {end.last.lsn}, "
        f"stamped {stamp(end.highest_timestamp_millis)}; take an earlier time, or latest"
    )


def _base_that_meets(whole: WholeLog, oldest: SegmentManifest, found: Iterable[CheckpointBase | BaseUnusable]) -> Lsn | str:
    """Returns the LSN of the newest base, or why there is none. A base that ends before the archive begins is useless: entries in between
    may be later."""
    begin = oldest.first.lsn if oldest.follows is None else oldest.follows.lsn
    reasons: list[BaseUnusable] = []
    for candidate in found:
        if isinstance(candidate, CheckpointBase):
            if candidate.start.at >= begin:
                if (unusable := _of_another_log(whole, oldest, candidate)) is None:
                    return candidate.start.at
                reasons.append(unusable)
                continue
            reasons.append(BaseUnusable(f"{candidate.path.stem}: the entries between it and the archive are unknown"))
            break  # the others end earlier
        reasons.append(candidate)
    return described(reasons)


def _of_another_log(whole: WholeLog, oldest: SegmentManifest, base: CheckpointBase) -> BaseUnusable | None:
    """Returns why a base is not of the archived log: it is of a time that its cluster lost. None also if the archive lacks its entry."""
    newest = newest_segment(whole.folder, whole.identity) or oldest
    if not oldest.first.lsn <= base.start.at <= newest.last.lsn:
        return None
    try:
        require_its_log(whole, log_parts(whole, base.start.at, base.start.at), base)
    except BaseUnusable as unusable:
        return unusable
    except KeyUnusable:
        raise
    except CheckpointRefused as error:
        return BaseUnusable(f"{base.path.stem}: {error}")
    return None


def _before_first_later(whole: WholeLog, segment: SegmentManifest, time_: Time) -> Lsn:
    """Returns the last entry before a segment's first later one."""
    before = None if segment.follows is None else segment.follows.lsn
    for ledger, entry, millis in _entries(segment, whole.folder):
        if millis > time_.millis:
            break
        before = Lsn(ledger, entry)
    if before is None:
        began = stamp(segment.lowest_timestamp_millis)
        raise CheckpointRefused(
            f"the log begins after it, with {segment.first.lsn}, and no entry of that segment is stamped before {began}"
        )
    return before


def _entries(segment: SegmentManifest, folder: StoredPath) -> Iterator[tuple[int, int, int]]:
    rows = read_segment(segment, folder)
    columns = (rows.column(name).to_pylist() for name in ("ledger_id", "entry_id", "timestamp"))
    return zip(*columns, strict=True)


def _why_not_archived(whole: WholeLog, lsn: Lsn) -> str | None:
    """Returns why the archive lacks an LSN that it should have; None if it has it."""
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
    identity, destination = whole.identity, source.folder.parent.parent
    request = CheckpointRequest(identity.herd_root, identity.tablespace, TargetRequest(lsn), destination, source.run_id, key=source.key)
    if tablespace_folder(destination, identity) != source.folder:
        raise InvariantViolated(f"{source.folder} has the files of {whole.identity.path}")
    return make_checkpoint(start, whole, Target(lsn, lsn), request).committed.path


def _note_path(source: MomentSource) -> StoredPath:
    return source.folder / "restores" / f"{source.run_id}.json"


def _noted(source: MomentSource) -> StoredPath | None:
    """Returns the manifest that an earlier attempt of this run chose; None without one, or if the checkpoint is gone."""
    note = _note_path(source)
    if not note.is_file():
        return None
    try:
        # by its LSN, since a path in the note could lead to another tablespace's checkpoint
        path = manifest_path(source.folder, lsn_of_name(Path(json.loads(note.read_bytes())["manifest"])))
    except (ValueError, KeyError, TypeError) as error:
        raise InvariantViolated(f"{note} does not say which checkpoint this restore began with: {error}") from error
    return path if path.is_file() else None


def _note(source: MomentSource, path: StoredPath, left_out: int | None) -> StoredPath:
    """Notes the choice. Returns the one that counts: another driver of this run, on a node that was taken for lost, may have noted its own,
    and have begun to load it."""
    note, content = _note_path(source), json.dumps({"manifest": path.name, "asked": source.asked, "leftOut": left_out}).encode()
    if create_if_absent(note, content):
        return path
    if (noted := _noted(source)) is not None:
        return noted
    replace_file(note, content)
    sync_folder(note.parent)
    return path
