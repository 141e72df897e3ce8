"""Parquet files of one manifest, in the clear or encrypted as Parquet's own modular encryption has it (AES_GCM_V1 under a key of 32 bytes).

Each manifest has a random key of its own for its files (`FileKey`), sealed by a key of a Secret. The path of a file is authenticated with
each of its parts, and not stored in it: a file under another name, or one of another manifest, does not decrypt, and nor does one of
which a part was changed, moved or cut off. Footers are encrypted too. A row group is decrypted when it is read, and nothing else of
the file.
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
    """A key of files, sealed: each process opens it with keys of its own. Picklable, and no secret."""

    sealed_by: SealedBy
    token: str

    @staticmethod
    def new(key: Key) -> FileKey:
        """A random one, sealed by a key."""
        return FileKey(SealedBy.of(key), key.seal(secrets.token_bytes(KEY_BYTES)))

    def open(self, path: StoredPath) -> bytes:
        """The key, for a file. Raises KeyUnusable, InvariantViolated."""
        return keyring().open(self.token, self.sealed_by, str(path))


@dataclass(frozen=True, slots=True)
class ParquetFolder:
    """A folder with Parquet files, which are encrypted unless `key` is None. Files are named by their path below it. Picklable."""

    place: StoredPath
    key: FileKey | None = None

    def __truediv__(self, name: str) -> StoredPath:
        return self.place / name

    @contextlib.contextmanager
    def parquet_file(self, name: str) -> Iterator[pq.ParquetFile]:
        """A file, read as it is asked for.

        Raises:
            OSError: it is not there, or can't be read; pyarrow's ArrowInvalid for another file in the clear.
            KeyUnusable: the key is not here.
            InvariantViolated: it does not decrypt, also while it is read.
        """
        path = self.place / name
        with _naming_the_file(path, self.key is not None), path.open("rb") as stream, self._opened(name, stream) as file:
            yield file

    def read_parquet(self, name: str, schema: pa.Schema | None = None) -> pa.Table:
        """All of a file, its columns cast to a schema where one is given. Raises as `parquet_file`."""
        with self.parquet_file(name) as file:
            content = file.read()
            return content if schema is None else content.select(schema.names).cast(schema)

    def parse_parquet(self, name: str, content: bytes) -> pa.Table:
        """All of a file whose bytes were read already. Raises as `parquet_file`."""
        with _naming_the_file(self.place / name, self.key is not None), self._opened(name, pa.BufferReader(content)) as file:
            return file.read()

    def _opened(self, name: str, source: IO[bytes] | pa.NativeFile) -> pq.ParquetFile:
        properties = None
        if self.key is not None:
            properties = encryption.create_decryption_properties(self.key.open(self.place / name), aad_prefix=name.encode())
        return pq.ParquetFile(source, decryption_properties=properties)

    def writer(self, name: str, sink: IO[bytes] | pa.NativeFile, schema: pa.Schema, repeating: list[str] | None = None) -> pq.ParquetWriter:
        """What writes a file of that name into a sink, with dictionaries of the columns whose paths are `repeating` (None: of all). Raises
        KeyUnusable."""
        properties = None
        if self.key is not None:
            opened = self.key.open(self.place / name)
            properties = encryption.create_encryption_properties(opened, aad_prefix=name.encode(), store_aad_prefix=False)
        dictionaries = True if repeating is None else repeating
        return pq.ParquetWriter(sink, schema, compression="zstd", use_dictionary=dictionaries, encryption_properties=properties)


@contextlib.contextmanager
def _naming_the_file(path: StoredPath, is_encrypted: bool) -> Iterator[None]:
    """pyarrow's words on what does not decrypt name no file, and are of the kind that faults of a disk are of."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, MemoryError | pa.ArrowCancelled):
            raise  # nothing is said of the file
        of_storage = isinstance(error, OSError) and (error.errno is not None or str(path) in str(error))
        if not is_encrypted or of_storage:
            raise
        raise InvariantViolated(
            f"{path} does not decrypt with the key of its manifest: it was changed, or is another file ({error})"
        ) from error
