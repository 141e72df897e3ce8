"""The base of a checkpoint: an earlier checkpoint that, with the log behind it, gives the same tables as the whole log.

HerdDB drops ledgers by age, so the log alone reaches back a few days only. A base must be proven. The log must exist from its oldest open
transaction on, and its manifest must list the tables and open transactions. Its files must have the bytes that were written. Its rows,
encoded anew, must have the digest of the rows that HerdDB stored. An unusable candidate gives a reason, and the next older one is tried.
The new checkpoint copies all rows of its base, so the base may be deleted. Without a base a follower's tables may take its place:
`follower_base`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from herdkeeper.codecs.herddb.record import RowEncoder
from herdkeeper.codecs.herddb.row_digest import RowDigest
from herdkeeper.codecs.herddb.table import TableDefinition, decode_table
from herdkeeper_jobs.checkpoint.arrow_table import rows_of
from herdkeeper_jobs.checkpoint.table_digests import table_digests
from herdkeeper_jobs.encryption.parquet_folder import ParquetFolder, batches_in
from herdkeeper_jobs.errors import CheckpointRefused, InvariantViolated
from herdkeeper_jobs.manifests.manifest import Identity, Manifest, ManifestBase, ManifestFile, manifests_in, read_manifest
from herdkeeper_jobs.spark_tasks import map_numbers
from herdkeeper_jobs.storage.stored_path import StoredPath, file_hash
from herdkeeper_jobs.task_error import essence
from herdkeeper_jobs.wal.fold import BaseChanges
from herdkeeper_jobs.wal.log_state import StartingPoint
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.moment import Time

_VERIFIED = frozenset({"Follower", "Self", "Beyond", "Reread"})
_ROWS_AT_ONCE = 1_000
"""Per file: rows may have some kilobytes each, and are Python objects here."""
_NO_OLDER_FORM = -1, (None, b"")
_TASKS_PER_CORE, _BYTES_OF_A_TASK = 3, 64 << 20
"""Spark starts a task in about 30 ms, and repeats all of a task that failed."""
ROW_SCHEMA = pa.schema([("base_table", pa.int32()), ("row_key", pa.binary()), ("row_value", pa.binary())])
"""Stored rows, with the index of their table in the base."""


class BaseUnusable(ValueError):  # noqa: N818 - an answer, not a fault of the program
    """A checkpoint can't be the base; the message names it and says why."""


class BaseToRepair(BaseUnusable):
    """The checkpoint could be the base once somebody does what the message says: its key is missing."""


class BaseUnread(BaseUnusable):
    """Whether the checkpoint is usable is unknown: something could not be read this time."""


@dataclass(frozen=True, slots=True)
class BaseTable:
    """A table of a base: the digest of its rows, and the highest auto-increment key ever inserted, None without one."""

    name: str
    uuid: str
    digest: RowDigest
    highest_auto_increment: int | None


@dataclass(frozen=True, slots=True)
class Base:
    """What a checkpoint continues from: a checkpoint, or a follower's tables. Its rows are not read yet."""

    start: StartingPoint
    """Where the walk of the log begins."""
    tables: Sequence[BaseTable]
    """The tables with rows; a row names its table by its index here."""
    record: ManifestBase
    """The base's record in the new checkpoint's manifest."""
    latest_timestamp_millis: int | None
    """Upper bound of the times of all entries up to `start`; None if unknown."""
    whole_log_at: int | None
    """As `Outline.whole_log_at`."""
    unproven_follower: str | None
    """As `Outline.unproven_follower`."""

    def release(self) -> None:
        """Deletes what was made only for this base."""


@dataclass(frozen=True, slots=True)
class CheckpointBase(Base):
    """A checkpoint as the base, which stays."""

    manifest: Manifest
    path: StoredPath

    @staticmethod
    def of(manifest: Manifest, path: StoredPath, start: StartingPoint) -> CheckpointBase:
        return CheckpointBase(
            start=start,
            tables=[
                BaseTable(table.name, table.uuid, RowDigest.parse(table.rows, table.digest), table.highest_auto_increment)
                for table in manifest.tables
            ],
            record=ManifestBase(manifest=path.name, lsn=manifest.lsn, run_id=manifest.run_id),
            latest_timestamp_millis=manifest.latest_timestamp_millis,
            whole_log_at=manifest.whole_log_at,
            unproven_follower=manifest.unproven_follower,
            manifest=manifest,
            path=path,
        )

    @property
    def folder(self) -> ParquetFolder:
        """The tablespace's folder; paths of files are relative to it."""
        return self.manifest.files_in(self.path.parent.parent)


@dataclass(frozen=True, slots=True)
class BaseRows:
    """A base's proven rows (ROW_SCHEMA), on local disk. Call `release` when done."""

    base: Base
    rows: DataFrame

    @property
    def changes(self) -> BaseChanges:
        return BaseChanges(self.rows, [table.uuid for table in self.base.tables], self.base.start.at)

    def release(self) -> None:
        """Frees the disk."""
        self.rows.unpersist()
        self.base.release()


def candidates(folder: StoredPath, identity: Identity, at: Lsn | Time) -> Iterator[CheckpointBase | BaseUnusable]:
    """Yields a tablespace's checkpoints up to a moment, newest first: each as a base, or as the reason why it is unusable.

    The files' content, and the log from `start.restart` on, are checked later.
    """
    for path in reversed(manifests_in(folder)):
        try:
            manifest = read_manifest(path)
            if manifest.holds_nothing_after(at):
                yield CheckpointBase.of(manifest, path, _starting_point(manifest, identity))
        except CheckpointRefused as error:
            yield BaseToRepair(f"{path.stem}: {error}")
        except (InvariantViolated, ValueError, FileNotFoundError) as error:
            yield BaseUnusable(f"{path.stem}: {error}")
        except OSError as error:
            yield BaseUnread(f"{path.stem}: {path} can't be read: {error}")


def _starting_point(manifest: Manifest, identity: Identity) -> StartingPoint:
    if manifest.identity.path != identity.path:
        raise BaseUnusable(f"it belongs to {manifest.identity.path}")
    if manifest.verified.how not in _VERIFIED:
        raise BaseUnusable(f"it was verified by {manifest.verified.how!r}, which this program does not know")
    if manifest.continuation is None:
        raise BaseUnusable("an earlier version made it, without the definitions and open transactions there")
    start = StartingPoint(manifest.lsn.lsn, manifest.continuation.state)
    if start.restart != manifest.restart_lsn.lsn:
        raise BaseUnusable(f"its restartLsn is {manifest.restart_lsn.lsn}, but its oldest open transaction began at {start.restart}")
    return start


def load_rows(spark: SparkSession, base: CheckpointBase) -> BaseRows:
    """Reads and proves a base's files. Raises BaseUnusable if files or rows differ from the manifest, BaseUnread if files can't be read
    now."""
    try:
        return proven_rows(_read(spark, base), base)
    except BaseUnusable as error:
        raise type(error)(f"{base.path.stem}: {error}") from error


def proven_rows(read: DataFrame, base: Base) -> BaseRows:
    """Proves that `read` (ROW_SCHEMA) has the rows of the base's tables. `read` is evaluated once. Raises BaseUnusable or BaseUnread, also
    those of tasks."""
    rows = read.persist(StorageLevel.DISK_ONLY)
    try:
        for table, digest in zip(base.tables, table_digests(rows, len(base.tables)), strict=True):
            if digest != table.digest:
                raise BaseUnusable(
                    f"table {table.name!r}: its files give {digest.rows} rows with digest {digest.hex} in their stored form, "
                    f"instead of {table.digest.rows} with {table.digest.hex}"
                )
    except BaseUnusable:
        rows.unpersist()
        raise
    except PySparkException as error:
        rows.unpersist()
        for kind in (BaseUnread, BaseUnusable):
            if kind.__name__ in str(error):
                # Spark passes on the text of a task's error after its class name.
                raise kind(essence(str(error)).rpartition(f"{kind.__name__}: ")[2]) from error
        raise
    return BaseRows(base, rows)


def _read(spark: SparkSession, base: CheckpointBase) -> DataFrame:
    folder = base.folder
    tables = [decode_table(bytes.fromhex(table.definition)) for table in base.manifest.tables]
    files = [(position, file) for position, table in enumerate(base.manifest.tables) for file in table.files]
    shares = shares_of_tasks(files, spark.sparkContext.defaultParallelism)

    def read(number: int) -> Iterator[pa.RecordBatch]:
        for position, file in shares[number]:
            for rows in stored_rows(folder, file, tables[position]):
                keys, values = zip(*rows, strict=True)
                columns = [pa.array([position] * len(rows), pa.int32()), pa.array(keys, pa.binary()), pa.array(values, pa.binary())]
                yield pa.RecordBatch.from_arrays(columns, schema=ROW_SCHEMA)

    return map_numbers(spark, len(shares), read, ROW_SCHEMA)


def shares_of_tasks(files: Sequence[tuple[int, ManifestFile]], cores: int) -> list[list[tuple[int, ManifestFile]]]:
    """Divides files among tasks, each with about as many bytes: many small ones need few tasks."""
    tasks = min(len(files), max(_TASKS_PER_CORE * cores, sum(file.size for _, file in files) // _BYTES_OF_A_TASK))
    shares: list[list[tuple[int, ManifestFile]]] = [[] for _ in range(tasks)]
    loads = [(0, number) for number in range(tasks)]
    for each in sorted(files, key=lambda one: one[1].size, reverse=True):
        load, number = heappop(loads)
        shares[number].append(each)
        heappush(loads, (load + each[1].size, number))
    return shares


def stored_rows(folder: ParquetFolder, file: ManifestFile, table: TableDefinition) -> Iterator[list[tuple[bytes, bytes]]]:
    """Yields a file's rows as HerdDB stored them, as lists of (key, value).

    Raises BaseUnusable if the file is missing or has other bytes than were written, BaseUnread if it can't be read. The errors name the
    file. Raises also as `ParquetFolder.parquet_file`.
    """
    for part in file.with_older_forms():
        try:
            found = file_hash(folder / part.path)
        except FileNotFoundError as error:
            raise BaseUnusable(f"{part.path} can't be read: {error}") from error
        except OSError as error:
            raise BaseUnread(f"{part.path} can't be read: {error}") from error
        if found != part.hash:
            raise BaseUnusable(f"{part.path} has other bytes than were written: {found} instead of {part.hash}")
    encoder = RowEncoder(table)
    older = _older_forms(folder, file)
    number, (next_older, stored) = 0, next(older, _NO_OLDER_FORM)
    with folder.parquet_file(file.path) as content:
        for batch in batches_in(content, _ROWS_AT_ONCE):
            rows = [encoder.encode(row) for row in rows_of(batch)]
            while number <= next_older < number + len(rows):
                key, value = stored
                rows[next_older - number] = rows[next_older - number][0] if key is None else key, value
                next_older, stored = next(older, _NO_OLDER_FORM)
            number += len(rows)
            if rows:
                yield rows


def _older_forms(folder: ParquetFolder, file: ManifestFile) -> Iterator[tuple[int, tuple[bytes | None, bytes]]]:
    """Yields a row's number with its stored key, None if the columns give it, and its stored value."""
    if file.older_forms is None:
        return
    with folder.parquet_file(file.older_forms.path) as content:
        for batch in batches_in(content, _ROWS_AT_ONCE):
            # An earlier version kept no keys.
            keys = batch.column("key").to_pylist() if "key" in batch.schema.names else [None] * len(batch)
            yield from zip(batch.column("row").to_pylist(), zip(keys, batch.column("value").to_pylist(), strict=True), strict=True)


def described(reasons: Sequence[BaseUnusable], shown: int = 3) -> str:
    """Explains to a person why no checkpoint is usable, with the newest `shown` reasons."""
    if not reasons:
        return "this tablespace has none up to the target"
    more = f"; and {len(reasons) - shown} older ones" if len(reasons) > shown else ""
    return "; ".join(str(reason) for reason in reasons[:shown]) + more


def highest_keys_of(base: Base | None) -> Mapping[str, int]:
    """Returns the highest auto-increment key by table uuid, as known before the log that is read."""
    known = () if base is None else base.tables
    return {table.uuid: table.highest_auto_increment for table in known if table.highest_auto_increment is not None}
