"""The part of pathlib's interface that readers of checkpoints use, for what is no folder of this machine: a prefix of an object store, or
a folder of another file system.

A path is a place and a key in it, and nothing with which the place is opened, so that Spark can pickle it. What can't be read is told by
OSError, as of a file.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import IO, Protocol, TypeVar, cast

_READ_AHEAD = 1 << 20
Remote = TypeVar("Remote", bound="RemotePath")
"""One kind of place: what is made of a path lies at the same one."""


class NewFile(Protocol):
    """A file that is being written. It is durable once it is closed."""

    def write(self, data: bytes, /) -> int:
        """Takes the bytes."""

    def close(self) -> None:
        """Makes them durable."""


class RemotePath(ABC):
    """A file at a place, or what lies below it. `key` is its name there, parts separated by `/`; `variables` is what the names of the
    variables begin with that the place is opened with: a job may have two places."""

    __slots__ = ()
    key: str
    variables: str

    @property
    @abstractmethod
    def place(self) -> str:
        """The address of the place."""

    @abstractmethod
    def named(self: Remote, key: str) -> Remote:
        """What has another key at the same place."""

    @abstractmethod
    def children(self: Remote) -> list[Remote]:
        """What lies right below, sorted; nothing where there is nothing."""

    @abstractmethod
    def below(self: Remote) -> Iterator[Remote]:
        """All files below, at any depth, sorted."""

    @abstractmethod
    def names_from(self, first: str) -> Iterator[str]:
        """The names of the files right below that are not before `first`, in the order of their bytes."""

    @abstractmethod
    def size(self) -> int:
        """Bytes of the file. FileNotFoundError when there is none."""

    @abstractmethod
    def read_bytes(self) -> bytes:
        """All of the file."""

    @abstractmethod
    def open(self, mode: str = "rb") -> IO[bytes]:
        """The file, which can be read anywhere in it. ValueError for another mode: `create` and `stream` write."""

    @abstractmethod
    def create(self, content: bytes) -> bool:
        """Makes the file, whole and once; whether it was created, which False says that there is one already."""

    @abstractmethod
    def write(self, content: bytes) -> None:
        """Makes or replaces the file."""

    @abstractmethod
    def stream(self) -> NewFile:
        """A new file of any size. For a name that nobody else takes."""

    def take_name(self: Remote, other: Remote) -> None:
        """Gives the file another name, by which it replaces what is there. Here it is copied first and removed then."""
        other.write(self.read_bytes())
        self.unlink()

    @abstractmethod
    def unlink(self) -> None:
        """Removes the file; none is no fault."""

    @abstractmethod
    def why_unusable(self, *, writes: bool) -> str | None:
        """Why nothing can be read (`writes`: or committed) here; None when it can. Raises OSError for a place that does not answer."""

    @abstractmethod
    def remove_empty_folders(self) -> None:
        """Removes this folder, and those in it, as far as nothing is left in them. Nothing where a place has no folders."""

    def __str__(self) -> str:
        return f"{self.place}/{self.key}" if self.key else self.place

    def __lt__(self, other: RemotePath) -> bool:
        return (self.place, self.key, self.variables) < (other.place, other.key, other.variables)

    def __truediv__(self: Remote, name: str) -> Remote:
        return self._at(PurePosixPath(self.key) / name)

    @property
    def parent(self: Remote) -> Remote:
        """What it lies in; the place lies in itself."""
        return self._at(PurePosixPath(self.key).parent)

    @property
    def name(self) -> str:
        """Its last part."""
        return PurePosixPath(self.key).name

    @property
    def stem(self) -> str:
        """Its last part without the suffix."""
        return PurePosixPath(self.key).stem

    @property
    def parts(self) -> tuple[str, ...]:
        """The place and the parts of the key."""
        return (self.place, *PurePosixPath(self.key).parts)

    def joinpath(self: Remote, *names: str) -> Remote:
        """As `/`, for several."""
        return self._at(PurePosixPath(self.key).joinpath(*names))

    def with_name(self: Remote, name: str) -> Remote:
        """The same with another last part."""
        return self._at(PurePosixPath(self.key).with_name(name))

    def relative_to(self: Remote, other: Remote) -> PurePosixPath:
        """Its key below another one. ValueError when it is not there."""
        if other.named(self.key) != self:
            raise ValueError(f"{self} is not below {other}")
        return PurePosixPath(self.key).relative_to(PurePosixPath(other.key))

    def _at(self: Remote, key: PurePosixPath) -> Remote:
        return self.named("" if key == PurePosixPath() else key.as_posix())

    def is_symlink(self) -> bool:
        """What is here leads nowhere else."""
        return False

    def is_file(self) -> bool:
        """Whether there is such a file."""
        try:
            self.size()
        except FileNotFoundError:
            return False
        return True

    def glob(self: Remote, pattern: str) -> Iterator[Remote]:
        """What is below and matches, part by part; a part without `*`, `?` and `[` is a name."""
        *folders, last = pattern.split("/")
        places = [self]
        for part in folders:
            places = [found for place in places for found in place._matching(part)]
        return (child for place in places for child in place.children() if fnmatchcase(child.name, last))

    def _matching(self: Remote, part: str) -> list[Remote]:
        if not any(character in part for character in "*?["):
            return [self / part]
        return [child for child in self.children() if fnmatchcase(child.name, part)]


def read_by_ranges(read: Callable[[int, int], bytes], size: int) -> IO[bytes]:
    """A file of that many bytes, of which `read` gives a range: its first byte and its length."""
    return cast("IO[bytes]", io.BufferedReader(_RangeReader(read, size), _READ_AHEAD))


class _RangeReader(io.RawIOBase):
    def __init__(self, read: Callable[[int, int], bytes], size: int) -> None:
        super().__init__()
        self._read = read
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        length = max(0, min(len(buffer), self._size - self._position))
        if length:
            content = self._read(self._position, length)
            if len(content) != length:
                raise OSError(f"{len(content)} bytes came instead of {length} from byte {self._position} on")
            buffer[:length] = content
            self._position += length
        return length
