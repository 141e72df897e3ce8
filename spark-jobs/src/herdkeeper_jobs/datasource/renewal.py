"""Tells while a query runs that it lives: writes its pin again, from where the log is kept already, also while a batch is worked on, and
between two triggers.

Spark asks a stream's reader by one thread in a process that it starts with the query and ends with it, and asks nothing while a batch is
worked on, so another thread of that process renews. It ends with the process, thus with the query, with Spark's driver, with the machine.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import structlog
from pyspark.sql.datasource import InputPartition
from pyspark.sql.datasource_internal import _SimpleStreamReaderWrapper
from pyspark.sql.streaming.datasource import ReadLimit

from herdkeeper_jobs.datasource.stream import ChangeStreamReader

_RENEWED_SECONDS = 30.0
_RENEWALS_IN_ITS_AGE = 4
"""So that three may fail in a row, and the pin still counts."""

_log = structlog.get_logger()


def renewed_each(max_age_seconds: float) -> float:
    """How many seconds lie between two renewals of a pin that counts for so long after it was written last."""
    return min(_RENEWED_SECONDS, max_age_seconds / _RENEWALS_IN_ITS_AGE)


class Renewal:
    """Calls `renew` each so often, the first time after that time, from `start` until `end`."""

    def __init__(self, renew: Callable[[], None], each_seconds: float, patience_seconds: float = 5.0) -> None:
        self._renew = renew
        self._each_seconds = each_seconds
        self._patience_seconds = patience_seconds
        self._ended = threading.Event()
        # A daemon: a renewal that waits for ZooKeeper keeps no process alive whose query is over.
        self._thread = threading.Thread(target=self._run, name="renewal-of-the-pin", daemon=True)

    def start(self) -> None:
        """Once it has been started, or has ended, nothing."""
        if self._thread.ident is None and not self._ended.is_set():
            self._thread.start()

    @property
    def is_on(self) -> bool:
        """Whether renewals are under way."""
        return self._thread.is_alive()

    def end(self) -> bool:
        """No renewal begins any more. Waits a moment for one that is under way; whether it is over."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join(self._patience_seconds)
        return not self.is_on

    def _run(self) -> None:
        while not self._ended.wait(self._each_seconds):
            try:
                self._renew()
            except Exception as error:  # whatever it was: a thread that ends lets go of the log, hours later and without a word
                _log.warning("the stream's pin can't be renewed now; it is tried again", reason=f"{type(error).__name__}: {error}")


class RenewingReader(_SimpleStreamReaderWrapper):
    """A stream with a pin, as Spark drives it: what Spark makes of a simple reader, and the pin held and renewed besides.

    Of the calls that Spark makes, a simple reader gets none before a batch that is repeated after a restart, and none when the query
    ends; so this is a subclass of Spark's own wrapper, to which Spark, too, tells a simple reader by its class (the rows that are read in
    planning are the batch).
    """

    def __init__(self, reader: ChangeStreamReader, max_age_seconds: float) -> None:
        super().__init__(reader)
        self._reader = reader
        self._renewal: Renewal | None = Renewal(reader.renew, renewed_each(max_age_seconds))

    def __getstate__(self) -> dict[str, Any]:
        """For the tasks, which only read."""
        return {**self.__dict__, "_renewal": None}

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:  # noqa: N802 - Spark's name
        """Reads the next batch."""
        self._begin()
        return super().latestOffset(start, limit)

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> list[InputPartition]:
        """A batch begins. One that is repeated after a restart is the first that this process hears of the query."""
        self._reader.hold(start)
        self._begin()
        return list(super().partitions(start, end))

    def stop(self) -> None:
        """The query is over: its pin counts for its age from now on."""
        if self._renewal is not None:
            self._renewal.end()
        self._reader.close()

    @property
    def renews(self) -> bool:
        """Whether the pin is renewed now."""
        return self._renewal is not None and self._renewal.is_on

    def _begin(self) -> None:
        if self._renewal is not None:
            self._renewal.start()
