"""The history of a tablespace's checkpoints, from their manifests, as a value to show. Pure.

Expired checkpoints are absent. The history only shows that a checkpoint's base is gone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from herdkeeper_jobs.archive.window import Window
from herdkeeper_jobs.manifests.manifest import Identity, Making, ManifestBase, Outline
from herdkeeper_jobs.wal.lsn import Lsn

MOST_CHECKPOINTS = 500
"""At most so many manifests are read, the newest."""


@dataclass(frozen=True, slots=True)
class TableSize:
    name: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a history shows of a checkpoint, from its manifest."""

    name: str
    """The manifest's file name."""
    lsn: Lsn
    moment_millis: int | None
    """Time of its last entry by the leader's clock; if unknown, the latest time of all entries."""
    run_id: str
    entries_read: int
    base: ManifestBase | None
    verified: str
    open_transactions: int
    tables: tuple[TableSize, ...]
    files: int
    missing: tuple[str, ...]
    """Its missing files."""
    made: Making | None

    @staticmethod
    def of(name: str, manifest: Outline, missing: tuple[str, ...]) -> Recorded:
        """Extracts it from the manifest in file `name`."""
        known = (manifest.lsn_timestamp_millis, manifest.latest_timestamp_millis)
        return Recorded(
            name=name,
            lsn=manifest.lsn.lsn,
            moment_millis=next((millis for millis in known if millis is not None), None),
            run_id=manifest.run_id,
            entries_read=manifest.entries_read,
            base=manifest.base,
            verified=manifest.verified.words,
            open_transactions=len(manifest.open_transactions),
            tables=tuple(TableSize(table.name, table.rows, table.bytes) for table in manifest.tables),
            files=len(manifest.files),
            missing=missing,
            made=manifest.made,
        )

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables)

    @property
    def bytes(self) -> int:
        return sum(table.bytes for table in self.tables)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file at a manifest's place that can't be read."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The manifests of one tablespace: all names in log order, and the newest ones read."""

    names: tuple[str, ...]
    read: tuple[Recorded | Unreadable, ...]


@dataclass(frozen=True, slots=True)
class WindowUnknown:
    """The archive can't be read."""

    reason: str


class Start(StrEnum):
    """What a checkpoint was made from, and what became of it."""

    WHOLE_LOG = "WholeLog"
    FOLLOWER = "Follower"
    """A follower's tables, since there was no base. They were never a checkpoint."""
    THERE = "There"
    UNREADABLE = "Unreadable"
    REPLACED = "Replaced"
    """Another run made the checkpoint that is there now."""
    GONE = "Gone"
    """It expired or was removed. The checkpoints made from it have all rows in their own files."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Time since the previous checkpoint's moment. `is_whole`: no gone or unreadable checkpoint is known in between."""

    millis: int
    is_whole: bool


@dataclass(frozen=True, slots=True)
class Link:
    """A checkpoint in the history. `gap` is None for the first one, and if a moment is unknown."""

    checkpoint: Recorded
    start: Start
    gap: Gap | None


class WarningLevel(StrEnum):
    LOST = "Lost"
    """A checkpoint can't be restored."""
    DOUBTFUL = "Doubtful"
    """Something is unknown."""
    NOTE = "Note"
    """The existing files are correct."""


@dataclass(frozen=True, slots=True)
class HistoryWarning:
    """What a person should know and no figure shows."""

    level: WarningLevel
    words: str


@dataclass(frozen=True, slots=True)
class History:
    """The history in log order. `older`: number of manifests that were not read. `window` is None if no archive continues from a
    checkpoint."""

    identity: Identity
    entries: tuple[Link | Unreadable, ...]
    older: int
    window: Window | WindowUnknown | None
    warnings: tuple[HistoryWarning, ...]

    @property
    def links(self) -> tuple[Link, ...]:
        """The readable checkpoints."""
        return tuple(entry for entry in self.entries if isinstance(entry, Link))

    @property
    def longest(self) -> Link | None:
        """The checkpoint after the longest gap; None without gaps."""
        known = [(link.gap.millis, link) for link in self.links if link.gap is not None]
        return max(known, key=lambda pair: pair[0])[1] if known else None


def checkpoint_history(identity: Identity, listing: Listing, window: Window | WindowUnknown | None) -> History:
    """Derives gaps, origins and warnings from what was read."""
    recorded = {each.name: each for each in listing.read if isinstance(each, Recorded)}
    unreadable = frozenset(each.name for each in listing.read if isinstance(each, Unreadable))
    existing = frozenset(listing.names)
    bases = (each.base for each in recorded.values() if each.base is not None and each.base.follower is None)
    gone = sorted({base.lsn.lsn for base in bases if base.manifest not in existing})
    entries: list[Link | Unreadable] = []
    before: Recorded | None = None
    whole = True
    for each in listing.read:
        if isinstance(each, Unreadable):
            entries.append(each)
            whole = False
            continue
        gap = _gap(before, each, gone)
        is_whole = gap is not None and gap.is_whole and whole
        entries.append(Link(each, _start(each, recorded, unreadable, existing), None if gap is None else Gap(gap.millis, is_whole)))
        before, whole = each, True
    notable = list(_warnings_of_entries(entries))
    if isinstance(window, WindowUnknown):
        words = f"The archive of the log can't be read, so its range is unknown: {window.reason}"
        notable.insert(0, HistoryWarning(WarningLevel.DOUBTFUL, words))
    return History(identity, tuple(entries), len(listing.names) - len(listing.read), window, tuple(notable))


def _gap(before: Recorded | None, each: Recorded, gone: list[Lsn]) -> Gap | None:
    if before is None or before.moment_millis is None or each.moment_millis is None:
        return None
    between = bisect_left(gone, each.lsn) > bisect_left(gone, before.lsn)
    return Gap(max(0, each.moment_millis - before.moment_millis), not between)


def _start(each: Recorded, recorded: Mapping[str, Recorded], unreadable: frozenset[str], existing: frozenset[str]) -> Start:
    if each.base is None:
        return Start.WHOLE_LOG
    if each.base.follower is not None:
        return Start.FOLLOWER
    if each.base.manifest in unreadable:
        return Start.UNREADABLE
    base = recorded.get(each.base.manifest)
    if base is not None:
        return Start.THERE if base.run_id == each.base.run_id else Start.REPLACED
    return Start.THERE if each.base.manifest in existing else Start.GONE


def _warnings_of_entries(entries: list[Link | Unreadable]) -> Iterator[HistoryWarning]:
    """Yields warnings, newest first."""
    links = [entry for entry in entries if isinstance(entry, Link)]
    before = dict(zip((link.checkpoint.name for link in links[1:]), links, strict=False))
    for entry in reversed(entries):
        if isinstance(entry, Unreadable):
            yield HistoryWarning(WarningLevel.LOST, f"The manifest {entry.name} can't be read: {entry.reason}")
        else:
            yield from _warnings_of_link(entry, before.get(entry.checkpoint.name))


def _warnings_of_link(link: Link, before: Link | None) -> Iterator[HistoryWarning]:
    each, base = link.checkpoint, link.checkpoint.base
    named = f"The checkpoint at {each.lsn}"
    if each.missing:
        lost = f"lacks {len(each.missing):,} of its {each.files:,} files, {each.missing[0]} first: it can't be restored"
        yield HistoryWarning(WarningLevel.LOST, f"{named} {lost}")
    if base is not None and link.start is Start.REPLACED:
        yield HistoryWarning(
            WarningLevel.NOTE, f"{named} goes on from the one at {base.lsn.lsn} of run {base.run_id}, which was replaced since"
        )
    if base is not None and link.start is Start.GONE and before is not None:
        # Retention deletes the base of the oldest checkpoint; only a hole between existing ones is notable.
        hole = f"which is missing, though older ones exist (a gap: the previous one is at {before.checkpoint.lsn})"
        yield HistoryWarning(WarningLevel.NOTE, f"{named} goes on from the one at {base.lsn.lsn}, {hole}")
    if each.moment_millis is None:
        yield HistoryWarning(WarningLevel.NOTE, f"{named} has no moment, so the plots over time leave it out")
    elif before is not None and before.checkpoint.moment_millis is not None and each.moment_millis < before.checkpoint.moment_millis:
        yield HistoryWarning(
            WarningLevel.NOTE, f"{named} has an earlier moment than the one before it, at {before.checkpoint.lsn}: leaders' clocks differ"
        )
