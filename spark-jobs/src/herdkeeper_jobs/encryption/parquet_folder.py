"""The Parquet files of one manifest, plain or encrypted by Parquet's modular encryption (AES_GCM_V1 under a key of 32 bytes).

Each manifest has a random key for its files (`FileKey`), sealed by a Secret's key. A file's path is authenticated with each part, but not
stored. So a renamed file, another manifest's file, or one with a changed, moved or missing part does not decrypt. Footers are encrypted,
too. Row groups are decrypted one by one, when read.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.parquet import encryption

from herdkeeper.protocol.encryption_key import KEY_BYTES
from herdkeeper_jobs.encryption.keys import Key, SealedBy, keyring
from herdkeeper_jobs.errors import InvariantViolated
from herdkeeper_jobs.storage.stored_path import StoredPath


@dataclass(frozen=True, slots=True)
class FileKey:
    """A sealed key of files; each process opens it with its own keys. Picklable, and no secret."""

    sealed_by: SealedBy
    token: str

    @staticmethod
    def new(key: Key) -> FileKey:
        """A random one, sealed by a key."""
        return FileKey(SealedBy.of(key), key.seal(secrets.token_bytes(KEY_BYTES)))

    def open(self, path: StoredPath) -> bytes:
        """Returns the key for a file. Raises KeyUnusable, InvariantViolated."""
        return keyring().open(self.token, self.sealed_by, str(path))


@dataclass(frozen=True, slots=True)
class ParquetFolder:
    """A folder with Parquet files, encrypted unless `key` is None. Files are named by their path below it. Picklable."""

    place: StoredPath
    key: FileKey | None = None

    def __truediv__(self, name: str) -> StoredPath:
        """Returns where a file lies. Raises InvariantViolated for a name that leads out: who writes a manifest may not be allowed to read
        all that its readers may."""
        if name.startswith("/") or ".." in name.split("/"):
            raise InvariantViolated(f"a manifest names {name!r}, which leads out of {self.place}")
        return self.place / name

    @contextlib.contextmanager
    def parquet_file(self, name: str) -> Iterator[pq.ParquetFile]:
        """Opens a file for reading on demand.

        Raises:
            OSError: it is missing, or can't be read; pyarrow's ArrowInvalid for an invalid plain file.
            KeyUnusable: the key is missing.
            InvariantViolated: it does not decrypt, also while it is read; or its name leads out of the folder.
        """
        path = self / name
        with _naming_the_file(path, self.key is not None), path.open("rb") as stream, self._opened(name, stream) as file:
            yield file

    def read_parquet(self, name: str, schema: pa.Schema | None = None) -> pa.Table:
        """Reads a whole file, optionally cast to a schema. Raises as `parquet_file`."""
        with self.parquet_file(name) as file:
            content = file.read()
            return content if schema is None else content.select(schema.names).cast(schema)

    def parse_parquet(self, name: str, content: bytes) -> pa.Table:
        """Parses a file's bytes. Raises as `parquet_file`."""
        with _naming_the_file(self / name, self.key is not None), self._opened(name, pa.BufferReader(content)) as file:
            return file.read()

    def _opened(self, name: str, source: IO[bytes] | pa.NativeFile) -> pq.ParquetFile:
        properties = None
        if self.key is not None:
            properties = encryption.create_decryption_properties(self.key.open(self / name), aad_prefix=name.encode())
        return pq.ParquetFile(source, decryption_properties=properties)

    def writer(self, name: str, sink: IO[bytes] | pa.NativeFile, schema: pa.Schema, repeating: list[str] | None = None) -> pq.ParquetWriter:
        """Returns a writer of the file `name` into a sink, with dictionaries for the column paths in `repeating` (None: for all). Raises
        KeyUnusable."""
        properties = None
        if self.key is not None:
            opened = self.key.open(self / name)
            properties = encryption.create_encryption_properties(opened, aad_prefix=name.encode(), store_aad_prefix=False)
        dictionaries = True if repeating is None else repeating
        return pq.ParquetWriter(sink, schema, compression="zstd", use_dictionary=dictionaries, encryption_properties=properties)


def batches_in(file: pq.ParquetFile, most_rows: int) -> Iterator[pa.RecordBatch]:
    """Yields a file's rows, none of two row groups together: a group has some megabytes, however large its rows are."""
    for group in range(file.num_row_groups):
        yield from file.iter_batches(most_rows, [group])


@contextlib.contextmanager
def _naming_the_file(path: StoredPath, is_encrypted: bool) -> Iterator[None]:
    """Adds the file's name: pyarrow's errors of decryption lack it, and have the type of disk errors."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, MemoryError | pa.ArrowCancelled):
            raise  # this says nothing about the file
        of_storage = isinstance(error, OSError) and (error.errno is not None or str(path) in str(error))
        if not is_encrypted or of_storage:
            raise
        raise InvariantViolated(
            f"{path} does not decrypt with the key of its manifest: it was changed, or is another file ({error})"
        ) from error
