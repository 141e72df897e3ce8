"""Checks files against their manifest, in tasks. Each file is read in pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from herdkeeper_jobs.encryption.parquet_folder import ParquetFolder
from herdkeeper_jobs.manifests.manifest import ManifestFile
from herdkeeper_jobs.spark_tasks import map_numbers
from herdkeeper_jobs.storage.stored_path import file_hash, file_size

_TASKS_PER_CORE = 2
_FAULT_SCHEMA = pa.schema([("number", pa.int32()), ("fault", pa.string())])


def file_fault(folder: ParquetFolder, file: ManifestFile) -> str:
    """Returns the fault of a checkpoint's file, empty if its bytes are as written. Raises OSError if it can't be read."""
    path = folder / file.path
    try:
        size = file_size(path)
        if size != file.size:
            return f"{path} has other bytes than the checkpoint wrote: {size} of them instead of {file.size}"
        found = file_hash(path)
    except FileNotFoundError:
        return f"{path} is missing, and the manifest names it"
    return "" if found == file.hash else f"{path} has other bytes than the checkpoint wrote: {found}"


def faults_of_files(spark: SparkSession, folder: ParquetFolder, files: Sequence[ManifestFile]) -> list[str]:
    """Reads all bytes of all files and returns the faults, in the files' order."""
    return faults_in_tasks(spark, len(files), lambda number: file_fault(folder, files[number]))


def faults_in_tasks(spark: SparkSession, items: int, fault_of: Callable[[int], str]) -> list[str]:
    """Runs `fault_of` in tasks for the items from 0 on and returns its non-empty results in order. `fault_of` must be picklable."""

    def check(number: int) -> Iterator[pa.RecordBatch]:
        if fault := fault_of(number):
            yield pa.RecordBatch.from_pylist([{"number": number, "fault": fault}], schema=_FAULT_SCHEMA)

    if not items:
        return []
    tasks = min(items, _TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
    found = map_numbers(spark, items, check, _FAULT_SCHEMA, tasks).collect()
    return [row["fault"] for row in sorted(found, key=lambda row: int(row["number"]))]
