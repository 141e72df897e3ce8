"""Objects of an object store, with the part of pathlib's interface that readers of checkpoints use.

Spark pickles a path, so it holds names only: scheme, bucket, key, and the prefix of the variables that open its store. Each process opens
the store with its own environment (`object_store`). Credentials are never part of a task.

obstore sends the requests and retries them for a minute. An object exists with all of its bytes or not at all. Failed reads raise OSError,
as those of a file do.
"""

from __future__ import annotations

import io
import os
import re
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from threading import Barrier
from typing import IO, cast

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, UnauthenticatedError

from herdkeeper_jobs.storage.object_store import Store, StoreNotConfiguredError, StoreSettings, line_of, opened, why_unreachable

_ADDRESS = re.compile(r"(?P<scheme>s3|gs|az)://(?P<bucket>[^/]+)(?P<key>(/[^/]+)*)/?")
_SUPPORTED = "give s3://bucket/prefix, gs://bucket/prefix or az://container/prefix, or the path of a folder"
PART_BYTES, _PARTS_AT_ONCE = 8 << 20, 2
"""What an upload holds in memory: a task has little, and S3 takes 10,000 parts of an object."""
_READ_AHEAD = 1 << 20
_PROBE = ".herdkeeper-creates-once"
"""The name of an object that is created twice at a destination: the store must refuse the second request."""
_RACES, _RACERS = 3, 4
"""Further objects for this test, and how many requests try to create each of them at once."""
_UNDECIDED = ("<Code>ConditionalRequestConflict</Code>", "<Code>OperationAborted</Code>")
"""Answers with status 409 if another request changed or removed the object meanwhile. They don't say who was first."""
_UNDECIDED_PAUSES_SECONDS = (0.1, 0.4, 1.6)
_NO_BUCKET = ("<Code>NoSuchBucket</Code>", "<Code>ContainerNotFound</Code>")
_MISSING = {
    "s3": "bucket {}; create it, or correct the endpoint",
    "gs": "bucket {}; create it, or correct its name",
    "az": "container {}; create it, or correct the endpoint or the storage account",
}
_TAKE_ANOTHER = "so two jobs could write over each other; take one that honours it"


class _UndecidedError(OSError):
    """The store has not decided which request creates an object."""


@dataclass(frozen=True, slots=True, order=True)
class ObjectPath:
    """A key of a bucket (Azure: a container), or the objects below it. `variables` is the prefix of the variables that open the store."""

    scheme: str
    bucket: str
    key: str = ""
    variables: str = ""

    @staticmethod
    def parse(uri: str, variables: str = "") -> ObjectPath:
        """From `s3://bucket/key`, `gs://bucket/key` or `az://container/key`. Raises ValueError for another text."""
        found = _ADDRESS.fullmatch(uri)
        if found is None or any(part in (".", "..") for part in found["key"].split("/")):
            raise ValueError(f"{uri!r} names no object store: {_SUPPORTED}")
        return ObjectPath(found["scheme"], found["bucket"], found["key"].strip("/"), variables)

    def __str__(self) -> str:
        return f"{self.place}/{self.key}" if self.key else self.place

    def __truediv__(self, name: str) -> ObjectPath:
        return self._at(PurePosixPath(self.key) / name)

    @property
    def place(self) -> str:
        """`s3://bucket`."""
        return f"{self.scheme}://{self.bucket}"

    @property
    def parent(self) -> ObjectPath:
        """The prefix above it; a bucket is its own parent."""
        return self._at(PurePosixPath(self.key).parent)

    @property
    def name(self) -> str:
        return PurePosixPath(self.key).name

    @property
    def stem(self) -> str:
        return PurePosixPath(self.key).stem

    @property
    def parts(self) -> tuple[str, ...]:
        """The bucket's name and the parts of the key."""
        return (self.bucket, *PurePosixPath(self.key).parts)

    def joinpath(self, *names: str) -> ObjectPath:
        return self._at(PurePosixPath(self.key).joinpath(*names))

    def with_name(self, name: str) -> ObjectPath:
        return self._at(PurePosixPath(self.key).with_name(name))

    def named(self, key: str) -> ObjectPath:
        """Another key of the bucket."""
        return replace(self, key=key)

    def relative_to(self, other: ObjectPath) -> PurePosixPath:
        """Its key relative to another one. Raises ValueError if it is not below that."""
        if other.named(self.key) != self:
            raise ValueError(f"{self} is not below {other}")
        return PurePosixPath(self.key).relative_to(PurePosixPath(other.key))

    def _at(self, key: PurePosixPath) -> ObjectPath:
        return self.named("" if key == PurePosixPath() else key.as_posix())

    def is_symlink(self) -> bool:
        """Always False: objects can't be links."""
        return False

    def is_file(self) -> bool:
        try:
            self.size()
        except FileNotFoundError:
            return False
        return True

    def glob(self, pattern: str) -> Iterator[ObjectPath]:
        """Yields matching paths below this one. Each part of the pattern is a name, or has `*`, `?` or `[`."""
        *folders, last = pattern.split("/")
        places = [self]
        for part in folders:
            places = [found for place in places for found in place._matching(part)]
        return (child for place in places for child in place.children() if fnmatchcase(child.name, last))

    def _matching(self, part: str) -> list[ObjectPath]:
        if not any(character in part for character in "*?["):
            return [self / part]
        return [child for child in self.children() if fnmatchcase(child.name, part)]

    def bucket_is_there(self) -> bool:
        """Reads this object, which need not exist. Raises PermissionError if the store refuses the credentials."""
        try:
            self.read_bytes()
        except FileNotFoundError as error:
            return not any(code in str(error.__cause__) for code in _NO_BUCKET)
        return True

    def size(self) -> int:
        """Size in bytes. Raises FileNotFoundError without an object."""
        with _as_os_errors(self):
            return int(obstore.head(self._store, self.key)["size"])

    def modified_millis(self) -> int:
        """When it was written, by the store's clock. Raises FileNotFoundError without an object."""
        with _as_os_errors(self):
            return int(obstore.head(self._store, self.key)["last_modified"].timestamp() * 1000)

    def read_bytes(self) -> bytes:
        with _as_os_errors(self):
            return bytes(obstore.get(self._store, self.key).bytes())

    def read_range(self, first: int, length: int) -> bytes:
        """Reads a range that the object must have."""
        with _as_os_errors(self):
            return bytes(obstore.get_range(self._store, self.key, start=first, length=length))

    def open(self, mode: str = "rb") -> IO[bytes]:
        """Opens the object as a seekable file. Raises ValueError for another mode: `create` and `stream` write."""
        if mode != "rb":
            raise ValueError(f"mode {mode!r}: an object is opened for reading only")
        return cast("IO[bytes]", io.BufferedReader(_RangeReader(self.read_range, self.size()), _READ_AHEAD))

    def create(self, content: bytes) -> bool:
        """Creates the object by a conditional request, and returns whether it did. Asks again while the store has not decided. Raises
        OSError if it never does."""
        for pause in (*_UNDECIDED_PAUSES_SECONDS, None):
            try:
                with _as_os_errors(self):
                    obstore.put(self._store, self.key, content, mode="create", use_multipart=False)
            except FileExistsError:
                return False
            except _UndecidedError:
                if pause is None:
                    raise
                time.sleep(pause)
            else:
                break
        return True

    def write(self, content: bytes) -> None:
        with _as_os_errors(self):
            obstore.put(self._store, self.key, content)

    def stream(self) -> ObjectWriter:
        """Writes a new object of any size, under a name that nobody else uses. It exists once the writer is closed."""
        return ObjectWriter(self)

    def take_name(self, other: ObjectPath) -> None:
        """Renames the object, replacing an existing one: copies it, then removes it."""
        other.write(self.read_bytes())
        self.unlink()

    def unlink(self) -> None:
        """Removes the object if it exists."""
        with suppress(FileNotFoundError), _as_os_errors(self):
            obstore.delete(self._store, self.key)

    def below(self) -> Iterator[ObjectPath]:
        """Yields all objects below this prefix, sorted."""
        with _as_os_errors(self):
            found = [str(item["path"]) for chunk in obstore.list(self._store, self.key or None) for item in chunk]
        return (self.named(key) for key in sorted(found))

    def names_from(self, first: str) -> Iterator[str]:
        """Yields the names of the objects directly below, from `first` on, in byte order. Pages are requested as they are needed."""
        # A store lists what comes after an offset. After a name without its last character comes that name, too.
        prefix = f"{self.key}/" if self.key else ""
        offset = f"{prefix}{first[:-1]}" if first else None
        with _as_os_errors(self):
            for chunk in obstore.list(self._store, self.key or None, offset=offset):
                names = (str(item["path"]).removeprefix(prefix) for item in chunk)
                yield from (name for name in names if name >= first and "/" not in name)

    def children(self) -> list[ObjectPath]:
        """Objects and prefixes directly below."""
        with _as_os_errors(self):
            found = obstore.list_with_delimiter(self._store, self.key or None)
        keys = [*found["common_prefixes"], *(item["path"] for item in found["objects"])]
        return [self.named(str(key).rstrip("/")) for key in sorted(keys)]

    def why_unusable(self, *, writes: bool) -> str | None:
        """Returns why nothing can be read here or, with `writes`, committed: then the store must create an object once, however many
        requests ask for it. None if it works."""
        probe = self / _PROBE
        try:
            if not probe.bucket_is_there():
                return f"the object store has no {_MISSING[self.scheme].format(self.bucket)}"
            # The first create of a new destination succeeds; from then on each of them must be refused.
            if writes and probe.create(b"") and probe.create(b""):
                return f"the object store ignores {self._condition}, {_TAKE_ANOTHER}"
            if writes and (why := probe.why_not_once()) is not None:
                return f"the object store does not decide about {self._condition} in one step ({why}), {_TAKE_ANOTHER}"
        except StoreNotConfiguredError as error:
            return str(error)
        except PermissionError as error:
            return f"{error}; {StoreSettings.of(self.scheme, os.environ, self.variables).credentials}"
        return None

    def why_not_once(self) -> str | None:
        """Returns why not exactly one of several simultaneous creates succeeds, or None if one does. Tries it with new names that begin
        with this one. Raises OSError."""
        names = [self.with_name(f"{self.name}-{uuid.uuid4().hex}") for _ in range(_RACES)]
        try:
            return next((why for name in names if (why := _why_not_one(name))), None)
        finally:
            for name in names:
                with suppress(OSError):
                    name.unlink()

    @property
    def _condition(self) -> str:
        """The header of a conditional create."""
        return "`x-goog-if-generation-match: 0`" if self.scheme == "gs" else "`If-None-Match: *`"

    @property
    def _store(self) -> Store:
        return opened(self.scheme, self.bucket, self.variables, os.getpid())


class ObjectWriter:
    """Writes an object, in parts if it is large. Without `close` the object never exists."""

    def __init__(self, path: ObjectPath) -> None:
        self._path = path
        with _as_os_errors(path):
            self._writer = obstore.open_writer(path._store, path.key, buffer_size=PART_BYTES, max_concurrency=_PARTS_AT_ONCE)

    def write(self, data: bytes) -> int:
        with _as_os_errors(self._path):
            return self._writer.write(data)

    def close(self) -> None:
        """Creates the object, durably."""
        with _as_os_errors(self._path):
            self._writer.close()


@contextmanager
def _as_os_errors(path: ObjectPath) -> Iterator[None]:
    """Converts obstore's errors to those that Python has for files, with one line of the store's answer."""
    try:
        yield
    except AlreadyExistsError as error:
        # obstore raises this for each status 409
        if any(code in str(error) for code in _UNDECIDED):
            raise _UndecidedError(f"{path}: the store did not decide whether it is created: {line_of(error)}") from error
        raise FileExistsError(f"{path} exists") from error
    except (PermissionDeniedError, UnauthenticatedError) as error:
        raise PermissionError(f"{path}: the object store refuses these credentials: {line_of(error)}") from error
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path} is not there: {line_of(error)}") from error
    except BaseError as error:
        raise OSError(f"{path}: {why_unreachable(error)}{line_of(error)}") from error


def _why_not_one(name: ObjectPath) -> str | None:
    """Creates one new object from several threads at once, each with its own bytes. Returns why not exactly one succeeded, or None.

    Two requests in a row would not expose a store that checks first and writes later: it accepts all that check before the first write.
    A failed create counts as not created. Raises OSError if none was created.
    """
    together, failed = Barrier(_RACERS, timeout=60), list[OSError]()

    def race(content: bytes) -> bool:
        together.wait()
        try:
            return name.create(content)
        except OSError as error:
            failed.append(error)
            return False

    contents = [b"of %d" % number for number in range(_RACERS)]
    with ThreadPoolExecutor(_RACERS) as racing:
        won = [content for content, created in zip(contents, racing.map(race, contents), strict=True) if created]
    if not won:
        raise failed[0] if failed else OSError(f"of {_RACERS} concurrent creates none succeeded")
    if len(won) > 1:
        return f"of {_RACERS} concurrent creates {len(won)} succeeded"
    return None if name.read_bytes() == won[0] else f"of {_RACERS} concurrent creates one that was refused has written"


class _RangeReader(io.RawIOBase):
    """A file of `size` bytes. `read` returns a range, by its first byte and its length."""

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
