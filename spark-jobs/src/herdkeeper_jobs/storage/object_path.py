"""Objects of an S3-compatible store.

A path holds the names of the bucket and the key only, and of the variables with which its store is opened, so that Spark can pickle it:
each process opens the store with its own environment (`StoreSettings`), and credentials are never part of a task. obstore does the
requests: they are retried within a minute, and an object is there with all of its bytes or not at all.
"""

from __future__ import annotations

import os
import re
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from pathlib import PurePosixPath
from typing import IO

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from herdkeeper_jobs.storage.race import why_not_one
from herdkeeper_jobs.storage.remote_path import RemotePath, read_by_ranges

SCHEME = "s3://"
ENDPOINT, REGION = "AWS_ENDPOINT_URL", "AWS_REGION"
ACCESS_KEY_ID, SECRET_ACCESS_KEY = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"
AUTHORITIES = "OBJECT_STORE_AUTHORITIES"
_PART, _PARTS_AT_ONCE = 8 << 20, 2
"""What an upload holds in memory: a task has little, and a store takes 10,000 parts of an object."""
_PROBE = ".herdkeeper-creates-once"
"""An object at a destination that is created twice, to see that the store refuses the second one."""
_RACES, _RACERS = 3, 4
"""So many objects beside that one are each created by so many at once, and removed."""
_UNDECIDED = ("<Code>ConditionalRequestConflict</Code>", "<Code>OperationAborted</Code>")
"""Answers 409 to a create while another request changed the object, as its removal: they say nothing of who was first."""
_UNDECIDED_PAUSES_SECONDS = (0.1, 0.4, 1.6)
_TAKE_ANOTHER = "so two jobs could write over each other; take one that honours it"
_MARKUP = re.compile(r"<\?xml|<Error")
_RETRIED_FOR = timedelta(seconds=60)
_ANSWERED_WITHIN = timedelta(seconds=120)


class StoreNotConfiguredError(ValueError):
    """A variable that a store is opened with is missing; the message names it and the fix."""


class _UndecidedError(OSError):
    """A store has not decided who creates an object."""


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
            raise StoreNotConfiguredError(f"{' and '.join(missing)} not set: pass the object store's settings from its Secret")
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


@dataclass(frozen=True, slots=True)
class ObjectPath(RemotePath):
    """A key of a bucket, or what begins with it and a slash."""

    bucket: str
    key: str = ""
    variables: str = ""

    @staticmethod
    def parse(uri: str, variables: str = "") -> ObjectPath:
        """From `s3://bucket/key`. Raises ValueError for another text."""
        bucket, *parts = uri.removeprefix(SCHEME).rstrip("/").split("/")
        if not uri.startswith(SCHEME) or not bucket or any(part in ("", ".", "..") for part in parts):
            raise ValueError(f"{uri!r} names no object store: give s3://bucket or s3://bucket/prefix")
        return ObjectPath(bucket, "/".join(parts), variables)

    @property
    def place(self) -> str:
        """`s3://bucket`."""
        return f"{SCHEME}{self.bucket}"

    @property
    def parts(self) -> tuple[str, ...]:
        """The bucket's name and the parts of the key."""
        return (self.bucket, *PurePosixPath(self.key).parts)

    def named(self, key: str) -> ObjectPath:
        """Another key of the bucket."""
        return ObjectPath(self.bucket, key, self.variables)

    def bucket_is_there(self) -> bool:
        """Asks for this object, which needs not exist. PermissionError for keys that the store refuses."""
        try:
            self.read_bytes()
        except FileNotFoundError as error:
            return "<Code>NoSuchBucket</Code>" not in str(error.__cause__)
        return True

    def size(self) -> int:
        """Bytes of the object. FileNotFoundError when there is none."""
        with _as_os_errors(self):
            return int(obstore.head(self._store, self.key)["size"])

    def read_bytes(self) -> bytes:
        """All of the object."""
        with _as_os_errors(self):
            return bytes(obstore.get(self._store, self.key).bytes())

    def read_range(self, first: int, length: int) -> bytes:
        """Bytes of the object; they must be there."""
        with _as_os_errors(self):
            return bytes(obstore.get_range(self._store, self.key, start=first, length=length))

    def open(self, mode: str = "rb") -> IO[bytes]:
        """The object as a file that can be read anywhere in it. ValueError for another mode: `create` and `stream` write."""
        if mode != "rb":
            raise ValueError(f"mode {mode!r}: an object is opened for reading only")
        return read_by_ranges(self.read_range, self.size())

    def create(self, content: bytes) -> bool:
        """One request with `If-None-Match: *`, which the store decides; whether the object was created. A store that says that it has not
        decided is asked again; OSError when it never does."""
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
        """Makes or replaces the object."""
        with _as_os_errors(self):
            obstore.put(self._store, self.key, content)

    def stream(self) -> ObjectWriter:
        """A new object of any size, which is there once the writer is closed. For a name that nobody else takes."""
        return ObjectWriter(self)

    def unlink(self) -> None:
        """Removes the object; none is no fault."""
        with _as_os_errors(self):
            obstore.delete(self._store, self.key)

    def below(self) -> Iterator[ObjectPath]:
        """All objects whose key begins with this one and a slash, sorted."""
        with _as_os_errors(self):
            found = [str(item["path"]) for chunk in obstore.list(self._store, self.key or None) for item in chunk]
        return (self.named(key) for key in sorted(found))

    def names_from(self, first: str) -> Iterator[str]:
        """The names of the objects right below that are not before `first`, in the order in which the store tells them: by their bytes. It
        is asked for a page when that is needed."""
        # Stores tell what comes behind a name; what comes behind its beginning has it, too.
        prefix = f"{self.key}/" if self.key else ""
        offset = f"{prefix}{first[:-1]}" if first else None
        with _as_os_errors(self):
            for chunk in obstore.list(self._store, self.key or None, offset=offset):
                names = (str(item["path"]).removeprefix(prefix) for item in chunk)
                yield from (name for name in names if name >= first and "/" not in name)

    def children(self) -> list[ObjectPath]:
        """Objects and prefixes right below."""
        with _as_os_errors(self):
            found = obstore.list_with_delimiter(self._store, self.key or None)
        keys = [*found["common_prefixes"], *(item["path"] for item in found["objects"])]
        return [self.named(str(key).rstrip("/")) for key in sorted(keys)]

    def why_unusable(self, *, writes: bool) -> str | None:
        """Whether bucket and keys are right and, with `writes`, whether the store creates an object once, also when several ask at once."""
        probe = self / _PROBE
        try:
            if not probe.bucket_is_there():
                return f"the object store has no bucket {self.bucket}; create it, or correct the endpoint"
            # The first create of a new destination succeeds; from then on each of them must be refused.
            if writes and probe.create(b"") and probe.create(b""):
                return f"the object store ignores `If-None-Match: *`, {_TAKE_ANOTHER}"
            if writes and (why := probe.why_not_once()) is not None:
                return f"the object store does not decide about `If-None-Match: *` in one step ({why}), {_TAKE_ANOTHER}"
        except StoreNotConfiguredError as error:
            return str(error)
        except PermissionError as error:
            return f"{error}; correct the keys in the Secret, or their permissions in the bucket"
        return None

    def why_not_once(self) -> str | None:
        """Why not one of several that create an object at once is told that it did, tried with names that begin with this one and are new;
        None when it is so. Raises OSError."""
        names = [self.with_name(f"{self.name}-{uuid.uuid4().hex}") for _ in range(_RACES)]
        try:
            return next((why for name in names if (why := why_not_one([name.create] * _RACERS, name.read_bytes))), None)
        finally:
            for name in names:
                with suppress(OSError):
                    name.unlink()

    def remove_empty_folders(self) -> None:
        """There are none."""

    @property
    def _store(self) -> S3Store:
        return _opened(self.bucket, self.variables, os.getpid())


class ObjectWriter:
    """An object that is being written, in parts when it is large. One that is never closed is never there."""

    def __init__(self, path: ObjectPath) -> None:
        self._path = path
        with _as_os_errors(path):
            self._writer = obstore.open_writer(path._store, path.key, buffer_size=_PART, max_concurrency=_PARTS_AT_ONCE)

    def write(self, data: bytes) -> int:
        """Takes the bytes."""
        with _as_os_errors(self._path):
            return self._writer.write(data)

    def close(self) -> None:
        """Makes the object: it is durable when this returns."""
        with _as_os_errors(self._path):
            self._writer.close()


@contextmanager
def _as_os_errors(path: ObjectPath) -> Iterator[None]:
    """obstore's errors as Python's own, which callers know of files, with one line of what the store said."""
    try:
        yield
    except AlreadyExistsError as error:
        # obstore takes each 409 for an object that is there
        if any(code in str(error) for code in _UNDECIDED):
            raise _UndecidedError(f"{path}: the store did not decide whether it is created: {_line(error)}") from error
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
