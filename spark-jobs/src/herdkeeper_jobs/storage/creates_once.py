"""Proves of a file system that a name is given once, which nothing in its name or its documentation tells.

Two ways are tried, and the first that keeps the promise is the one in which files are committed: one call that creates a file with all of
its bytes (what clients of object stores send as a conditional request), then a rename, which replaces nothing in HDFS. What fsspec itself
does for file systems without such a call is to look first and to write then: that is not tried.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable
from functools import partial
from io import UnsupportedOperation
from typing import TYPE_CHECKING

from herdkeeper_jobs.storage.file_system_path import FileSystemPath
from herdkeeper_jobs.storage.race import why_not_one

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

Way = Callable[[FileSystemPath, bytes], bool]
_RACES, _RACERS = 6, 2
_proven: dict[tuple[str, str, int], Way] = {}
"""By root, variables and process the way in which files are created there."""


def created_once(path: FileSystemPath, content: bytes) -> bool:
    """Creates a file whole, in the way that is proven; False when there is one. Raises OSError, also where nothing is proven."""
    key = _key(path)
    if key not in _proven and (why := why_not_once(path.parent)) is not None:
        raise OSError(f"{path} can't be created: {why}")
    return _proven[key](path, content)


def why_not_once(folder: FileSystemPath) -> str | None:
    """Why files can't be committed in a file system, tried in this folder; None when they can. Raises OSError."""
    from herdkeeper_jobs.storage.file_system import puts_whole

    ways: dict[str, Way] = {
        **({"creating a file": FileSystemPath.create_by_call} if puts_whole(folder._opened) else {}),
        "renaming a file": FileSystemPath.create_by_rename,
    }
    reasons = []
    for called, way in ways.items():
        why = _why_not(folder, way)
        if why is None:
            _proven[_key(folder)] = way
            return None
        reasons.append(f"{called}: {why}")
    return (
        f"the file system {folder.root} does not create a name only once ({'; '.join(reasons)}), so two jobs could write over each other; "
        "take one that does, such as HDFS by webhdfs://, or a volume or an object store"
    )


def _key(path: FileSystemPath) -> tuple[str, str, int]:
    return (path.root, path.variables, os.getpid())


def _why_not(folder: FileSystemPath, way: Way) -> str | None:
    probe = folder / f".herdkeeper-creates-once-{uuid.uuid4().hex}"
    names = [probe.with_name(f"{probe.name}-{number}") for number in range(_RACES)]
    try:
        return _why_not_twice(probe, way) or next((why for name in names if (why := _why_not_in_a_race(name, way))), None)
    except UnsupportedOperation as error:
        return f"it can't ({error})"
    finally:
        for name in (probe, *names):
            with contextlib.suppress(OSError):
                name.unlink()


def _why_not_twice(name: FileSystemPath, way: Way) -> str | None:
    if not way(name, b"the first"):
        return "a new name is reported as taken"
    if way(name, b"the second") or name.read_bytes() != b"the first":
        return "the second file of a name replaces the first"
    return None


def _why_not_in_a_race(name: FileSystemPath, way: Way) -> str | None:
    """Each of the two has an instance of its own, as in two pods: what one instance keeps in order is no promise of the file system."""
    from herdkeeper_jobs.storage.file_system import opened_apart, using

    with name._as_os_errors():
        instances = [opened_apart(name.root, name.variables) for _ in range(_RACERS)]

    def create(instance: AbstractFileSystem, content: bytes) -> bool:
        with using(instance):
            return way(name, content)

    return why_not_one([partial(create, instance) for instance in instances], name.read_bytes)
