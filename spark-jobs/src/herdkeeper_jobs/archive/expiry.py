"""Deletes the oldest segments of an archive, as far as the operator has released them.

A segment exists by its manifest. So its manifest is renamed first (`.<manifest>.expired`): no reader finds it, but a later run reads from
it which file to delete. Segments go one by one, oldest first, each durably before the next. A kill leaves an archive without a gap that
begins later. Then the files are deleted, and the renamed manifests last. An object store has no rename: there a manifest is copied, then
deleted; while both names exist, so does the segment.

Only useless segments are deleted. The whole archive is checked for gaps, and must hold the LSN that it is kept from. If the base is at the
same destination, its manifest and all files must exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import PurePosixPath

from herdkeeper.protocol.log_archive import ExpiryOrder
from herdkeeper_jobs.archive.segment import Place, SegmentManifest, manifest_path, oldest_segment, read_segment_manifest, segments
from herdkeeper_jobs.errors import CheckpointRefused
from herdkeeper_jobs.manifests.manifest import Outline, read_outline
from herdkeeper_jobs.manifests.manifest import manifest_path as checkpoint_path
from herdkeeper_jobs.storage.stored_path import (
    StoredPath,
    asked_of_each,
    file_size,
    names_from,
    remove_empty_folder,
    remove_file,
    sync_folder,
    take_name,
)
from herdkeeper_jobs.wal.lsn import Lsn

MOST_AT_ONCE = 1000
"""Segments that one run deletes, so that archiving does not wait for long."""
_EXPIRED = ".expired"


@dataclass(frozen=True, slots=True)
class Expiring:
    """The oldest segments, which may go, and the segment that the archive then begins with."""

    going: tuple[SegmentManifest, ...]
    oldest_left: SegmentManifest


def due(place: Place, order: ExpiryOrder, most: int = MOST_AT_ONCE) -> Expiring | None:
    """Returns what may go now, at most `most` segments; None if nothing may, which is cheap to find out.

    Raises:
        CheckpointRefused: the archive lacks the LSN that it is kept from, or the base is not whole: nothing may go.
        InvariantViolated: as `segment.segments`, or the base's manifest can't be read.
    """
    keep_from = Lsn(*order.keep_from)
    oldest = oldest_segment(place.folder, place.identity)
    if oldest is None or keep_from <= oldest.last.lsn:
        return None
    _require_base(place, order)
    chain = segments(place.folder, place.identity)
    going = expired(chain, keep_from)[:most]
    return Expiring(going, chain[len(going)]) if going else None


def expired(chain: Sequence[SegmentManifest], keep_from: Lsn) -> tuple[SegmentManifest, ...]:
    """Returns the segments of a whole archive that end before an LSN. The newest one always stays: it determines where the archive
    continues.

    Raises CheckpointRefused if the archive ends before that LSN: it is another archive, or nothing would be left.
    """
    if not chain or chain[-1].last.lsn < keep_from:
        end = "is empty" if not chain else f"ends with {chain[-1].last.lsn}"
        raise CheckpointRefused(f"the archive must be kept from {keep_from} on, but it {end}: nothing is deleted")
    return tuple(takewhile(lambda segment: segment.last.lsn < keep_from, chain))


def delete_segments(folder: StoredPath, going: Sequence[SegmentManifest]) -> None:
    """Deletes segments, which must be the oldest ones, in log order. Segments deleted by others meanwhile are no error."""
    for segment in going:
        path = manifest_path(folder, segment.first.lsn)
        try:
            take_name(path, path.with_name(f".{path.name}{_EXPIRED}"))
        except FileNotFoundError:
            sync_folder(path.parent)  # another run has just renamed it
    sweep(folder)


def sweep(folder: StoredPath) -> None:
    """Deletes the files of expired segments, also those left by a killed run. A segment whose manifest has both names stays: its removal
    had not finished.

    Deletes nothing if one of the manifests can't be read (raises InvariantViolated, OSError). The same holds if it names a file outside of
    `log/data` or behind a link (CheckpointRefused).
    """
    place = folder / "log" / "segments"
    # Hidden names come first, so the segments' names need not be listed.
    hidden = takewhile(lambda name: name.startswith("."), names_from(place))
    copies = [place / name for name in hidden if name.endswith(_EXPIRED)]
    there = {path for path in copies if path.with_name(path.name[1:].removesuffix(_EXPIRED)).is_file()}
    expired_manifests = [path for path in copies if path not in there]
    files = [_file_of(folder, read_segment_manifest(path)) for path in expired_manifests]
    asked_of_each(files, remove_file)
    for run in {file.parent for file in files}:
        remove_empty_folder(run)
    asked_of_each(expired_manifests, remove_file)


def _file_of(folder: StoredPath, segment: SegmentManifest) -> StoredPath:
    parts = PurePosixPath(segment.path).parts
    links = [folder.joinpath(*parts[:count]) for count in range(1, len(parts) + 1)]
    if parts[:2] != ("log", "data") or len(parts) < 4 or ".." in parts or any(path.is_symlink() for path in links):
        raise CheckpointRefused(f"a segment of {folder} names {segment.path!r}, which is not a file of its archive: the file is kept")
    return folder.joinpath(*parts)


def _require_base(place: Place, order: ExpiryOrder) -> None:
    """Checks that the checkpoint exists for which the archive is kept. One at another destination can't be checked here."""
    if not order.manifest:
        return
    path = place.folder.parent.parent / order.manifest
    if not path.is_file():
        raise CheckpointRefused(f"the checkpoint {order.manifest}, for which the archive is kept, does not exist: nothing is deleted")
    base = read_outline(path)
    if base.identity.path != place.identity.path:
        raise CheckpointRefused(f"the checkpoint {order.manifest} belongs to {base.identity.path}: nothing is deleted")
    if checkpoint_path(place.folder, base.lsn.lsn) != path or base.restart_lsn.lsn != Lsn(*order.keep_from):
        raise CheckpointRefused(f"the checkpoint {order.manifest} does not continue from {Lsn(*order.keep_from)}: nothing is deleted")
    if (missing := _missing_file(place.folder, base)) is not None:
        raise CheckpointRefused(
            f"the checkpoint {order.manifest} lacks {missing}, or it has another size: nothing of the archive is deleted"
        )


def _missing_file(folder: StoredPath, base: Outline) -> str | None:
    sizes = asked_of_each([folder / file.path for file in base.files], _size)
    return next((file.path for file, size in zip(base.files, sizes, strict=True) if size != file.size), None)


def _size(path: StoredPath) -> int | None:
    try:
        return file_size(path)
    except FileNotFoundError:
        return None
