"""Files in folders and object stores: they exist whole or not at all, are committed once, and never overwritten.

A folder is a `pathlib.Path`, a prefix of an object store an `ObjectPath`, with the same interface for readers. Writing differs, and is
here: a folder commits by `link()` and fsync, an object store by a conditional create.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, TypeVar, assert_never, cast

from xxhash import xxh3_128

from herdkeeper_jobs.durable_file import link_once, why_not_linked, written_beside
from herdkeeper_jobs.storage.object_path import ObjectPath, ObjectWriter

StoredPath = Path | ObjectPath
"""A file or a folder of a volume, or of an object store."""
AnyPath = TypeVar("AnyPath", bound=Path | ObjectPath)
"""A path of one kind; functions return the same kind."""
Answer = TypeVar("Answer")
_READ_AT_ONCE = 1 << 23
ASKED_AT_ONCE = 16


def stored_path(text: str, variables: str = "") -> StoredPath:
    """Parses `s3://bucket/prefix`, `gs://…`, `az://…`, or the path of a folder. `variables`: the prefix of the variables that open the
    store. Raises ValueError for another address."""
    return ObjectPath.parse(text, variables) if "://" in text else Path(text)


def stored_argument(argument: str, text: str, variables: str, refusal: type[ValueError]) -> StoredPath:
    """`stored_path` of a program's argument. Raises `refusal`, naming the argument."""
    try:
        return stored_path(text, variables)
    except ValueError as error:
        raise refusal(f"{argument}: {error}") from error


def below(folder: AnyPath, *names: str) -> AnyPath:
    """The path of a folder's content."""
    return cast("AnyPath", folder.joinpath(*names))


def found_below(folder: AnyPath, pattern: str) -> list[AnyPath]:
    """Returns what matches a pattern below a folder, sorted. Raises OSError if an object store does not answer."""
    return cast("list[AnyPath]", sorted(folder.glob(pattern)))


def names_from(folder: StoredPath, first: str = "") -> Iterator[str]:
    """Yields the names of the files directly in a folder, in order, from `first` on. A store's pages are requested as they are needed.
    Raises OSError."""
    match folder:
        case Path():
            yield from sorted(name for name in os.listdir(folder) if name >= first) if folder.is_dir() else ()
        case ObjectPath():
            yield from folder.names_from(first)
        case _:
            assert_never(folder)


def names_below(folder: StoredPath) -> Iterator[str]:
    """Yields all files below a folder, at any depth, by their relative path. A store is listed once, which raises OSError."""
    match folder:
        case Path():
            for place, _, names in os.walk(folder):
                above = Path(place).relative_to(folder)
                yield from ((above / name).as_posix() for name in names)
        case ObjectPath():
            yield from (path.relative_to(folder).as_posix() for path in folder.below())
        case _:
            assert_never(folder)


def asked_of_each(paths: Sequence[StoredPath], ask: Callable[[StoredPath], Answer]) -> list[Answer]:
    """Calls `ask` for each path and returns the answers in order: several at a time in an object store. Raises as `ask`."""
    if len(paths) < 2 or isinstance(paths[0], Path):
        return [ask(path) for path in paths]
    with ThreadPoolExecutor(ASKED_AT_ONCE) as asking:
        return list(asking.map(ask, paths))


def why_unusable(destination: StoredPath, *, writes: bool) -> str | None:
    """Returns why nothing can be read or, with `writes`, committed there; None if it can. Raises OSError if a store does not answer,
    or if a volume is full."""
    match destination:
        case Path():
            if not destination.is_dir():
                return "no such folder; mount the volume there"
            return why_not_linked(destination) if writes else None
        case ObjectPath():
            return destination.why_unusable(writes=writes)
        case _:
            assert_never(destination)


def create_if_absent(path: StoredPath, content: bytes) -> bool:
    """Commits a file durably. Returns False if another one exists. Raises OSError if a store then has other bytes than it acknowledged."""
    match path:
        case Path():
            if not link_once(written_beside(path, lambda stream: stream.write(content)), path):
                return False
            sync_folder(path.parent)
            sync_folder(path.parent.parent)
            return True
        case ObjectPath():
            if not path.create(content):
                # A request whose answer was lost is repeated, and refused because of its own first attempt.
                return path.read_bytes() == content
            if path.read_bytes() != content:
                raise OSError(f"{path} has other bytes than were acknowledged")
            return True
        case _:
            assert_never(path)


def replace_file(path: StoredPath, content: bytes) -> None:
    """Creates or replaces a file: readers get the old or the new content, whole. Raises OSError."""
    match path:
        case Path():
            written_beside(path, lambda stream: stream.write(content)).replace(path)
        case ObjectPath():
            path.write(content)
        case _:
            assert_never(path)


def new_file(path: StoredPath) -> NewFile:
    """Opens a new file under a name that nobody else uses, durable once it is closed. Raises FileExistsError in a folder if it exists."""
    match path:
        case Path():
            path.parent.mkdir(parents=True, exist_ok=True)
            return _SyncedFile(path.open("xb"))
        case ObjectPath():
            return path.stream()
        case _:
            assert_never(path)


class _SyncedFile:
    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, data: bytes) -> int:
        return self._stream.write(data)

    def close(self) -> None:
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._stream.close()


NewFile = _SyncedFile | ObjectWriter


def file_hash(path: StoredPath) -> str:
    """XXH3-128 of a file's bytes, 32 hexadecimal digits. Raises OSError."""
    hashed = xxh3_128()
    with path.open("rb") as stream:
        while block := stream.read(_READ_AT_ONCE):
            hashed.update(block)
    return hashed.hexdigest()


def file_size(path: StoredPath) -> int:
    """Size in bytes. Raises OSError, FileNotFoundError without a file."""
    return path.size() if isinstance(path, ObjectPath) else path.stat().st_size


def modified_millis(path: StoredPath) -> int:
    """When a file was written, in milliseconds since the epoch, by the clock of its place. Raises OSError, FileNotFoundError without a
    file."""
    return path.modified_millis() if isinstance(path, ObjectPath) else path.stat().st_mtime_ns // 1_000_000


def sync_folder(path: StoredPath) -> None:
    """Makes the names in a folder durable by fsync. An object store needs none."""
    if isinstance(path, ObjectPath):
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def take_name(path: StoredPath, other: StoredPath) -> None:
    """Renames a file, replacing an existing one. An object is copied, then removed: a kill in between leaves both, with the same bytes."""
    match path, other:
        case Path(), Path():
            path.rename(other)
            sync_folder(path.parent)
        case ObjectPath(), ObjectPath():
            path.take_name(other)
        case _:
            raise ValueError(f"{path} and {other} are not at the same place")


def take_name_of(path: StoredPath, other: StoredPath, content: bytes) -> bool:
    """As `take_name`, for a file with this content. Returns False if it has another one by now: then it keeps its name."""
    match path, other:
        case Path(), Path():
            take_name(path, other)
            if other.read_bytes() == content:
                return True
            link_once(other, path)
            sync_folder(path.parent)
            return False
        case ObjectPath(), ObjectPath():
            other.write(content)
            if is_same := path.read_bytes() == content:
                path.unlink()
            else:
                other.unlink()
            return is_same
        case _:
            raise ValueError(f"{path} and {other} are not at the same place")


def remove_file(path: StoredPath) -> int | None:
    """Removes a file; returns its size, or None if it did not exist."""
    try:
        size = path.size() if isinstance(path, ObjectPath) else path.lstat().st_size
        path.unlink()
    except FileNotFoundError:
        return None
    return size


def remove_empty_folder(folder: StoredPath) -> None:
    """Makes removals from a folder durable by fsync, and removes the folder if it is empty. An object store has no folders."""
    if isinstance(folder, Path) and folder.is_dir():
        sync_folder(folder)  # else a file could come back that nobody knows any more
        with contextlib.suppress(OSError):
            folder.rmdir()
