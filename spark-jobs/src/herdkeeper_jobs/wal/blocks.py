"""Rows on their way from task to task, in blocks: many rows in one binary value, as Arrow's stream.

Spark turns each row over several times between a task of Python and the next one, and whenever it keeps rows or reads what it kept. That
costs more than all that is done with a row here, and nothing of it with blocks. Where all tasks run on one machine not even the blocks go
through Spark: they lie in files, of which it passes on the places, and tasks map them into memory, so that what nobody looks at is never
read. With executors elsewhere there is no such disk, and Spark passes the blocks themselves.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

BLOCK_COLUMNS = "block binary"
_BLOCK_BYTES = 4 * 1024 * 1024
_WRITTEN_AT_ONCE = 1024 * 1024
_BLOCK_SCHEMA = pa.schema([("block", pa.binary())])
Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Blocks:
    """How blocks travel. Picklable; it travels to the tasks."""

    folder: Path | None = None
    """Where they lie, on a disk that all tasks share; None: Spark passes them on."""

    def write(self) -> AbstractContextManager[BlockWriter]:
        """What makes blocks of rows; those made by one writer lie in one file."""
        if self.folder is None:
            return nullcontext(BlockWriter(None))
        return _in_file(self.folder / uuid.uuid4().hex)

    def of_batches(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Rows as blocks (BLOCK_COLUMNS)."""
        with self.write() as writer:
            for batch in batches:
                for block in writer.blocks(pa.Table.from_batches([batch])):
                    yield pa.RecordBatch.from_arrays([block], schema=_BLOCK_SCHEMA)

    def rows(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """The rows of blocks, which share their memory; `batches` may have other columns as well."""
        for batch in batches:
            for block in batch.column("block"):
                with self._source(block) as source, pa.ipc.open_stream(source) as stream:
                    yield from stream

    def _source(self, block: pa.BinaryScalar) -> pa.NativeFile:
        if self.folder is None:
            return pa.BufferReader(block.as_buffer())
        name, _, place = block.as_py().decode().partition(":")
        source = pa.memory_map(str(self.folder / name))
        source.seek(int(place))
        return source


@dataclass(frozen=True, slots=True)
class BlockWriter:
    """Makes blocks, in a file or without one."""

    file: tuple[str, pa.NativeFile] | None
    """Its name, and where it is written to."""

    def blocks(self, rows: pa.Table) -> Iterator[pa.Array]:
        """Rows in binary values, one in each array: as few as may be."""
        if rows.num_rows == 0:
            return
        if self.file is None:
            yield from (_passed_on(batch) for batch in _of_bounded_size(rows))
            return
        name, sink = self.file
        place = sink.tell()
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_table(rows)
        sink.flush()  # whoever takes the block may read it at once
        yield pa.array([f"{name}:{place}".encode()], pa.binary())


def _of_bounded_size(rows: pa.Table) -> list[pa.RecordBatch]:
    batches: list[pa.RecordBatch] = rows.combine_chunks().to_batches(max(1, rows.num_rows * _BLOCK_BYTES // max(1, rows.nbytes)))
    return batches


def _passed_on(rows: pa.RecordBatch) -> pa.Array:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    written = sink.getvalue()
    bounds = pa.py_buffer(np.array([0, written.size], np.int32))
    return pa.Array.from_buffers(pa.binary(), 1, [None, bounds, written])


@contextmanager
def _in_file(path: Path) -> Iterator[BlockWriter]:
    # The kernel finds room for large pieces at once; those of a column of a block are small.
    with pa.BufferedOutputStream(pa.OSFile(str(path), "wb"), _WRITTEN_AT_ONCE) as sink:
        yield BlockWriter((path.name, sink))


@contextmanager
def blocks_of(spark: SparkSession) -> Iterator[Blocks]:
    """How blocks travel in this session; those in files are gone afterwards."""
    if not str(spark.conf.get("spark.master")).startswith("local["):
        yield Blocks()
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True, prefix="herdkeeper-blocks-") as folder:
        yield Blocks(Path(folder))
