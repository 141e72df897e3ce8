"""What was seen of the pins on a tablespace's log: the operator's own, and those of streams."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from herdkeeper.protocol.log_pin import StreamPin

STANDS_SECONDS = 600
"""A stream renews its pin each half minute while its query runs: one that is silent for longer than this is down, or can't reach
ZooKeeper. Those of an earlier version are silent while they work on a batch, too."""


@dataclass(frozen=True)
class LogPin:
    """The log is kept from `lsn` (ledger id, entry id) on; None when the znode holds something else, and the whole log is kept. `version`
    is the znode's."""

    lsn: tuple[int, int] | None
    version: int


@dataclass(frozen=True)
class SeenStream:
    """The pin of a stream of changes. `pin` is None when the znode holds something else, and the whole log is kept. `moved_at`: when it was
    written last, by ZooKeeper's clock."""

    name: str
    pin: StreamPin | None
    moved_at: datetime.datetime

    @property
    def stands_at(self) -> datetime.datetime:
        """When it will have told nothing for longer than one that runs is silent."""
        return self.moved_at + datetime.timedelta(seconds=STANDS_SECONDS)

    @property
    def counts_until(self) -> datetime.datetime | None:
        """Up to when the log is kept for it; None where that is not known, and it is kept for ever."""
        return None if self.pin is None else self.moved_at + datetime.timedelta(seconds=self.pin.max_age_seconds)

    def is_abandoned(self, now: datetime.datetime) -> bool:
        """Whether the log is kept for it no longer."""
        until = self.counts_until
        return until is not None and now > until
