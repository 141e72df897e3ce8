"""Writes and reads a checkpoint's Parquet file, encrypted and plain, in one process: MB of Arrow data per second.

Rows are those of `fold_changes`: a number, and a text of 64 bytes that compresses badly. The two alternate, so that both meet the same
machine; the result is the ratio of the medians.
"""

from __future__ import annotations

import argparse
import base64
import os
import secrets
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from herdkeeper_jobs.encryption.keys import FOLDERS, Key
from herdkeeper_jobs.encryption.parquet_folder import FileKey, ParquetFolder

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.string())])
ROWS_PER_GROUP = 50_000


def rows(count: int) -> pa.Table:
    """Texts of 64 hexadecimal digits."""
    chance = np.random.default_rng(7)
    return pa.table({"k": np.arange(count), "v": [chance.bytes(32).hex() for _ in range(count)]}, schema=SCHEMA)


def write_file(folder: ParquetFolder, name: str, content: pa.Table) -> None:
    """Writes like a task: one row group at a time."""
    with pa.OSFile(str(folder / name), "wb") as sink, folder.writer(name, sink, SCHEMA) as writer:
        for batch in content.to_batches(ROWS_PER_GROUP):
            writer.write_batch(batch)


def read_file(folder: ParquetFolder, name: str) -> None:
    """Reads like a task: one row group at a time."""
    with folder.parquet_file(name) as file:
        for group in range(file.num_row_groups):
            file.read_row_group(group)


def seconds(work: Callable[..., None], *arguments: object) -> float:
    """Seconds that a call takes."""
    began = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - began


def main() -> None:
    """Prints a line per direction."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="herdkeeper-bench-"))
    try:
        (place / "keys").mkdir()
        key = Key("bench", "keys", secrets.token_bytes(32))
        (place / "keys" / "bench").write_text(base64.b64encode(key.content).decode())
        os.environ[FOLDERS] = str(place / "keys")
        content = rows(arguments.rows)
        folders = {"plain": ParquetFolder(place), "encrypted": ParquetFolder(place, FileKey.new(key))}
        took: dict[tuple[str, str], list[float]] = {}
        for _ in range(arguments.rounds):
            for kind, folder in folders.items():
                took.setdefault((kind, "write"), []).append(seconds(write_file, folder, f"{kind}.parquet", content))
                took.setdefault((kind, "read"), []).append(seconds(read_file, folder, f"{kind}.parquet"))
        size = {kind: (place / f"{kind}.parquet").stat().st_size for kind in folders}
        for work in ("write", "read"):
            speeds = {kind: content.nbytes / 1e6 / statistics.median(took[kind, work]) for kind in folders}
            ratio = speeds["encrypted"] / speeds["plain"]
            print(f"{work}: plain {speeds['plain']:.0f} MB/s, encrypted {speeds['encrypted']:.0f} MB/s, ratio {ratio:.2f}")
        print(f"bytes in the file: plain {size['plain']}, encrypted {size['encrypted']} ({size['encrypted'] / size['plain'] - 1:+.3%})")
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
