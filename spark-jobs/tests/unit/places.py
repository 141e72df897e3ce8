"""What tests do at a place for checkpoints, be it a folder or an object store."""

from __future__ import annotations

from pathlib import Path

from herdkeeper_jobs.storage.object_path import ObjectPath
from herdkeeper_jobs.storage.stored_path import StoredPath


def write(path: StoredPath, content: bytes) -> None:
    """Writes or replaces a file, without the program's precautions."""
    if isinstance(path, Path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    else:
        path.write(content)


def all_files(place: StoredPath) -> set[str]:
    """The paths of all files below."""
    found = place.below() if isinstance(place, ObjectPath) else (path for path in place.rglob("*") if path.is_file())
    return {path.relative_to(place).as_posix() for path in found}  # type: ignore[arg-type]
