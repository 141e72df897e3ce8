"""Objects of an S3-compatible store under the part of pathlib's interface that readers of checkpoints use.

A path holds the names of the bucket and the key only, and of the variables with which its store is opened, so that Spark can pickle it:
each process opens the store with its own environment (`StoreSettings`), and credentials are never part of a task. obstore does the
requests: they are retried within a minute, and an object is there with all of its bytes or not at all.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import PurePosixPath
from typing import IO, cast

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

SCHEME = "s3://"
ENDPOINT, REGION = "AWS_ENDPOINT_URL", "AWS_REGION"
ACCESS_KEY_ID, SECRET_ACCESS_KEY = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"
AUTHORITIES = "OBJECT_STORE_AUTHORITIES"
_READ_AHEAD = 1 << 20
_PART, _PARTS_AT_ONCE = 8 << 20, 2
"""What an upload holds in memory: a task has little, and a store takes 10,000 parts of an object."""
_MARKUP = re.compile(r"<\?xml|<Error")
_RETRIED_FOR = timedelta(seconds=60)
_ANSWERED_WITHIN = timedelta(seconds=120)


class StoreNotConfiguredError(ValueError):
    """A variable that a store is opened with is missing; the message names it and the fix."""


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """How a store is reached. `endpoint` None means Amazon's own for the region; `authorities` are certificates (PEM) to trust besides."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    endpoint: str | None = None
    region: str = "us-east-1"
    authorities: str | None = None

    @staticmethod
    def of(environment: Mapping[str, str], prefix: str = "") -> StoreSettings:
        """From a process's variables, whose names begin with `prefix`. Raises StoreNotConfiguredError."""
        if missing := [name for key in (ACCESS_KEY_ID, SECRET_ACCESS_KEY) if not environment.get(name := f"{prefix}{key}")]:
            raise StoreNotConfiguredError(f"{' and '.join(missing)} not set: pass what the object store is opened with from its Secret")
        return StoreSettings(
            environment[f"{prefix}{ACCESS_KEY_ID}"],
            environment[f"{prefix}{SECRET_ACCESS_KEY}"],
            environment.get(f"{prefix}{ENDPOINT}") or None,
            environment.get(f"{prefix}{REGION}") or "us-east-1",
            environment.get(f"{prefix}{AUTHORITIES}") or None,
        )

    def open(self, bucket: str) -> S3Store:
        """The bucket; nothing is asked of it yet."""
        return S3Store(
            bucket,
            config={
                "access_key_id": self.access_key_id,
                "secret_access_key": self.secret_access_key,
                "region": self.region,
                # What every store understands, whatever names it has in DNS; Amazon's own takes both.
                "virtual_hosted_style_request": False,
                # Said in any case: obstore would take that of the variables without a prefix, which are another store's.
                "endpoint": self.endpoint or f"https://s3.{self.region}.amazonaws.com",
            },
            client_options={
                "allow_http": self.endpoint is not None and self.endpoint.startswith("http://"),
                "timeout": _ANSWERED_WITHIN,
                **({"root_certificate": self.authorities} if self.authorities else {}),
            },
            retry_config={"max_retries": 5, "retry_timeout": _RETRIED_FOR},
        )


@lru_cache(maxsize=8)
def _opened(bucket: str, variables: str, process: int) -> S3Store:
    """One per process: a fork does not inherit the threads that answer."""
    del process
    return StoreSettings.of(os.environ, variables).open(bucket)


@dataclass(frozen=True, slots=True, order=True)
class ObjectPath:
    """A key of a bucket, or what begins with it and a slash. What can't be read is told by OSError, as of a file."""

    bucket: str
    key: str = ""
    variables: str = ""
    """What the names of the variables begin with that the store is opened with: a job may have two stores."""

    @staticmethod
    def parse(uri: str, variables: str = "") -> ObjectPath:
        """From `s3://bucket/key`. Raises ValueError for another text."""
        bucket, *parts = uri.removeprefix(SCHEME).rstrip("/").split("/")
        if not uri.startswith(SCHEME) or not bucket or any(part in ("", ".", "..") for part in parts):
            raise ValueError(f"{uri!r} names no object store: give s3://bucket or s3://bucket/prefix")
        return ObjectPath(bucket, "/".join(parts), variables)

    def __str__(self) -> str:
        return f"{SCHEME}{self.bucket}/{self.key}" if self.key else f"{SCHEME}{self.bucket}"

    def __truediv__(self, name: str) -> ObjectPath:
        return self._at(PurePosixPath(self.key) / name)

    @property
    def parent(self) -> ObjectPath:
        """What it lies in; the bucket lies in itself."""
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
        """Bucket and parts of the key."""
        return (self.bucket, *PurePosixPath(self.key).parts)

    def joinpath(self, *names: str) -> ObjectPath:
        """As `/`, for several."""
        return self._at(PurePosixPath(self.key).joinpath(*names))

    def with_name(self, name: str) -> ObjectPath:
        """The same with another last part."""
        return self._at(PurePosixPath(self.key).with_name(name))

    def relative_to(self, other: ObjectPath) -> PurePosixPath:
        """Its key below another one. ValueError when it is not there."""
        if (self.bucket, self.variables) != (other.bucket, other.variables):
            raise ValueError(f"{self} is not below {other}")
        return PurePosixPath(self.key).relative_to(PurePosixPath(other.key))

    def _at(self, key: PurePosixPath) -> ObjectPath:
        return self._named("" if key == PurePosixPath() else key.as_posix())

    def _named(self, key: str) -> ObjectPath:
        return ObjectPath(self.bucket, key, self.variables)

    def bucket_is_there(self) -> bool:
        """Asks for this object, which needs not exist. PermissionError for keys that the store refuses."""
        try:
            self.read_bytes()
        except FileNotFoundError as error:
            return "<Code>NoSuchBucket</Code>" not in str(error.__cause__)
        return True

    def is_symlink(self) -> bool:
        """Objects lead nowhere else."""
        return False

    def is_file(self) -> bool:
        """Whether there is such an object."""
        try:
            self.size()
        except FileNotFoundError:
            return False
        return True

    def size(self) -> int:
        """Bytes of the object. FileNotFoundError when there is none."""
        with _told(self):
            return int(obstore.head(self._store, self.key)["size"])

    def read_bytes(self) -> bytes:
        """All of the object."""
        with _told(self):
            return bytes(obstore.get(self._store, self.key).bytes())

    def read_range(self, first: int, length: int) -> bytes:
        """Bytes of the object; they must be there."""
        with _told(self):
            return bytes(obstore.get_range(self._store, self.key, start=first, length=length))

    def open(self, mode: str = "rb") -> IO[bytes]:
        """The object as a file that can be read anywhere in it. ValueError for another mode: `create` and `stream` write."""
        if mode != "rb":
            raise ValueError(f"mode {mode!r}: an object is opened for reading only")
        return cast("IO[bytes]", io.BufferedReader(_RangeReader(self, self.size()), _READ_AHEAD))

    def create(self, content: bytes) -> bool:
        """One request with `If-None-Match: *`, which the store decides; whether the object was created."""
        try:
            with _told(self):
                obstore.put(self._store, self.key, content, mode="create", use_multipart=False)
        except FileExistsError:
            return False
        return True

    def write(self, content: bytes) -> None:
        """Makes or replaces the object."""
        with _told(self):
            obstore.put(self._store, self.key, content)

    def stream(self) -> ObjectWriter:
        """A new object of any size, which is there once the writer is closed. For a name that nobody else takes."""
        return ObjectWriter(self)

    def unlink(self) -> None:
        """Removes the object; none is no fault."""
        with _told(self):
            obstore.delete(self._store, self.key)

    def below(self) -> Iterator[ObjectPath]:
        """All objects whose key begins with this one and a slash, sorted."""
        with _told(self):
            found = [str(item["path"]) for chunk in obstore.list(self._store, self.key or None) for item in chunk]
        return (self._named(key) for key in sorted(found))

    def names_from(self, first: str) -> Iterator[str]:
        """The names of the objects right below that are not before `first`, in the order in which the store tells them: by their bytes. It
        is asked for a page when that is needed."""
        # Stores tell what comes behind a name; what comes behind its beginning has it, too.
        prefix = f"{self.key}/" if self.key else ""
        offset = f"{prefix}{first[:-1]}" if first else None
        with _told(self):
            for chunk in obstore.list(self._store, self.key or None, offset=offset):
                names = (str(item["path"]).removeprefix(prefix) for item in chunk)
                yield from (name for name in names if name >= first and "/" not in name)

    def glob(self, pattern: str) -> Iterator[ObjectPath]:
        """What is below and matches, part by part; a part without `*`, `?` and `[` is a name."""
        *folders, last = pattern.split("/")
        places = [self]
        for part in folders:
            places = [found for place in places for found in place._matching(part)]
        return (child for place in places for child in place._children() if fnmatchcase(child.name, last))

    def _matching(self, part: str) -> list[ObjectPath]:
        if not any(character in part for character in "*?["):
            return [self / part]
        return [child for child in self._children() if fnmatchcase(child.name, part)]

    def _children(self) -> list[ObjectPath]:
        with _told(self):
            found = obstore.list_with_delimiter(self._store, self.key or None)
        keys = [*found["common_prefixes"], *(item["path"] for item in found["objects"])]
        return [self._named(str(key).rstrip("/")) for key in sorted(keys)]

    @property
    def _store(self) -> S3Store:
        return _opened(self.bucket, self.variables, os.getpid())


class ObjectWriter:
    """An object that is being written, in parts when it is large. One that is never closed is never there."""

    def __init__(self, path: ObjectPath) -> None:
        self._path = path
        with _told(path):
            self._writer = obstore.open_writer(path._store, path.key, buffer_size=_PART, max_concurrency=_PARTS_AT_ONCE)

    def write(self, data: bytes) -> int:
        """Takes the bytes."""
        with _told(self._path):
            return self._writer.write(data)

    def close(self) -> None:
        """Makes the object: it is durable when this returns."""
        with _told(self._path):
            self._writer.close()


class _RangeReader(io.RawIOBase):
    """Reads an object by ranges."""

    def __init__(self, path: ObjectPath, size: int) -> None:
        super().__init__()
        self._path = path
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
            buffer[:length] = self._path.read_range(self._position, length)
            self._position += length
        return length


@contextmanager
def _told(path: ObjectPath) -> Iterator[None]:
    """obstore's errors as Python's own, which callers know of files, with one line of what the store said."""
    try:
        yield
    except AlreadyExistsError as error:
        raise FileExistsError(f"{path} exists") from error
    except (PermissionDeniedError, UnauthenticatedError) as error:
        raise PermissionError(f"{path}: the object store refuses these credentials: {_line(error)}") from error
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path} is not there: {_line(error)}") from error
    except BaseError as error:
        raise OSError(f"{path}: {_line(error)}") from error


def _line(error: Exception) -> str:
    """What an error says: of the store's own answer its status, code and message only, since some stores repeat keys and signatures in it,
    and who tells of it has no room for what was asked, which is said already."""
    text = str(error).split("\n\nDebug source:")[0]
    said = ": ".join(found.group(1) for name in ("Code", "Message") if (found := re.search(f"<{name}>([^<]*)</{name}>", text)))
    text = text[max(0, text.find("Server returned")) :] if said else text
    return " ".join(f"{_MARKUP.split(text)[0]} {said}".split())[:500]
