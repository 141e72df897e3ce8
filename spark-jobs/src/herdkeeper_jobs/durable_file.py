"""Writes files that exist whole or not at all, whenever the process or the machine ends."""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import IO

FULL = (errno.ENOSPC, errno.EDQUOT)
"""Errors of a volume without room."""


def written_beside(path: Path, write: Callable[[IO[bytes]], object]) -> Path:
    """Writes a durable file beside `path`, creating the folder. Its name is hidden from readers of the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with partial.open("xb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException:
        # On a full volume each retry would take more of it.
        partial.unlink(missing_ok=True)
        raise
    return partial


def why_not_linked(folder: Path) -> str | None:
    """Tests whether `link_once` can commit a file in a folder; returns why not, None if it can. Raises OSError if there is no room for the
    test: that may change."""
    name = folder / f".herdkeeper-links-{uuid.uuid4().hex}"
    try:
        given = [link_once(written_beside(name, lambda stream: stream.write(b"")), name) for _ in range(2)]
    except OSError as error:
        if error.errno in FULL:
            raise
        return f"files can't be committed in this folder without hard links: {error}; use another volume, or an object store"
    finally:
        name.unlink(missing_ok=True)
    return None if given == [True, False] else "this folder's volume gives a name twice, so two jobs could write over each other"


def link_once(written: Path, path: Path) -> bool:
    """Commits a file written beside `path` under that name. Returns False, and deletes the file, if the name is taken."""
    try:
        os.link(written, path)
    except FileExistsError:
        return False
    finally:
        written.unlink()
    return True
