"""Files that are whole or not there, whenever the process or the machine ends."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import IO


def written_beside(path: Path, write: Callable[[IO[bytes]], object]) -> Path:
    """A file in the folder of `path`, which is made, on the disk; readers of the folder don't take it for one of theirs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with partial.open("xb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException:
        # On a full volume each try would take more of it.
        partial.unlink(missing_ok=True)
        raise
    return partial


def link_once(written: Path, path: Path) -> bool:
    """Gives what was written beside `path` that name. False, and it is gone, when there is a file of that name already."""
    try:
        os.link(written, path)
    except FileExistsError:
        return False
    finally:
        written.unlink()
    return True
