"""What tests do at a place for checkpoints: a folder, an object store or another file system."""

from __future__ import annotations

from pathlib import Path

from herdkeeper_jobs.storage.remote_path import RemotePath
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
    found = place.below() if isinstance(place, RemotePath) else (path for path in place.rglob("*") if path.is_file())
    return {path.relative_to(place).as_posix() for path in found}  # type: ignore[arg-type]
