"""A tablespace's log as an endless stream of committed changes.

An offset is the last LSN read, the restart LSN (the oldest BEGIN that was open there), and the log's identity. Spark's checkpoint stores
them, so a restarted query knows where to read, whatever happened to its process. A cluster that was made again gives its ledgers the
numbers of the former one's: the identity shows that the log is another one. One that was put back to older copies of its volumes keeps its
identity, and writes its lost LSNs anew. So an offset also has the last entry's time, and each read begins with that entry. One process
reads a log in order: only a reader of all earlier entries knows what commits when.

A micro-batch is in the memory of that process, and then of Spark's driver. So it ends at a number of entries or of bytes, whichever comes
first. The changes of open transactions are also in memory, however many they are.

A pin (pin.py) keeps the log from where a restarted query reads. It exists before a new query reads its first entry. It only moves on when
Spark has committed what comes before. Meanwhile another thread renews it (renewal.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Any

import pyarrow as pa
import structlog
from pyspark.sql.datasource import SimpleDataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

from herdkeeper.protocol.log_pin import BEGIN
from herdkeeper_jobs.bookkeeper.kept_catalog import KeptCatalog
from herdkeeper_jobs.bookkeeper.metadata import LedgerCatalog, MetadataUnavailableError
from herdkeeper_jobs.bookkeeper.reader import EntryUnreadableError
from herdkeeper_jobs.datasource.changes import CommittedChanges
from herdkeeper_jobs.datasource.log_range import LogRange, ReadChanges, Stamped, log_range, read_changes
from herdkeeper_jobs.datasource.options import Range, SourceOptions
from herdkeeper_jobs.datasource.pin import HeldLog
from herdkeeper_jobs.errors import CheckpointRefused, CheckpointRetryable
from herdkeeper_jobs.log_source import LogSource, open_log
from herdkeeper_jobs.wal.lsn import Lsn

_log = structlog.get_logger()
BEGIN_OF_LOG = Lsn(*BEGIN)
_PATIENCE_SECONDS = 60.0
"""How long a query that ends by itself waits for entries that were confirmed when it began."""


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """How far a stream has read. `restart` None: no open transaction there; `position` None: nothing read yet. `log`: `Identity.path` of
    what was read, `millis`: the time of the entry at `position`; None if nothing was read, or by an earlier version."""

    position: Lsn | None
    restart: Lsn | None
    log: str | None = None
    millis: int | None = None

    @property
    def needed(self) -> Lsn:
        """Where a query that restarts from here reads."""
        return self.restart or self.position or BEGIN_OF_LOG

    @property
    def read_last(self) -> tuple[Stamped, ...]:
        """The entry at `position`, if its time is known."""
        return () if self.position is None or self.millis is None else (Stamped(self.position, self.millis),)

    def to_document(self) -> dict[str, str]:
        """The form that Spark stores."""
        named = {"position": self.position, "restart": self.restart, "log": self.log, "millis": self.millis}
        return {name: str(value) for name, value in named.items() if value is not None}

    @staticmethod
    def of(document: dict[str, str]) -> StreamOffset:
        """Parses the stored form. Raises ValueError if it is no LSN, or no time."""
        position, restart = (Lsn.parse(document[name]) if name in document else None for name in ("position", "restart"))
        return StreamOffset(position, restart, document.get("log"), int(document["millis"]) if "millis" in document else None)


class ChangeStreamReader(SimpleDataSourceStreamReader, SupportsTriggerAvailableNow):
    """Continues from an offset. Picklable: Spark sends it to the task that repeats a batch."""

    def __init__(self, catalog: Callable[[SourceOptions], AbstractContextManager[LedgerCatalog]], options: SourceOptions) -> None:
        self._connect = partial(catalog, options)
        self._catalog = KeptCatalog(self._connect)
        self._options = options
        self._promised: Lsn | None = None
        """With `trigger(availableNow=True)` the entry with which the query ends."""
        self._known: tuple[StreamOffset, CommittedChanges] | None = None
        self._pin = HeldLog(options.pin) if options.pin is not None else None

    def __getstate__(self) -> dict[str, Any]:
        """Drops what was read, and the session: the receiver repeats a batch from its offsets."""
        return {**self.__dict__, "_known": None, "_pin": None, "_catalog": KeptCatalog(self._connect)}

    def initialOffset(self) -> dict[str, str]:  # noqa: N802 - Spark's name
        """Where a new query begins: after `afterLsn`, or at the log's first entry."""
        return StreamOffset(self._options.range.after, self._options.range.restart).to_document()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """`trigger(availableNow=True)` ends with what is confirmed now."""
        with self._catalog.use() as catalog:
            self._promised = self._log(catalog).confirmed_end(self._options.range.up_to)

    def read(self, start: dict[str, str]) -> tuple[Iterator[pa.RecordBatch], dict[str, str]]:
        """Returns the changes committed in the next entries, and the offset after them; the same offset if there are none.

        Raises LogTruncatedError if entries after the offset were dropped, and EntryUnreadableError if no replica has an entry. Raises
        CheckpointRefused if the offset is of another log, or of a time that its cluster lost. With `trigger(availableNow=True)` also
        CheckpointRetryable.
        """
        offset = StreamOffset.of(start)
        known, self._known = self._known, None
        # This process's earlier reads need no repetition; after a failure all is read again from the restart LSN.
        goes_on = known is not None and known[0] == offset
        begin = replace(offset, restart=None) if goes_on else offset
        found = self._next_part(begin)
        if found is None:
            self._known = known
            return iter([]), start
        part, identity = found
        committed = known[1] if known is not None and goes_on else CommittedChanges(offset.position)
        read = self._read(part, committed, (begin,), self._options.max_bytes_per_batch)
        end = offset if read.end is None else StreamOffset(read.end.lsn, committed.restart, identity, read.end.millis)
        self._known = (end, committed)
        # A list's iterator, since Spark copies it.
        return iter(read.batches), end.to_document()

    def commit(self, end: dict[str, str]) -> None:
        """Moves the pin: Spark has finished everything up to there. A failed move only keeps more of the log until the next one.

        Raises CheckpointRefused if the tablespace has another log now."""
        offset = StreamOffset.of(end)
        if self._pin is None or not self._pin.is_due(offset.needed):
            return
        try:
            with self._catalog.use() as catalog:
                log = self._log(catalog)
                _require_same(log, offset)
                self._pin.keep(log, offset.needed)
        except (CheckpointRetryable, MetadataUnavailableError) as error:
            _log.warning("the stream's pin can't be moved now", stream=self._pin.stream, reason=str(error))

    def hold(self, start: dict[str, str], end: dict[str, str]) -> None:
        """Sets the pin for the batch between two offsets. A batch repeated after a restart is not read here, but needs the log as well.
        Raises as `readBetweenOffsets`; a batch that is refused sets no pin."""
        if self._pin is not None and not self._pin.is_held:
            offset, last = _repeated(start, end)
            self._part(offset, last.position, None)

    def renew(self) -> None:
        """Renews the pin in a session of its own, so another thread may call it. Raises as `hold`."""
        if self._pin is not None:
            with self._connect() as catalog:
                self._pin.renew(self._log(catalog))

    def close(self) -> None:
        """Ends the ZooKeeper session that is kept between two reads."""
        self._catalog.close()

    def readBetweenOffsets(self, start: dict[str, str], end: dict[str, str]) -> Iterator[pa.RecordBatch]:  # noqa: N802 - Spark's name
        """Reads the same changes again. Raises as `read`, and CheckpointRetryable and MetadataUnavailableError: then the query must be
        restarted."""
        offset, last = _repeated(start, end)
        try:
            part, _ = self._part(offset, last.position, None)
            return iter(self._read(part, CommittedChanges(offset.position), (offset, last), inf).batches)
        finally:
            self.close()  # a task calls this only once

    def _read(self, part: LogRange, committed: CommittedChanges, known: Sequence[StreamOffset], most_bytes: float) -> ReadChanges:
        """`known`: offsets of earlier reads, the first one being that where the part begins."""
        begin = known[0]
        try:
            return read_changes(part, committed, most_bytes, [one for offset in known for one in offset.read_last])
        except EntryUnreadableError:
            # If the ledger was dropped meanwhile, report that instead: bookies forget its entries.
            with suppress(CheckpointRetryable, MetadataUnavailableError), self._catalog.use() as catalog:
                self._log(catalog).readable_from(begin.restart or begin.position)
            raise

    def _next_part(self, begin: StreamOffset) -> tuple[LogRange, str] | None:
        """Returns what to read behind an offset, and of which log; None if that is nothing now.

        Spark ends a query with `trigger(availableNow=True)` then. So what was confirmed when it began is waited for. Raises
        CheckpointRetryable if it can't be read for a minute.
        """
        gives_up_at = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                part, identity = self._part(begin, self._promised or self._options.range.up_to, self._options.max_entries_per_batch)
                if part.end is not None and (begin.position is None or part.end > begin.position):
                    return part, identity
                reason = "bookies report an earlier end"
            except (CheckpointRetryable, MetadataUnavailableError) as error:
                reason = str(error)
                _log.warning("the log can't be read now; the read is retried", tablespace=self._options.tablespace, reason=reason)
            # Spark calls again at once.
            time.sleep(self._options.poll_seconds)
            if self._promised is None or (begin.position is not None and begin.position >= self._promised):
                return None
            if time.monotonic() >= gives_up_at:
                raise CheckpointRetryable(
                    f"the log of {self._options.tablespace!r} was confirmed up to {self._promised} when the query began, and can't be read "
                    f"behind {begin.position or 'its beginning'} now: {reason}. Start the query again"
                )

    def _part(self, offset: StreamOffset, up_to: Lsn | None, most: int | None) -> tuple[LogRange, str]:
        """Returns what to read, and of which log."""
        with self._catalog.use() as catalog:
            log = self._log(catalog)
            _require_same(log, offset)
            again = offset.restart or (offset.position if offset.read_last else None)
            wanted = Range(offset.position, up_to, again)
            if self._pin is not None and not self._pin.is_held:
                log_range(log, wanted, self._options, most)  # a stream that is refused pins nothing
                self._pin.begin(log, offset.needed)
            return log_range(log, wanted, self._options, most), log.identity.path

    def _log(self, catalog: LedgerCatalog) -> LogSource:
        return open_log(catalog, self._options.herd_root, self._options.tablespace)


def _repeated(start: dict[str, str], end: dict[str, str]) -> tuple[StreamOffset, StreamOffset]:
    """Where a repeated batch begins and ends. A first batch begins in no log yet: it is of the log in which it ends."""
    last = StreamOffset.of(end)
    return replace(StreamOffset.of(start), log=last.log), last


def _require_same(log: LogSource, offset: StreamOffset) -> None:
    identity = log.identity.path
    if offset.log not in (None, identity):
        read_to = "" if offset.position is None else f" up to {offset.position}"
        raise CheckpointRefused(
            f"the query has read the log {offset.log}{read_to}, and the tablespace {log.name!r} has the log "
            f"{identity}: it, or its cluster, was made again under this name. Start the query with a new checkpointLocation"
        )
