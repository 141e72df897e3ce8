"""Which moments can be had from an archive and the checkpoints at a destination."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from herdkeeper_jobs.archive.parts import WholeLog
from herdkeeper_jobs.archive.segment import ends
from herdkeeper_jobs.checkpoint.errors import InvariantViolated
from herdkeeper_jobs.checkpoint.manifest import Outline, read_outline
from herdkeeper_jobs.checkpoint.moment import stamp
from herdkeeper_jobs.checkpoint.reading import manifests
from herdkeeper_jobs.storage.stored_path import StoredPath
from herdkeeper_jobs.wal.lsn import Lsn


@dataclass(frozen=True, slots=True)
class Window:
    """The moments that can be had, each as the LSN and its time in milliseconds; that of the first one is None where an earlier version
    made the checkpoint that it is."""

    begin: Lsn
    begin_millis: int | None
    end: Lsn
    end_millis: int

    def __str__(self) -> str:
        begin = "" if self.begin_millis is None else f"{stamp(self.begin_millis)} "
        return f"moments from {begin}(LSN {self.begin}) to {stamp(self.end_millis)} (LSN {self.end}) can be had"


def recovery_window(whole: WholeLog, folder: StoredPath) -> Window | None:
    """The window, for checkpoints in a tablespace's folder; None while there is none. Raises as `segment.segments`."""
    found = ends(whole.folder, whole.identity)
    if found is None:
        return None
    oldest, newest = found
    end = (newest.last.lsn, newest.highest_timestamp_millis)
    if oldest.begins_log:
        return Window(oldest.first.lsn, oldest.lowest_timestamp_millis, *end)
    reached = (base for base in _readable(folder) if oldest.first.lsn <= base.restart_lsn.lsn and base.lsn.lsn <= newest.last.lsn)
    base = next(reached, None)
    return None if base is None else Window(base.lsn.lsn, base.latest_timestamp_millis, *end)


def _readable(folder: StoredPath) -> Iterator[Outline]:
    """In log order."""
    for path in manifests(folder.parent.parent, folder.parent.name, folder.name):
        try:
            yield read_outline(path)
        except (InvariantViolated, OSError):
            continue
