"""Rows that travel as blocks, in files of tasks on one machine."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from herdkeeper_jobs.wal.blocks import Blocks


def test_a_block_can_be_read_as_soon_as_it_is_handed_out(tmp_path: Path) -> None:
    blocks = Blocks(tmp_path)
    batches = [pa.record_batch({"number": pa.array(range(first, first + 10))}) for first in (0, 10, 20)]
    with blocks.write() as writer:
        for batch in batches:
            for block in writer.blocks(pa.Table.from_batches([batch])):
                sent = pa.RecordBatch.from_arrays([block], ["block"])
                assert list(blocks.rows([sent])) == [batch]
