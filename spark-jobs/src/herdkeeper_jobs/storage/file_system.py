"""Opens file systems by URL, with options of a mounted Secret.

Each entry of the Secret is an option as fsspec's class for the scheme has it, e.g. `user` or `token`: a text, or under a name that ends
with `.json` a value of another type (`use_https.json` with `true`). Entries with another dot in the name are files that an option can name.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Any

import fsspec
from fsspec.asyn import AsyncFileSystem

from herdkeeper.shared.names import FILE_SYSTEM_OPTIONS_VARIABLE
from herdkeeper_jobs.storage.file_system_path import FileSystemNotConfiguredError
from herdkeeper_jobs.storage.web_hdfs import PatientWebHdfs

_JSON = ".json"
_apart: ContextVar[fsspec.AbstractFileSystem | None] = ContextVar("_apart", default=None)
fsspec.register_implementation("webhdfs", PatientWebHdfs, clobber=True)


def opened(root: str, variables: str = "") -> fsspec.AbstractFileSystem:
    """The file system at a URL without a path, which remembers nothing of what it listed. `variables` is what the name of the variable
    begins with that says where its options are. Raises FileSystemNotConfiguredError."""
    apart = _apart.get()
    found = apart if apart is not None else _opened(root, variables, os.getpid())
    found.invalidate_cache()
    return found


@contextmanager
def using(instance: fsspec.AbstractFileSystem) -> Iterator[None]:
    """Within it this thread, and no other, has that instance for the file system that is opened. For one at a time."""
    before = _apart.set(instance)
    try:
        yield
    finally:
        _apart.reset(before)


@lru_cache(maxsize=8)
def _opened(root: str, variables: str, process: int) -> fsspec.AbstractFileSystem:
    """One per process: a fork does not inherit the threads and connections that answer."""
    del process
    return opened_apart(root, variables)


def opened_apart(root: str, variables: str) -> fsspec.AbstractFileSystem:
    """An instance that nobody else in this process has, as another process would have. Raises as `opened`."""
    folder = os.environ.get(f"{variables}{FILE_SYSTEM_OPTIONS_VARIABLE}")
    options = options_of(Path(folder)) if folder else {}
    try:
        found, _ = fsspec.core.url_to_fs(f"{root}/", **options, skip_instance_cache=True)
    except ImportError as error:
        raise FileSystemNotConfiguredError(f"{root} can't be opened: {error}; run the job with an image that has that package") from None
    except (ValueError, TypeError) as error:
        raise FileSystemNotConfiguredError(f"{root} can't be opened: {error}; correct the URL, or the options in the Secret") from None
    return found


def puts_whole(found: fsspec.AbstractFileSystem) -> bool:
    """Whether it has a call of its own that puts a file there with all of its bytes, as clients of object stores do. What fsspec does for
    the others is to write a file that anybody may see meanwhile."""
    return isinstance(found, AsyncFileSystem) or type(found).pipe_file is not fsspec.AbstractFileSystem.pipe_file


def options_of(folder: Path) -> dict[str, Any]:
    """The options of a mounted Secret. Raises FileSystemNotConfiguredError for a folder that is not there, and for what is no JSON."""
    if not folder.is_dir():
        raise FileSystemNotConfiguredError(f"{FILE_SYSTEM_OPTIONS_VARIABLE} is {str(folder)!r}: no such folder; mount the Secret there")
    options: dict[str, Any] = {}
    for path in sorted(folder.iterdir()):
        name, is_json = path.name.removesuffix(_JSON), path.name.endswith(_JSON)
        if "." in name or not path.is_file():
            continue
        text = path.read_text().rstrip("\n")
        try:
            options[name] = json.loads(text) if is_json else text
        except ValueError:
            raise FileSystemNotConfiguredError(f"the entry {path.name} of the file system's options is not JSON; correct it") from None
    return options
