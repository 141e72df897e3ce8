"""A file that exists whole and durable, or not at all, and is never written over: how everything is committed at a destination."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from herdkeeper_jobs.checkpoint.data_files import sync_folder


def create_if_absent(path: Path, content: bytes) -> bool:
    """Temporary file, fsync, link, fsync of the folder; whether it was created, which False says that somebody else's file is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with temporary.open("xb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        temporary.unlink()
    sync_folder(path.parent)
    sync_folder(path.parent.parent)
    return True
