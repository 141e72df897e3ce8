"""Removes a checkpoint: its manifest first, then the files that no other manifest names.

A checkpoint exists by its manifest. So the manifest is first renamed to `.<manifest>.removed-by-<run>`, where no reader finds it. A retry
reads from it which files to delete; it is deleted last. A kill at any point leaves a whole checkpoint or none, and a retry completes the
removal. An object store has no rename: there the manifest is copied, then deleted. A kill in between leaves both, with the same bytes.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

import structlog

from herdkeeper_jobs.errors import CheckpointRefused, InvariantViolated
from herdkeeper_jobs.manifests.manifest import FOLDER, Outline, manifest_path, manifests_in, read_outline, report_path
from herdkeeper_jobs.manifests.run_id import why_no_run_id
from herdkeeper_jobs.storage.object_path import ObjectPath
from herdkeeper_jobs.storage.stored_path import (
    StoredPath,
    asked_of_each,
    found_below,
    names_from,
    remove_empty_folder,
    remove_file,
    sync_folder,
    take_name_of,
)

_log = structlog.get_logger()
MANIFEST = re.compile(rf"{FOLDER}/{FOLDER}/manifests/[0-9]{{20}}-[0-9]{{20}}\.json")
"""A manifest's path below the destination: INSTANCEID, tablespace uuid, `manifests`, LSN."""


@dataclass(frozen=True, slots=True)
class Removed:
    """The removed files and bytes. `existed`: there was a manifest, or an earlier attempt's remains of one. `kept`: the run's files that
    stay, since a manifest names them."""

    existed: bool
    files: int
    bytes: int
    kept: int


def remove_checkpoint(destination: StoredPath, run_id: str, manifest: str | None, *, only_own: bool = False) -> Removed:
    """Removes a run's checkpoint, and what its attempts left behind. What is missing already is no error.

    Args:
        destination: the folder of all checkpoints.
        run_id: the run whose checkpoint is removed.
        manifest: the manifest's path below `destination`; None if no manifest of the run is known: then manifests stay.
        only_own: keep the manifest, and its files, if another run made it.

    Raises:
        CheckpointRefused: the run's id or the manifest's path is invalid.
        InvariantViolated: a manifest can't be read, or leads out of its folder. Nothing was removed then.
        OSError: a folder can't be looked into, so what was left there is unknown.
    """
    if (why := why_no_run_id(run_id)) is not None:
        raise CheckpointRefused(why)
    if manifest is None:
        leftovers = [_sweep(folder, {run_id}, named_files(folder)) for folder in _folders_of(destination, run_id)]
        return Removed(False, *(sum(column) for column in zip(*leftovers, strict=True))) if leftovers else Removed(False, 0, 0, 0)
    if MANIFEST.fullmatch(manifest) is None:
        raise CheckpointRefused(f"--manifest is {manifest!r}: give <INSTANCEID>/<tablespace uuid>/manifests/<ledger>-<entry>.json")
    return _remove(destination / manifest, run_id, only_own=only_own)


def remove_uncommitted(files: Sequence[StoredPath]) -> bool:
    """Tries to remove files that this driver wrote, and that no manifest will name; and their folders, if nothing else is in them.
    Returns whether that was possible.

    What else the run left stays: a driver of the same run, on a node that was taken for lost, may commit that yet.
    """
    try:
        delete(files)
        for level in (0, 1):
            for place in {path.parents[level] for path in files if isinstance(path, Path)}:
                remove_empty_folder(place)
    except OSError as error:
        _log.warning("leftovers stay", files=len(files), reason=str(error))
        return False
    return True


def _remove(path: StoredPath, run_id: str, *, only_own: bool) -> Removed:
    folder = path.parent.parent
    for part in (folder.parent, folder, path.parent, path, folder / "data"):
        require_no_link(part)
    tombstone = path.with_name(f".{path.name}.removed-by-{run_id}")
    # A manifest beside this removal's remains is a newer checkpoint, unless it has the same bytes.
    current = next((found for found in (tombstone, path) if found.is_file()), None)
    if current is None:
        return Removed(False, *_sweep(folder, {run_id}, named_files(folder)))
    content = current.read_bytes()
    outline = _own_manifest(current, path)
    if only_own and outline.run_id != run_id:
        return Removed(False, *_sweep(folder, {run_id}, named_files(folder)))
    files = _files_of(folder, outline)
    is_there = path.is_file() and path.read_bytes() == content
    others = named_files(folder, without=path if is_there else None)
    if is_there and not take_name_of(path, tombstone, content):
        return Removed(False, 0, 0, 0)  # this pod stood still meanwhile: another one removed this checkpoint, and a run made it again
    removed = delete([file for file in files if file not in others])
    swept = _sweep(folder, {run_id, outline.run_id}, others)
    if not manifests_in(folder):
        delete([report_path(folder)])  # no checkpoint is left to show; otherwise the next run makes the report anew
    remove_file(tombstone)
    sync_folder(path.parent)
    return Removed(True, removed[0] + swept[0], removed[1] + swept[1], swept[2])


def _own_manifest(current: StoredPath, path: StoredPath) -> Outline:
    manifest = read_outline(current)
    folder = path.parent.parent
    if manifest.identity.path != f"{folder.parent.name}/{folder.name}":
        raise InvariantViolated(f"{current} says that it belongs to {manifest.identity.path}")
    if manifest_path(folder, manifest.lsn.lsn) != path:
        raise InvariantViolated(f"{current} is for LSN {manifest.lsn.lsn}")
    if why_no_run_id(manifest.run_id) is not None:
        raise InvariantViolated(f"{current} names the run {manifest.run_id!r}, which is not a folder's name")
    return manifest


def _folders_of(destination: StoredPath, run_id: str) -> list[StoredPath]:
    """The tablespaces' folders with files of a run. Raises OSError if one may not be looked into: `Path.glob` would skip it. Other folders
    of a volume, such as `lost+found`, are no tablespaces'."""
    if isinstance(destination, ObjectPath):
        return [run.parent.parent for run in found_below(destination, f"*/*/data/{run_id}")]
    folders = [place for cluster in _identified_in(destination) for place in _identified_in(cluster)]
    return [folder for folder in folders if (folder / "data" / run_id).exists()]


def _identified_in(place: Path) -> list[Path]:
    return [place / name for name in names_from(place) if re.fullmatch(FOLDER, name)]


def named_files(folder: StoredPath, without: StoredPath | None = None) -> set[StoredPath]:
    """The files that a tablespace's manifests name, and copies of manifests under other names. Raises InvariantViolated if one is
    unreadable, since it may name any file. Raises OSError if they can't be listed: `Path.glob` would skip what it may not read."""
    place = folder / "manifests"
    names = (name for name in names_from(place) if fnmatchcase(name, "[0-9]*.json"))
    found = [path for path in (place / name for name in names) if path != without]
    return {file for outline in asked_of_each(found, read_outline) for file in _files_of(folder, outline)}


def _files_of(folder: StoredPath, manifest: Outline) -> list[StoredPath]:
    """All files that a manifest names. Raises InvariantViolated as `_file_of`."""
    return [_file_of(folder, file.path) for file in manifest.files]


def _file_of(folder: StoredPath, name: str) -> StoredPath:
    """A file that a manifest names. Raises InvariantViolated if it is outside of the runs' folders, or behind a link."""
    parts = PurePosixPath(name).parts
    if parts[:1] != ("data",) or len(parts) < 3 or any(part in ("..", ".") for part in parts):
        raise InvariantViolated(f"a manifest of {folder} names {name!r}, which is not in one of its runs' folders")
    for count in range(1, len(parts) + 1):
        require_no_link(folder.joinpath(*parts[:count]))
    return folder.joinpath(*parts)


def require_no_link(path: StoredPath) -> None:
    if path.is_symlink():
        raise InvariantViolated(f"{path} is a symbolic link, and its target is not the checkpoint's; remove the link")


def _sweep(folder: StoredPath, run_ids: Iterable[str], named: set[StoredPath]) -> tuple[int, int, int]:
    """Deletes files of finished runs that no manifest names. Returns deleted files, their bytes, and the number of named files, which
    stay."""
    files, size, kept = 0, 0, 0
    for run_id in sorted(run_ids):
        run = folder / "data" / run_id
        for part in (folder.parent, folder, folder / "data", run):
            require_no_link(part)
        for found, folders in _walked(run):
            count, freed = delete([path for path in found if path not in named])
            files, size, kept = files + count, size + freed, kept + sum(path in named for path in found)
            for path in folders:
                # Folders with a checkpoint's files stay. So do links, which are not followed.
                with contextlib.suppress(OSError):
                    path.rmdir()
    return files, size, kept


def _walked(run: StoredPath) -> Iterator[tuple[list[StoredPath], list[Path]]]:
    """Yields the files below, and a volume's folders that may be empty afterwards, innermost first. Raises OSError if a folder can't be
    listed."""
    if isinstance(run, ObjectPath):
        yield list(run.below()), []
        return
    for place, folders, found in os.walk(run, topdown=False, onerror=_raise_unless_gone):
        yield [Path(place) / name for name in sorted(found)], [*(Path(place) / name for name in folders), Path(place)]


def _raise_unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def delete(paths: Sequence[StoredPath]) -> tuple[int, int]:
    """Deletes files; returns how many existed, and their bytes."""
    removed = [size for size in asked_of_each(paths, remove_file) if size is not None]
    return len(removed), sum(removed)
