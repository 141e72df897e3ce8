"""Chunks: rows of a Parquet row group that one transaction loads, the same for each attempt. Reads footers only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from herdkeeper_jobs.encryption.parquet_folder import ParquetFolder
from herdkeeper_jobs.manifests.manifest import ManifestFile
from herdkeeper_jobs.restore.source import SourceTable
from herdkeeper_jobs.storage.stored_path import StoredPath, asked_of_each

CHUNK_ROWS = 1000
"""Rows of a transaction. Fewer wait longer for bookies; more fill the leader's memory."""
CHUNK_BYTES = 1 << 18
"""Bytes of a transaction in the compressed file: about 1 to 2 MiB of rows."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group of a table's file, loaded by one task. `chunk_rows` is the size of its chunks; the last may be smaller."""

    table: int
    path: str
    number: int
    rows: int
    chunk_rows: int

    def chunks(self) -> Iterator[Chunk]:
        for first in range(0, self.rows, self.chunk_rows):
            yield Chunk(f"{self.path}#{self.number}+{first}", min(self.chunk_rows, self.rows - first))


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of a row group. `step` is its name in the bookkeeping."""

    step: str
    rows: int


def rows_per_chunk(file: ManifestFile, most_rows: int, most_bytes: int) -> int:
    """The number of a file's rows per transaction: fewer if rows are large."""
    return max(1, min(most_rows, file.rows * most_bytes // max(1, file.size)))


def row_groups(tables: Iterable[tuple[int, SourceTable]], folder: ParquetFolder, most_rows: int, most_bytes: int) -> list[RowGroup]:
    """Returns the row groups of the numbered tables, from the files' footers."""
    files = {folder / file.path: (number, file) for number, table in tables for file in table.files}

    def of_file(path: StoredPath) -> list[RowGroup]:
        number, file = files[path]
        with folder.parquet_file(file.path) as content:
            rows = [content.metadata.row_group(group).num_rows for group in range(content.num_row_groups)]
        size = rows_per_chunk(file, most_rows, most_bytes)
        return [RowGroup(number, file.path, group, count, size) for group, count in enumerate(rows) if count]

    return list(chain.from_iterable(asked_of_each(list(files), of_file)))
