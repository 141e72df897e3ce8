"""Blocks: many rows in one binary value, an Arrow stream, on their way between tasks.

Spark converts each row several times between two Python tasks, and whenever it stores rows. That costs more than all work on a row here,
and blocks avoid it. If all tasks run on one machine, blocks are in files and Spark only passes their places. Tasks map the files into
memory, so unused parts are never read. Executors elsewhere share no disk, so Spark passes the blocks themselves.
"""

from __future__ import annotations

import secrets
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from herdkeeper_jobs.spark_tasks import Batches

_BLOCK_BYTES = 4 * 1024 * 1024
_WRITTEN_AT_ONCE = 1024 * 1024
BLOCK_SCHEMA = pa.schema([("block", pa.binary())])


@dataclass(frozen=True, slots=True)
class Blocks:
    """How blocks travel. Picklable, since tasks need it."""

    folder: Path | None = None
    """The blocks' folder on a disk that all tasks share; None: Spark passes the blocks."""
    seed: int = field(default_factory=lambda: secrets.randbits(64))
    """Of the hashes by which all tasks agree which keys are together. Nobody can make keys that all come to one task."""

    def write(self) -> AbstractContextManager[BlockWriter]:
        """Opens a writer; the blocks of one writer are in one file."""
        if self.folder is None:
            return nullcontext(BlockWriter(None))
        return _in_file(self.folder / uuid.uuid4().hex)

    def of_batches(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Packs rows into blocks (BLOCK_SCHEMA)."""
        with self.write() as writer:
            for batch in batches:
                for block in writer.blocks(pa.Table.from_batches([batch])):
                    yield pa.RecordBatch.from_arrays([block], schema=BLOCK_SCHEMA)

    def rows(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Yields the rows of blocks, sharing their memory; `batches` may have other columns, too."""
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
    """Makes blocks, in a file or in memory."""

    file: tuple[str, pa.NativeFile] | None
    """The file's name, and its stream."""

    def blocks(self, rows: pa.Table) -> Iterator[pa.Array]:
        """Packs rows into as few binary values as possible, one per array."""
        if rows.num_rows == 0:
            return
        if self.file is None:
            yield from (_passed_on(batch) for batch in _of_bounded_size(rows))
            return
        name, sink = self.file
        place = sink.tell()
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_table(rows)
        sink.flush()  # a task may read the block at once
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
    # A block's columns come in small pieces; buffer them, since the kernel finds room for large writes faster.
    with pa.BufferedOutputStream(pa.OSFile(str(path), "wb"), _WRITTEN_AT_ONCE) as sink:
        yield BlockWriter((path.name, sink))


@contextmanager
def blocks_of(spark: SparkSession) -> Iterator[Blocks]:
    """Chooses how blocks travel in this session; files are deleted afterwards."""
    if not str(spark.conf.get("spark.master")).startswith("local["):
        yield Blocks()
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True, prefix="herdkeeper-blocks-") as folder:
        yield Blocks(Path(folder))
