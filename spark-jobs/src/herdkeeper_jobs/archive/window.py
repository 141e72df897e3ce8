"""Which moments can be had from an archive and the checkpoints at a destination: for whoever asked for another one."""

from __future__ import annotations

from collections.abc import Iterator

from herdkeeper_jobs.archive.parts import WholeLog
from herdkeeper_jobs.archive.segment import newest_segment, oldest_segment
from herdkeeper_jobs.checkpoint.errors import InvariantViolated
from herdkeeper_jobs.checkpoint.manifest import Manifest, read_manifest
from herdkeeper_jobs.checkpoint.moment import stamp
from herdkeeper_jobs.checkpoint.reading import manifests
from herdkeeper_jobs.storage.stored_path import StoredPath


def recovery_window(whole: WholeLog, folder: StoredPath) -> str | None:
    """The window in words, for checkpoints in a tablespace's folder; None while there is none. Raises as `segment.segments`."""
    oldest, newest = oldest_segment(whole.folder, whole.identity), newest_segment(whole.folder, whole.identity)
    if oldest is None or newest is None:
        return None
    end = f"to {stamp(newest.highest_timestamp_millis)} (LSN {newest.last.lsn}) can be had"
    if oldest.begins_log:
        return f"moments from {stamp(oldest.lowest_timestamp_millis)} (LSN {oldest.first.lsn}) {end}"
    reached = (base for base in _readable(folder) if oldest.first.lsn <= base.restart_lsn.lsn and base.lsn.lsn <= newest.last.lsn)
    base = min(reached, key=lambda found: found.lsn.lsn, default=None)
    if base is None:
        return None
    begin = "" if base.latest_timestamp_millis is None else f"{stamp(base.latest_timestamp_millis)} "
    return f"moments from {begin}(LSN {base.lsn.lsn}) {end}"


def _readable(folder: StoredPath) -> Iterator[Manifest]:
    for path in manifests(folder.parent.parent, folder.parent.name, folder.name):
        try:
            yield read_manifest(path)
        except (InvariantViolated, OSError):
            continue
