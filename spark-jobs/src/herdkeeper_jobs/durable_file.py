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


def why_not_linked(folder: Path) -> str | None:
    """Why `link_once` can't commit a file in a folder, by trying it; None when it can."""
    name = folder / f".herdkeeper-links-{uuid.uuid4().hex}"
    try:
        given = [link_once(written_beside(name, lambda stream: stream.write(b"")), name) for _ in range(2)]
    except OSError as error:
        return f"files can't be committed in this folder, which takes a hard link: {error}; take a volume that has them, or an object store"
    finally:
        name.unlink(missing_ok=True)
    return None if given == [True, False] else "this folder's volume gives a name twice, so two jobs could write over each other"


def link_once(written: Path, path: Path) -> bool:
    """Gives what was written beside `path` that name. False, and it is gone, when there is a file of that name already."""
    try:
        os.link(written, path)
    except FileExistsError:
        return False
    finally:
        written.unlink()
    return True
