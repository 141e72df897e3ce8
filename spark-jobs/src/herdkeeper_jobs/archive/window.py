"""Which moments can be had from an archive and the checkpoints at a destination."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from herdkeeper_jobs.archive.parts import WholeLog
from herdkeeper_jobs.archive.segment import SegmentManifest, ends, readable_segments
from herdkeeper_jobs.errors import InvariantViolated
from herdkeeper_jobs.manifests.manifest import Outline, manifests, read_outline
from herdkeeper_jobs.storage.stored_path import StoredPath
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.moment import stamp


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


def windows_of_files(whole: WholeLog, folder: StoredPath) -> tuple[Window, ...]:
    """The windows of an archive that may lack segments, in log order: one for each of its parts that has something to begin with.

    Reads the manifests of all segments. Raises OSError.
    """
    bases = tuple(_readable(folder))
    windows = (_window_of(part, bases) for part in _whole_parts(whole))
    return tuple(window for window in windows if window is not None)


def _whole_parts(whole: WholeLog) -> Iterator[list[SegmentManifest]]:
    """Segments that follow one another without a gap. One that can't be read, or is another log's, is as good as missing."""
    part: list[SegmentManifest] = []
    for segment in readable_segments(whole.folder, whole.identity):
        if part and segment.follows != part[-1].last:
            yield part
            part = []
        part.append(segment)
    if part:
        yield part


def _window_of(part: Sequence[SegmentManifest], bases: Sequence[Outline]) -> Window | None:
    first, last = part[0], part[-1].last.lsn
    end = (last, max(segment.highest_timestamp_millis for segment in part))
    if first.begins_log:
        return Window(first.first.lsn, first.lowest_timestamp_millis, *end)
    base = next((base for base in bases if first.first.lsn <= base.restart_lsn.lsn and base.lsn.lsn <= last), None)
    return None if base is None else Window(base.lsn.lsn, base.latest_timestamp_millis, *end)


def _readable(folder: StoredPath) -> Iterator[Outline]:
    """In log order."""
    for path in manifests(folder.parent.parent, folder.parent.name, folder.name):
        try:
            yield read_outline(path)
        except (InvariantViolated, OSError):
            continue
