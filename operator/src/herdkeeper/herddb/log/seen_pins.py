"""The observation of the pins on a tablespace's log: the operator's, and those of streams."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from herdkeeper.protocol.log_pin import StreamPin

STANDS_SECONDS = 600
"""A running stream renews its pin each half minute. One that is silent for longer than this is down, or can't reach ZooKeeper. Streams of
an earlier version are also silent during a batch."""


@dataclass(frozen=True)
class LogPin:
    """The log is kept from `lsn` (ledger id, entry id) on. None if the znode is malformed, and the whole log is kept. `version` is the
    znode's.
    """

    lsn: tuple[int, int] | None
    version: int


@dataclass(frozen=True)
class SeenStream:
    """The pin of a change stream. `pin` is None if the znode is malformed, and the whole log is kept. `moved_at`: its last write, by
    ZooKeeper's clock.
    """

    name: str
    pin: StreamPin | None
    moved_at: datetime.datetime

    @property
    def stands_at(self) -> datetime.datetime:
        """Returns when the stream counts as standing if it stays silent."""
        return self.moved_at + datetime.timedelta(seconds=STANDS_SECONDS)

    @property
    def counts_until(self) -> datetime.datetime | None:
        """Returns until when the log is kept for it. None if unknown, and it is kept forever."""
        return None if self.pin is None else self.moved_at + datetime.timedelta(seconds=self.pin.max_age_seconds)

    def is_abandoned(self, now: datetime.datetime) -> bool:
        """Returns whether the log is no longer kept for it."""
        until = self.counts_until
        return until is not None and now > until
