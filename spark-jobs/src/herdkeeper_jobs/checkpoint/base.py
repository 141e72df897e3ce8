"""The checkpoint that another one is made from: it and the log behind it give what the whole log gives. (Where there is none, the tables
of a follower may take its place: `follower_base`.)

HerdDB drops ledgers by age, so the log alone goes back a few days only. A base is taken only where nothing of it has to be believed: the
log is there from the oldest transaction that was open in it, its manifest knows what was defined and open, its files have the bytes that
were written, and its rows, encoded anew, the digest of the rows that HerdDB had stored. What is not usable says why, and the next older one
is looked at. All rows of a base go into the new checkpoint's own files: nobody needs it afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, assert_never

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from herdkeeper.codecs.herddb.record import RowEncoder
from herdkeeper.codecs.herddb.row_digest import RowDigest, digest_of_rows
from herdkeeper.codecs.herddb.table import TableDefinition, decode_table
from herdkeeper_jobs.checkpoint.arrow_table import rows_of
from herdkeeper_jobs.encryption.parquet_folder import ParquetFolder
from herdkeeper_jobs.errors import CheckpointRefused, InvariantViolated
from herdkeeper_jobs.manifests.manifest import Identity, Manifest, ManifestBase, ManifestFile, manifests, read_manifest
from herdkeeper_jobs.storage.stored_path import StoredPath, file_hash
from herdkeeper_jobs.task_error import essence
from herdkeeper_jobs.wal.fold import BaseChanges
from herdkeeper_jobs.wal.log_state import StartingPoint
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.moment import Time
from herdkeeper_jobs.wal.timeline import Timeline

_VERIFIED = frozenset({"Follower", "Self", "Beyond", "Reread"})
_ROWS_AT_ONCE = 1_000
"""Of a file: rows may have some kilobytes each, and are Python objects here."""
ROW_COLUMNS = "base_table int, row_key binary, row_value binary"
"""ROW_SCHEMA as Spark's DDL text."""
ROW_SCHEMA = pa.schema([("base_table", pa.int32()), ("row_key", pa.binary()), ("row_value", pa.binary())])
"""Rows as HerdDB stores them, and the number of their table among those of the base."""
_DIGEST_COLUMNS = "base_table int, rows long, digest string"
_DIGEST_SCHEMA = pa.schema([("base_table", pa.int32()), ("rows", pa.int64()), ("digest", pa.string())])


class BaseUnusable(ValueError):  # noqa: N818 - an answer, not a fault of the program
    """A checkpoint can't be gone on from; the message names it and says why."""


class BaseToRepair(BaseUnusable):
    """There is a base, for which somebody has to do first what the message says: its key is not here."""


class BaseUnread(BaseUnusable):
    """Whether it is a base is not known: something of it could not be read this time."""


@dataclass(frozen=True, slots=True)
class BaseTable:
    """A table of a base: what its rows must be, and the highest auto-increment key that was ever inserted, None where there is none."""

    name: str
    uuid: str
    digest: RowDigest
    highest_auto_increment: int | None


class Base(Protocol):
    """What is gone on from: a checkpoint, or the tables of a follower. Its rows are not read yet."""

    @property
    def start(self) -> StartingPoint:
        """Where the log's walk begins."""

    @property
    def tables(self) -> Sequence[BaseTable]:
        """What has rows in it, in the order by which rows name them."""

    @property
    def record(self) -> ManifestBase:
        """What the new checkpoint's manifest tells of it."""

    @property
    def latest_timestamp_millis(self) -> int | None:
        """No entry up to its start has a later time; None where nothing is known of that."""

    @property
    def whole_log_at(self) -> int | None:
        """As `Outline.whole_log_at`."""

    def release(self) -> None:
        """Frees what was made for it alone."""


@dataclass(frozen=True, slots=True)
class CheckpointBase:
    """A checkpoint to go on from. Its rows are not read yet."""

    manifest: Manifest
    path: StoredPath
    start: StartingPoint

    @property
    def folder(self) -> ParquetFolder:
        """The tablespace's folder, which the paths of files are relative to."""
        return self.manifest.files_in(self.path.parent.parent)

    @property
    def tables(self) -> Sequence[BaseTable]:
        """As the manifest tells of them."""
        return [
            BaseTable(table.name, table.uuid, RowDigest.parse(table.rows, table.digest), table.highest_auto_increment)
            for table in self.manifest.tables
        ]

    @property
    def latest_timestamp_millis(self) -> int | None:
        """As the manifest tells."""
        return self.manifest.latest_timestamp_millis

    @property
    def whole_log_at(self) -> int | None:
        """As the manifest tells."""
        return self.manifest.whole_log_at

    @property
    def record(self) -> ManifestBase:
        """What the new checkpoint's manifest tells of it."""
        return ManifestBase(manifest=self.path.name, lsn=self.manifest.lsn, run_id=self.manifest.run_id)

    def release(self) -> None:
        """It is somebody's checkpoint, and stays."""


@dataclass(frozen=True, slots=True)
class BaseRows:
    """A base's rows, proven and on local disk: `rows` has base_table, row_key, row_value. `release` it."""

    base: Base
    rows: DataFrame

    def changes(self, timeline: Timeline) -> BaseChanges:
        """The rows, and where their tables are in the timeline."""
        return BaseChanges(self.rows, [timeline.place_of_base(table.uuid) for table in self.base.tables], self.base.start.at)

    def release(self) -> None:
        """Frees the disk."""
        self.rows.unpersist()
        self.base.release()


def candidates(folder: StoredPath, identity: Identity, at: Lsn | Time) -> Iterator[CheckpointBase | BaseUnusable]:
    """The checkpoints of a tablespace up to a moment, newest first, each as a base or as the reason why it is none.

    What its files hold, and whether the log is there from its `start.restart` on, is not looked at yet.
    """
    for path in reversed(manifests(folder.parent.parent, folder.parent.name, folder.name)):
        try:
            manifest = read_manifest(path)
            if _is_within(manifest, at):
                yield CheckpointBase(manifest, path, _starting_point(manifest, identity))
        except CheckpointRefused as error:
            yield BaseToRepair(f"{path.stem}: {error}")
        except (InvariantViolated, ValueError, FileNotFoundError) as error:
            yield BaseUnusable(f"{path.stem}: {error}")
        except OSError as error:
            yield BaseUnread(f"{path.stem}: {path} can't be read: {error}")


def _is_within(manifest: Manifest, at: Lsn | Time) -> bool:
    """Whether all that a checkpoint holds belongs to what the log was at a moment: the log is cut before the first entry that is later."""
    match at:
        case Lsn():
            return manifest.lsn.lsn <= at
        case Time(millis, _):
            return manifest.latest_timestamp_millis is not None and manifest.latest_timestamp_millis <= millis
        case _:
            assert_never(at)


def _starting_point(manifest: Manifest, identity: Identity) -> StartingPoint:
    owner, ours = manifest.identity, (identity.instance_id, identity.tablespace_uuid)
    if (owner.instance_id, owner.tablespace_uuid) != ours:
        raise BaseUnusable(f"it belongs to {owner.instance_id}/{owner.tablespace_uuid}")
    if manifest.verified.how not in _VERIFIED:
        raise BaseUnusable(f"it was verified by {manifest.verified.how!r}, which this program does not know")
    if manifest.continuation is None:
        raise BaseUnusable("an earlier version made it, which did not keep what was defined and open there")
    start = StartingPoint(manifest.lsn.lsn, manifest.continuation.state)
    if start.restart != manifest.restart_lsn.lsn:
        raise BaseUnusable(f"its restartLsn is {manifest.restart_lsn.lsn}, but its oldest open transaction began at {start.restart}")
    return start


def load_rows(spark: SparkSession, base: CheckpointBase) -> BaseRows:
    """Reads a base's files and proves them. Raises BaseUnusable for files or rows that are not what the manifest says, BaseUnread for files
    that can't be read now."""
    try:
        return proven_rows(_read(spark, base), base)
    except BaseUnusable as error:
        raise type(error)(f"{base.path.stem}: {error}") from error


def proven_rows(read: DataFrame, base: Base) -> BaseRows:
    """The rows of a base (ROW_SCHEMA), which are read once, and must be those of its tables. Raises BaseUnusable, also for what a task
    raises it for."""
    rows = read.persist(StorageLevel.DISK_ONLY)
    try:
        for table, digest in zip(base.tables, _digests(rows, len(base.tables)), strict=True):
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
                # Spark hands on the text of a task's error, behind the name of its class.
                raise kind(essence(str(error)).rpartition(f"{kind.__name__}: ")[2]) from error
        raise
    return BaseRows(base, rows)


def _read(spark: SparkSession, base: CheckpointBase) -> DataFrame:
    folder = base.folder
    tables = [decode_table(bytes.fromhex(table.definition)) for table in base.manifest.tables]
    files = [(position, file) for position, table in enumerate(base.manifest.tables) for file in table.files]

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                position, file = files[number]
                for rows in stored_rows(folder, file, tables[position]):
                    keys, values = zip(*rows, strict=True)
                    columns = [pa.array([position] * len(rows), pa.int32()), pa.array(keys, pa.binary()), pa.array(values, pa.binary())]
                    yield pa.RecordBatch.from_arrays(columns, schema=ROW_SCHEMA)

    return spark.range(0, len(files), 1, max(1, len(files))).mapInArrow(read, ROW_COLUMNS)


def stored_rows(folder: ParquetFolder, file: ManifestFile, table: TableDefinition) -> Iterator[list[tuple[bytes, bytes]]]:
    """The rows of a file as HerdDB stored them, key and value, some thousands at a time.

    Raises, naming the file, BaseUnusable when it is gone or has other bytes than were written, BaseUnread when it can't be read, and as
    `ParquetFolder.parquet_file`.
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
    number, (next_older, value) = 0, next(older, (-1, b""))
    with folder.parquet_file(file.path) as content:
        for batch in content.iter_batches(_ROWS_AT_ONCE):
            rows = [encoder.encode(row) for row in rows_of(batch)]
            while number <= next_older < number + len(rows):
                rows[next_older - number] = rows[next_older - number][0], value
                next_older, value = next(older, (-1, b""))
            number += len(rows)
            if rows:
                yield rows


def _older_forms(folder: ParquetFolder, file: ManifestFile) -> Iterator[tuple[int, bytes]]:
    if file.older_forms is None:
        return
    with folder.parquet_file(file.older_forms.path) as content:
        for batch in content.iter_batches(_ROWS_AT_ONCE):
            yield from zip(batch.column("row").to_pylist(), batch.column("value").to_pylist(), strict=True)


def _digests(rows: DataFrame, tables: int) -> list[RowDigest]:
    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        totals: dict[int, RowDigest] = {}
        for batch in batches:
            grouped: dict[int, list[tuple[bytes, bytes]]] = {}
            for position, key, value in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                grouped.setdefault(position, []).append((key, value))
            for position, items in grouped.items():
                totals[position] = totals.get(position, RowDigest()) + digest_of_rows(items)
        found = [{"base_table": position, "rows": digest.rows, "digest": digest.hex} for position, digest in totals.items()]
        yield pa.RecordBatch.from_pylist(found, schema=_DIGEST_SCHEMA)

    totals = [RowDigest() for _ in range(tables)]
    for row in rows.mapInArrow(work, _DIGEST_COLUMNS).collect():
        totals[row["base_table"]] += RowDigest.parse(row["rows"], row["digest"])
    return totals


def described(reasons: Sequence[BaseUnusable], shown: int = 3) -> str:
    """Why none of the checkpoints that were looked at is usable, for a person; a summary has room for the newest ones only."""
    if not reasons:
        return "there is none of this tablespace up to the target"
    more = f"; and {len(reasons) - shown} older ones" if len(reasons) > shown else ""
    return "; ".join(str(reason) for reason in reasons[:shown]) + more


def uuids_of_altered(timeline: Timeline) -> frozenset[str]:
    """The tables that may have rows in an older form."""
    return frozenset(table.definition.uuid for table in timeline.state.tables if table.altered)


def highest_keys_of(base: Base | None) -> Mapping[str, int]:
    """What is known of auto-increment keys before the log that is read."""
    known = () if base is None else base.tables
    return {table.uuid: table.highest_auto_increment for table in known if table.highest_auto_increment is not None}
