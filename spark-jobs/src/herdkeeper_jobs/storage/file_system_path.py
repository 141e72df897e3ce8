"""Files of a file system that fsspec knows by its URL, e.g. HDFS: `webhdfs://namenode:9870/backups`.

A path holds the URL only, and what the names of the variables begin with that say where its options are, so that Spark can pickle it: each
process opens the file system with its own mounted Secret (`file_system`). A file is committed in the way that was proven there
(`creates_once`), never in one that is only believed of it.
"""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import UnsupportedOperation
from typing import IO, TYPE_CHECKING, Any

from herdkeeper_jobs.storage.remote_path import NewFile, RemotePath, read_by_ranges

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_ADDRESS = re.compile(r"(?P<place>[a-z][a-z0-9+-]*://[A-Za-z0-9._-]+(:[0-9]{1,5})?)(?P<key>(/[^/]+)*)/?")
_OF_THE_POD = ("file", "local", "memory")
_WRITTEN_AT_ONCE = 8 << 20
"""What a file that is being written holds in memory."""
_QUERY = re.compile(r"\?\S+")
_REFUSALS = ("", "AccessControlException", "AuthorizationException", "SecurityException")
_LEAST = {"read": "list and read", "write": "list, read, write, rename and delete"}


class FileSystemNotConfiguredError(ValueError):
    """A file system can't be opened as it is named; the message says why, and the fix."""


@dataclass(frozen=True, slots=True)
class FileSystemPath(RemotePath):
    """A file or a folder. `root` is the URL without a path, `key` the path without its first `/`."""

    root: str
    key: str = ""
    variables: str = ""

    @staticmethod
    def parse(url: str, variables: str = "") -> FileSystemPath:
        """From a URL. Raises ValueError for one without a host, and for what would be in the pod itself."""
        found = _ADDRESS.fullmatch(url)
        if found is None or any(part in (".", "..") for part in found["key"].split("/")):
            raise ValueError(
                f"{url!r} names no file system: give the URL of a folder, e.g. webhdfs://namenode:9870/backups, without user and password"
            )
        if url.split("://", maxsplit=1)[0] in _OF_THE_POD:
            raise ValueError(f"{url!r} is in the pod itself and is lost with it: mount a volume and give its path")
        return FileSystemPath(found["place"], found["key"].strip("/"), variables)

    @property
    def place(self) -> str:
        """The URL without a path."""
        return self.root

    def named(self, key: str) -> FileSystemPath:
        """Another path in the same file system."""
        return FileSystemPath(self.root, key, self.variables)

    def size(self) -> int:
        """As the file system tells. FileNotFoundError for a folder, too."""
        with self._as_os_errors():
            found = self._opened.info(self._inside)
        if found["type"] != "file":
            raise FileNotFoundError(f"{self} is a folder")
        return int(found["size"])

    def read_bytes(self) -> bytes:
        """All of the file."""
        read, size = self._reader()
        content = read(0, size)
        if len(content) != size:
            raise OSError(f"{self}: {len(content)} bytes came instead of {size}")
        return content

    def open(self, mode: str = "rb") -> IO[bytes]:
        """The file, of which no more is asked for than is read."""
        if mode != "rb":
            raise ValueError(f"mode {mode!r}: a file is opened for reading only")
        return read_by_ranges(*self._reader())

    def _reader(self) -> tuple[Callable[[int, int], bytes], int]:
        with self._as_os_errors():
            file = self._opened.open(self._inside, "rb", cache_type="none")
            size = file.seek(0, os.SEEK_END)

        def read(first: int, length: int) -> bytes:
            with self._as_os_errors():
                file.seek(first)
                return bytes(file.read(length)) if length else b""

        return read, int(size)

    def create(self, content: bytes) -> bool:
        """In the way that is proven of the file system. OSError where none is."""
        from herdkeeper_jobs.storage.creates_once import created_once

        return created_once(self, content)

    def create_by_call(self, content: bytes) -> bool:
        """Lets the file system create it, in one call."""
        try:
            with self._as_os_errors():
                self._opened.pipe_file(self._inside, content, mode="create")
        except FileExistsError:
            return False
        return True

    def create_by_rename(self, content: bytes) -> bool:
        """Writes it beside, and gives it its name, which a file system may refuse by an error or in silence."""
        beside = self._beside()
        beside._write_whole(content)
        try:
            try:
                with self._as_os_errors():
                    self._opened.mv(beside._inside, self._inside)
            except FileNotFoundError:
                raise
            except OSError:
                if beside.is_file() and not self.is_file():
                    raise
            # Whoever gets no answer, or one that says nothing, sees by what is left whose the name is.
            if not beside.is_file():
                return True
            if self.is_file():
                return False
            raise OSError(f"{self}: the file system did not rename {beside.name} to it, without a reason")
        finally:
            with contextlib.suppress(OSError):
                beside.unlink()

    def write(self, content: bytes) -> None:
        """Makes or replaces the file. Where a file system can't put it there whole, what is there is removed first: for a moment there is
        none."""
        from herdkeeper_jobs.storage.file_system import puts_whole

        if puts_whole(self._opened):
            self._write_whole(content)
            return
        beside = self._beside()
        beside._write_whole(content)
        try:
            self.unlink()
            with self._as_os_errors():
                self._opened.mv(beside._inside, self._inside)
        finally:
            with contextlib.suppress(OSError):
                beside.unlink()
        if self.read_bytes() != content:
            raise OSError(f"{self} has other bytes than were written: another process wrote it at the same time")

    def stream(self) -> NewFile:
        """Written block by block; what is never closed may be there in part."""
        with self._as_os_errors():
            file = self._into_folder(lambda: self._opened.open(self._inside, "wb", block_size=_WRITTEN_AT_ONCE))
        return _Writer(self, file)

    def _write_whole(self, content: bytes) -> None:
        with self._as_os_errors():
            self._into_folder(lambda: self._opened.pipe_file(self._inside, content))

    def _into_folder(self, write: Callable[[], Any]) -> Any:
        """Many file systems make folders by themselves, and some have none."""
        try:
            return write()
        except FileNotFoundError:
            self._opened.makedirs(self.parent._inside, exist_ok=True)
            return write()

    def _beside(self) -> FileSystemPath:
        """A name that nobody else takes, and that readers of the folder don't take for one of theirs."""
        return self.with_name(f".{self.name}.{uuid.uuid4().hex}")

    def take_name(self, other: FileSystemPath) -> None:
        """By a rename, where the file system is none that puts files whole: those copy for one."""
        from herdkeeper_jobs.storage.file_system import puts_whole

        if puts_whole(self._opened):
            super(FileSystemPath, self).take_name(other)
            return
        other.unlink()
        with self._as_os_errors():
            self._opened.mv(self._inside, other._inside)
        if self.is_file():
            raise OSError(f"{self}: the file system did not rename it to {other.name}, without a reason")

    def unlink(self) -> None:
        """Removes the file; none is no fault."""
        with contextlib.suppress(FileNotFoundError), self._as_os_errors():
            self._opened.rm_file(self._inside)

    def remove_empty_folders(self) -> None:
        """From the innermost on. Some file systems have no folders, or don't remove them: that is no fault."""
        for child, is_folder in self._entries():
            if is_folder:
                child.remove_empty_folders()
        if self.key and not self._entries():
            # Clients have the one or the other, and neither takes what has something in it.
            for remove in (self._opened.rmdir, self._opened.rm_file):
                with contextlib.suppress(OSError), self._as_os_errors():
                    remove(self._inside)

    def below(self) -> Iterator[FileSystemPath]:
        """All files, by one listing of each folder."""
        return iter(sorted(self._files()))

    def _files(self) -> Iterator[FileSystemPath]:
        for child, is_folder in self._entries():
            if is_folder:
                yield from child._files()
            else:
                yield child

    def names_from(self, first: str) -> Iterator[str]:
        """Out of one listing of all that is there."""
        return (child.name for child, is_folder in self._entries() if not is_folder and child.name >= first)

    def children(self) -> list[FileSystemPath]:
        """Files and folders."""
        return [child for child, _ in self._entries()]

    def _entries(self) -> list[tuple[FileSystemPath, bool]]:
        """What is right below, sorted, and whether it is a folder. fsspec's own walks leave out what they can't read."""
        try:
            with self._as_os_errors():
                listed = self._opened.ls(self._inside, detail=True)
        except FileNotFoundError:
            return []
        own = self._inside.strip("/")
        found = ((str(entry["name"]).rstrip("/"), entry["type"] == "directory") for entry in listed)
        return sorted((self / name.rsplit("/", 1)[-1], is_folder) for name, is_folder in found if name.strip("/") != own)

    def why_unusable(self, *, writes: bool) -> str | None:
        """Whether it can be opened and answers and, with `writes`, whether it creates a name once."""
        from herdkeeper_jobs.storage.creates_once import why_not_once

        try:
            self._entries()
            return why_not_once(self) if writes else None
        except FileSystemNotConfiguredError as error:
            return str(error)
        except PermissionError as error:
            may = _LEAST["write" if writes else "read"]
            return f"{error}; correct the options in the Secret, or their permissions: they must allow to {may} there"

    @property
    def _opened(self) -> AbstractFileSystem:
        from herdkeeper_jobs.storage.file_system import opened

        return opened(self.root, self.variables)

    @property
    def _inside(self) -> str:
        """As the file system names it."""
        base = str(self._opened._strip_protocol(self.root)).rstrip("/")
        return f"{base}/{self.key}" if self.key else base or "/"

    @contextmanager
    def _as_os_errors(self) -> Iterator[None]:
        """Whatever a file system raises as an OSError, which callers know of files. Not as it is: addresses that are in errors may have
        what opens the file system behind a question mark, and nor is the cause told, which would have it, too."""
        try:
            yield
        except FileSystemNotConfiguredError:
            raise
        except Exception as error:
            raise self._error(error) from None

    def _error(self, error: Exception) -> OSError:
        said = _in_one_line(str(error))
        match error:
            case FileExistsError():
                return FileExistsError(f"{self} exists")
            case FileNotFoundError():
                return FileNotFoundError(f"{self} does not exist: {said}")
            case NotImplementedError() | TypeError():
                return UnsupportedOperation(f"{self}: {type(error).__name__}: {said}")
            case PermissionError():
                return PermissionError(f"{self}: the file system refuses this: {said}")
            case _:
                return self._error_of(getattr(error, "response", None), f"{type(error).__name__}: {said}")

    def _error_of(self, answer: Any, said: str) -> OSError:
        """The error of an answer to a request, if there was one."""
        exception, message = _remote_exception(answer)
        # Hadoop answers 403 to whatever went wrong while a file was read or written.
        if answer is not None and answer.status_code in (401, 403) and exception in _REFUSALS:
            return PermissionError(f"{self}: the file system refuses this: {message or said}")
        return OSError(f"{self}: {exception}: {message}" if message else f"{self}: {said}")


def _remote_exception(answer: Any) -> tuple[str, str]:
    """What an answer of Hadoop says went wrong: the name of its exception, and one line; empty for any other answer."""
    try:
        told = answer.json()["RemoteException"]
        return _in_one_line(str(told["exception"])), _in_one_line(str(told["message"]))
    except (AttributeError, KeyError, TypeError, ValueError):
        return "", ""


def _in_one_line(said: str) -> str:
    """What a file system says, without what opens it, which addresses have behind a question mark."""
    return " ".join(_QUERY.sub("?…", said).split())[:500]


class _Writer:
    """A file that is being written."""

    def __init__(self, path: FileSystemPath, file: Any) -> None:
        self._path = path
        self._file = file

    def write(self, data: bytes) -> int:
        with self._path._as_os_errors():
            return int(self._file.write(data))

    def close(self) -> None:
        with self._path._as_os_errors():
            self._file.close()
