"""A file that exists whole and durable, or not at all, and is never written over: how everything is committed at a destination."""

from __future__ import annotations

from pathlib import Path

from herdkeeper_jobs.checkpoint.data_files import sync_folder
from herdkeeper_jobs.durable_file import link_once, written_beside


def create_if_absent(path: Path, content: bytes) -> bool:
    """Temporary file, fsync, link, fsync of the folder; whether it was created, which False says that somebody else's file is there."""
    if not link_once(written_beside(path, lambda stream: stream.write(content)), path):
        return False
    sync_folder(path.parent)
    sync_folder(path.parent.parent)
    return True
