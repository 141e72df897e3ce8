"""Renews a stream's pin while its query runs, also during a batch and between two triggers.

Spark calls a stream's reader in one thread of a process that lives as long as the query, but not during a batch. So another thread of that
process renews the pin. It ends with the process, thus with the query, with Spark's driver, or with the machine.
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
"""Three renewals may fail in a row before the pin expires."""

_log = structlog.get_logger()


def renewed_each(max_age_seconds: float) -> float:
    """The seconds between two renewals of a pin with this maximum age."""
    return min(_RENEWED_SECONDS, max_age_seconds / _RENEWALS_IN_ITS_AGE)


class Renewal:
    """Calls `renew` every `each_seconds`, from `start` until `end`; the first time after one interval."""

    def __init__(self, renew: Callable[[], None], each_seconds: float, patience_seconds: float = 5.0) -> None:
        self._renew = renew
        self._each_seconds = each_seconds
        self._patience_seconds = patience_seconds
        self._ended = threading.Event()
        # A daemon: a renewal that waits for ZooKeeper must not keep an ended query's process alive.
        self._thread = threading.Thread(target=self._run, name="renewal-of-the-pin", daemon=True)

    def start(self) -> None:
        """Starts the renewals. Does nothing if started or ended before."""
        if self._thread.ident is None and not self._ended.is_set():
            self._thread.start()

    @property
    def is_on(self) -> bool:
        return self._thread.is_alive()

    def end(self) -> bool:
        """Ends the renewals. Waits a moment for a running one; returns whether it is over."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join(self._patience_seconds)
        return not self.is_on

    def _run(self) -> None:
        while not self._ended.wait(self._each_seconds):
            try:
                self._renew()
            except Exception as error:  # any error: an ended thread would silently release the log hours later
                _log.warning("the stream's pin can't be renewed now; the renewal is retried", reason=f"{type(error).__name__}: {error}")


class RenewingReader(_SimpleStreamReaderWrapper):
    """A stream with a pin, as Spark drives it: Spark's wrapper of a simple reader, which also holds and renews the pin.

    Spark does not call a simple reader before a batch that is repeated after a restart, nor at the query's end. Hence this subclass of
    Spark's own wrapper, by which Spark recognizes simple readers (rows read in planning are the batch).
    """

    def __init__(self, reader: ChangeStreamReader, max_age_seconds: float) -> None:
        super().__init__(reader)
        self._reader = reader
        self._renewal: Renewal | None = Renewal(reader.renew, renewed_each(max_age_seconds))

    def __getstate__(self) -> dict[str, Any]:
        """Tasks only read, so they need no renewal."""
        return {**self.__dict__, "_renewal": None}

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:  # noqa: N802 - Spark's name
        self._begin()
        return super().latestOffset(start, limit)

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> list[InputPartition]:
        """Starts a batch. After a restart this is the process's first call for a repeated batch."""
        self._reader.hold(start, end)
        self._begin()
        return list(super().partitions(start, end))

    def stop(self) -> None:
        """Ends with the query: from now on the pin ages."""
        if self._renewal is not None:
            self._renewal.end()
        self._reader.close()

    @property
    def renews(self) -> bool:
        return self._renewal is not None and self._renewal.is_on

    def _begin(self) -> None:
        if self._renewal is not None:
            self._renewal.start()
