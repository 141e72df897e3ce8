"""The moments that an archive and the checkpoints at a destination can restore."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

from herdkeeper_jobs.archive.parts import WholeLog
from herdkeeper_jobs.archive.segment import SegmentManifest, ends, readable_segments
from herdkeeper_jobs.errors import InvariantViolated
from herdkeeper_jobs.manifests.manifest import Outline, manifests_in, read_outline
from herdkeeper_jobs.storage.stored_path import StoredPath
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.moment import Time, stamp


@dataclass(frozen=True, slots=True)
class Window:
    """A recovery window: both ends as LSN and time in milliseconds. `begin_millis` is None if an earlier version made the checkpoint
    there.

    The end's own time is no moment of it: an entry that is not archived may have the same. Its LSN is one.
    """

    begin: Lsn
    begin_millis: int | None
    end: Lsn
    end_millis: int

    def holds(self, at: Lsn | Time) -> bool:
        match at:
            case Lsn():
                return self.begin <= at <= self.end
            case Time(millis, _):
                return self.begin_millis is not None and self.begin_millis <= millis < self.end_millis
            case _:
                assert_never(at)

    def __str__(self) -> str:
        lsns = f"the LSNs from {self.begin} to {self.end}"
        if self.begin_millis is None or self.begin_millis >= self.end_millis:
            return f"{lsns} can be had"
        return f"{lsns}, and times from {stamp(self.begin_millis)} to before {stamp(self.end_millis)}, can be had"


def recovery_window(whole: WholeLog, folder: StoredPath, missed: Lsn | Time | None = None) -> Window | None:
    """Returns the window for the checkpoints in a tablespace's folder; None without one. `missed`: a moment for which no base was found; a
    window then begins after it, or ends before. Raises as `segment.segments`.
    """
    found = ends(whole.folder, whole.identity)
    return None if found is None else _window_of(found, lambda: _readable(folder), missed)


def windows_of_files(whole: WholeLog, folder: StoredPath, missed: Lsn | Time | None) -> tuple[Window, ...]:
    """Returns the windows of an archive that may lack segments, in log order: one per gapless part with a base or the log's beginning.
    `missed`: as in `recovery_window`.

    Reads all segments' manifests. Raises OSError.
    """
    bases = tuple(_readable(folder))
    windows = (_window_of(part, lambda: bases, missed) for part in _whole_parts(whole))
    return tuple(window for window in windows if window is not None)


def _whole_parts(whole: WholeLog) -> Iterator[list[SegmentManifest]]:
    """Yields gapless parts. An unreadable segment, or one of another log, counts as missing."""
    part: list[SegmentManifest] = []
    for segment in readable_segments(whole.folder, whole.identity):
        if part and segment.follows != part[-1].last:
            yield part
            part = []
        part.append(segment)
    if part:
        yield part


def _window_of(part: Sequence[SegmentManifest], bases: Callable[[], Iterable[Outline]], missed: Lsn | Time | None) -> Window | None:
    """The window of a gapless archive, of which the first and the last segment are enough."""
    first, last = part[0], part[-1].last.lsn
    end = (last, max(segment.highest_timestamp_millis for segment in part))

    def begun_by(found: Iterable[Outline]) -> Window | None:
        base = next((base for base in found if first.first.lsn <= base.restart_lsn.lsn and base.lsn.lsn <= last), None)
        return None if base is None else Window(base.lsn.lsn, base.latest_timestamp_millis, *end)

    window = Window(first.first.lsn, first.lowest_timestamp_millis, *end) if first.begins_log else begun_by(bases())
    if window is None or missed is None or not window.holds(missed):
        return window
    return begun_by(base for base in bases() if not base.holds_nothing_after(missed))


def _readable(folder: StoredPath) -> Iterator[Outline]:
    for path in manifests_in(folder):
        try:
            yield read_outline(path)
        except (InvariantViolated, OSError):
            continue
