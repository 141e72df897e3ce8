"""Takes a checkpoint away: its manifest first, then the files that no other manifest names.

The manifest is what makes a checkpoint exist, so it goes first, and by a rename: under its new name (`.<manifest>.removed-by-<run>`) no
reader finds it, and a retry still finds in it which files were the checkpoint's. It is deleted last. So whoever is killed here leaves a
whole checkpoint or none, and a retry completes what was begun. An object store has no rename: there the manifest is copied, then deleted,
and both are there with the same bytes if the run is killed between the two.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

import structlog

from herdkeeper_jobs.errors import CheckpointRefused, InvariantViolated
from herdkeeper_jobs.manifests.manifest import Outline, manifest_path, manifests, read_outline, report_path
from herdkeeper_jobs.manifests.run_id import why_no_run_id
from herdkeeper_jobs.storage.object_path import ObjectPath
from herdkeeper_jobs.storage.stored_path import StoredPath, found_below, names_from, remove_file, sync_folder, take_name

_log = structlog.get_logger()
MANIFEST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*/manifests/[0-9]{20}-[0-9]{20}\.json")
"""A manifest's path below the destination: INSTANCEID, tablespace uuid, `manifests`, LSN."""


@dataclass(frozen=True, slots=True)
class Removed:
    """What was removed, in files and bytes; `existed`: whether there was a manifest, or what an earlier attempt left of one. `kept` are
    the run's files that a manifest names, which stay."""

    existed: bool
    files: int
    bytes: int
    kept: int


def remove_checkpoint(destination: StoredPath, run_id: str, manifest: str | None) -> Removed:
    """Removes the checkpoint that a run made or found, and what its attempts left behind. What is missing already is no fault.

    Args:
        destination: what all checkpoints lie in.
        run_id: the run whose checkpoint is removed.
        manifest: its manifest's path below `destination`; None when the run made none that is known: then manifests stay.

    Raises:
        CheckpointRefused: the run's id or the manifest's path is none.
        InvariantViolated: a manifest can't be read, or leads out of its folder. Nothing was removed then.
    """
    if (why := why_no_run_id(run_id)) is not None:
        raise CheckpointRefused(why)
    if manifest is None:
        leftovers = [_sweep(folder, {run_id}, _named(folder)) for folder in _folders_of(destination, run_id)]
        return Removed(False, *(sum(column) for column in zip(*leftovers, strict=True))) if leftovers else Removed(False, 0, 0, 0)
    if MANIFEST.fullmatch(manifest) is None:
        raise CheckpointRefused(f"--manifest is {manifest!r}: give <INSTANCEID>/<tablespace uuid>/manifests/<ledger>-<entry>.json")
    return _remove(destination / manifest, run_id)


def remove_leftovers(folder: StoredPath, run_id: str) -> None:
    """Removes what a run has left in a tablespace's folder and no manifest names, as far as that succeeds. Nothing while a manifest can't
    be read: it may name any of it."""
    try:
        _sweep(folder, {run_id}, _named(folder))
    except (InvariantViolated, OSError) as error:
        _log.warning("leftovers stay", run_id=run_id, reason=str(error))


def _remove(path: StoredPath, run_id: str) -> Removed:
    folder = path.parent.parent
    for part in (folder.parent, folder, path.parent, path, folder / "data"):
        _require_no_link(part)
    tombstone = path.with_name(f".{path.name}.removed-by-{run_id}")
    # What is there beside the remains of this very removal is another checkpoint, made since, unless it is the same to the byte.
    current = next((found for found in (tombstone, path) if found.is_file()), None)
    if current is None:
        return Removed(False, *_sweep(folder, {run_id}, _named(folder)))
    gone = _own_manifest(current, path)
    files = _files_of(folder, gone)
    is_there = path.is_file() and path.read_bytes() == current.read_bytes()
    others = _named(folder, without=path if is_there else None)
    if is_there:
        take_name(path, tombstone)
    removed = _delete([file for file in files if file not in others])
    swept = _sweep(folder, {run_id, gone.run_id}, others)
    if not manifests(folder.parent.parent, folder.parent.name, folder.name):
        _delete([report_path(folder)])  # with nothing left to tell of; else the next run makes it anew
    remove_file(tombstone)
    sync_folder(path.parent)
    return Removed(True, removed[0] + swept[0], removed[1] + swept[1], swept[2])


def _own_manifest(current: StoredPath, path: StoredPath) -> Outline:
    manifest = read_outline(current)
    folder = path.parent.parent
    identity = manifest.identity
    if (identity.instance_id, identity.tablespace_uuid) != (folder.parent.name, folder.name):
        raise InvariantViolated(f"{current} says that it belongs to {identity.instance_id}/{identity.tablespace_uuid}")
    if manifest_path(folder, manifest.lsn.lsn) != path:
        raise InvariantViolated(f"{current} is for LSN {manifest.lsn.lsn}")
    if why_no_run_id(manifest.run_id) is not None:
        raise InvariantViolated(f"{current} names the run {manifest.run_id!r}, which is not a folder's name")
    return manifest


def _folders_of(destination: StoredPath, run_id: str) -> list[StoredPath]:
    """The tablespaces' folders in which a run left files."""
    return [run.parent.parent for run in found_below(destination, f"*/*/data/{run_id}")]


def _named(folder: StoredPath, without: StoredPath | None = None) -> set[StoredPath]:
    """The files that the manifests of a tablespace name. InvariantViolated when one can't be read: it may name any. OSError when they
    can't be listed: `Path.glob` would leave out what it may not read."""
    place = folder / "manifests"
    names = (name for name in names_from(place) if fnmatchcase(name, "[0-9]*.json"))
    found = [path for path in (place / name for name in names) if path != without]
    return {file for path in found for file in _files_of(folder, read_outline(path))}


def _files_of(folder: StoredPath, manifest: Outline) -> list[StoredPath]:
    """All that a manifest names. InvariantViolated as `_file_of`."""
    return [_file_of(folder, part.path) for table in manifest.tables for file in table.files for part in file.with_older_forms()]


def _file_of(folder: StoredPath, name: str) -> StoredPath:
    """A file that a manifest names. InvariantViolated for one that is not in a run's folder, or is reached through a link."""
    parts = PurePosixPath(name).parts
    if parts[:1] != ("data",) or len(parts) < 3 or any(part in ("..", ".") for part in parts):
        raise InvariantViolated(f"a manifest of {folder} names {name!r}, which is not in one of its runs' folders")
    for count in range(1, len(parts) + 1):
        _require_no_link(folder.joinpath(*parts[:count]))
    return folder.joinpath(*parts)


def _require_no_link(path: StoredPath) -> None:
    if path.is_symlink():
        raise InvariantViolated(f"{path} is a symbolic link, and its target is not the checkpoint's; remove the link")


def _sweep(folder: StoredPath, run_ids: Iterable[str], named: set[StoredPath]) -> tuple[int, int, int]:
    """Deletes what runs that are over left in their folders and no manifest names. Files, bytes, and files that are named and stay."""
    files, size, kept = 0, 0, 0
    for run_id in sorted(run_ids):
        run = folder / "data" / run_id
        for part in (folder.parent, folder, folder / "data", run):
            _require_no_link(part)
        for found, folders in _walked(run):
            count, freed = _delete([path for path in found if path not in named])
            files, size, kept = files + count, size + freed, kept + sum(path in named for path in found)
            for path in folders:
                # One with files of a checkpoint stays, and so does a link, which nobody follows.
                with contextlib.suppress(OSError):
                    path.rmdir()
    return files, size, kept


def _walked(run: StoredPath) -> Iterator[tuple[list[StoredPath], list[Path]]]:
    """The files below, and the folders of a volume that may be empty when they are gone, from the innermost on."""
    if isinstance(run, ObjectPath):
        yield list(run.below()), []
        return
    for place, folders, found in os.walk(run, topdown=False):
        yield [Path(place) / name for name in sorted(found)], [*(Path(place) / name for name in folders), Path(place)]


def _delete(paths: list[StoredPath]) -> tuple[int, int]:
    """Deletes files; how many were there, and their bytes."""
    removed = [size for size in map(remove_file, paths) if size is not None]
    return len(removed), sum(removed)
