"""Spark's data source `bookkeeper`. Register it once per session: `register(spark)`.

With the option `ledgers` it gives raw entries (ENTRIES) in parallel tasks. With `tablespace` it gives a HerdDB log's committed changes
(CHANGES), in the order of their commits, as a batch or as a stream. It never fences: open ledgers are read up to their LAC.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition, SimpleDataSourceStreamReader
from pyspark.sql.types import StructType

from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata
from herdkeeper_jobs.bookkeeper.metadata import LedgerCatalog, UndecodableMetadata, open_catalog
from herdkeeper_jobs.bookkeeper.reader import LedgerPiece, PartitionSpec, cut_pieces, end_of_confirmed, ledger_pieces, read_partition
from herdkeeper_jobs.datasource.log_range import LogRange, changes_in, last_to_read, log_range, verified
from herdkeeper_jobs.datasource.options import LEDGERS, PIN, UP_TO_LSN, OptionError, Range, SourceOptions, parse_options
from herdkeeper_jobs.datasource.renewal import RenewingReader
from herdkeeper_jobs.datasource.schema import CHANGES, ENTRIES
from herdkeeper_jobs.datasource.stream import ChangeStreamReader
from herdkeeper_jobs.errors import NotConfirmedYet
from herdkeeper_jobs.log_source import open_log
from herdkeeper_jobs.wal.lsn import Lsn


class BookKeeperDataSource(DataSource):
    """`format("bookkeeper")`. Options: see `options` and docs/change-data-capture.md."""

    @classmethod
    def name(cls) -> str:
        return "bookkeeper"

    def schema(self) -> StructType:
        """ENTRIES or CHANGES, by the options."""
        return ENTRIES if self.parsed().ledger_ids else CHANGES

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - fixed by the options
        options = self.parsed()
        if options.pin is not None:
            raise OptionError(f"{PIN} is {options.pin.stream!r}: a batch is read at once; leave it out, or use readStream")
        return EntryReader(self, options) if options.ledger_ids else ChangeReader(self, options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """The reader of `spark.readStream` with a pin; without one Spark uses the simple reader."""
        options = self.parsed()
        if options.pin is None:
            return super().streamReader(schema)
        return RenewingReader(ChangeStreamReader(self.catalog, options), options.pin.max_age_seconds)

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:  # noqa: N802, ARG002 - Spark's name
        options = self.parsed()
        if options.ledger_ids:
            raise OptionError(f"{LEDGERS} can't be streamed: a ledger ends; give tablespace and herdRoot")
        return ChangeStreamReader(self.catalog, options)

    def parsed(self) -> SourceOptions:
        return parse_options(self.options, self.tasks_at_once())

    def tasks_at_once(self) -> int | None:
        """The session's maximum of parallel tasks; None if unknown."""
        return None

    def catalog(self, options: SourceOptions) -> AbstractContextManager[LedgerCatalog]:
        """The cluster's metadata; the caller closes the connection."""
        return open_catalog(options.zookeeper, options.ledgers_root)


def register(spark: SparkSession) -> None:
    """Registers the data source with a session, and passes on how many tasks that session runs at once."""
    spark.dataSource.register(knowing(BookKeeperDataSource, most_tasks_at_once(spark)))


def knowing(source: type[BookKeeperDataSource], tasks: int) -> type[BookKeeperDataSource]:
    """A data source class that knows a session's number of parallel tasks. Spark plans in a process without a session, and gets the
    class."""

    class KnowingDataSource(source):  # type: ignore[misc, valid-type]
        def tasks_at_once(self) -> int | None:
            return tasks

    return KnowingDataSource


def most_tasks_at_once(spark: SparkSession) -> int:
    """The default parallelism, or the cores of all configured executors: at a session's start some are missing."""
    configuration = spark.sparkContext.getConf()
    executors = max(int(configuration.get(f"spark.{name}", "0")) for name in ("executor.instances", "dynamicAllocation.maxExecutors"))
    return max(spark.sparkContext.defaultParallelism, executors * int(configuration.get("spark.executor.cores", "1")))


@dataclass(frozen=True)
class EntryPartition(InputPartition):
    """What one task reads."""

    spec: PartitionSpec


class _Reader(DataSourceReader):
    def __init__(self, source: BookKeeperDataSource, options: SourceOptions) -> None:
        self._source = source
        self._options = options


class EntryReader(_Reader):
    """Entries of ledgers, in partitions of about equal bytes."""

    def partitions(self) -> list[InputPartition]:
        """Reads the metadata. Raises OptionError for a missing ledger, NotConfirmedYet if `upToLsn` can't be read yet."""
        options = self._options
        with self._source.catalog(options) as catalog:
            addresses = catalog.bookie_addresses()
            read = list(catalog.read_many(options.ledger_ids))
            pieces: list[LedgerPiece] = []
            for item in read:
                if isinstance(item, UndecodableMetadata):
                    raise OptionError(f"{LEDGERS}: {item.reason}")
                last = end_of_confirmed(item.metadata, addresses, options.read).entry_id
                _require_confirmed(item.metadata, last, options.range.up_to)
                pieces.extend(ledger_pieces(item.metadata, *_bounds(item.metadata.ledger_id, last, options.range)))
        known = {item.metadata.ledger_id for item in read if not isinstance(item, UndecodableMetadata)}
        missing = [ledger_id for ledger_id in options.ledger_ids if ledger_id not in known]
        if missing:
            raise OptionError(f"{LEDGERS}: ledger {missing[0]} does not exist below {options.ledgers_root}; leave it out")
        specs = cut_pieces(verified(pieces, options), addresses, options.partitions, options.read)
        return [EntryPartition(spec) for spec in specs]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Raises EntryUnreadableError, naming ledger, entry and each replica's answer."""
        if not isinstance(partition, EntryPartition):
            return  # without partitions Spark calls once without one
        yield from read_partition(partition.spec)


@dataclass(frozen=True)
class ChangePartition(InputPartition):
    """A part of a log, read by one task: only a reader of all entries knows the order of commits."""

    range: LogRange


class ChangeReader(_Reader):
    """The committed changes of a log between two LSNs."""

    def partitions(self) -> list[InputPartition]:
        """Reads the metadata. Raises as `log_range`."""
        options = self._options
        with self._source.catalog(options) as catalog:
            log = open_log(catalog, options.herd_root, options.tablespace)
            return [ChangePartition(log_range(log, options.range, options, most=None))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Raises EntryUnreadableError and TransactionBeganEarlierError."""
        if not isinstance(partition, ChangePartition):
            return
        yield from changes_in(partition.range)


def _require_confirmed(metadata: LedgerMetadata, last: int, up_to: Lsn | None) -> None:
    if up_to is not None and up_to.ledger_id == metadata.ledger_id and up_to.entry_id > last and not metadata.closed:
        raise NotConfirmedYet(f"{UP_TO_LSN} is {up_to}: ledger {metadata.ledger_id} can be read up to entry {last} now; try again later")


def _bounds(ledger_id: int, last: int, wanted: Range) -> tuple[int, int]:
    """Last and first entry to read of a ledger; last is -1 for nothing."""
    first = 0
    if wanted.after is not None and ledger_id <= wanted.after.ledger_id:
        if ledger_id < wanted.after.ledger_id:
            return -1, 0
        first = wanted.after.entry_id + 1
    return last_to_read(Lsn(ledger_id, last), wanted.up_to), first
