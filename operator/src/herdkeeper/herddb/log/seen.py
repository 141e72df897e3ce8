"""The observation of a tablespace's log: pins, the operator's and those of streams, and its archive."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field

from herdkeeper.protocol.log_archive import ArchivedRange, ArchiveProgress, ExpiryOrder
from herdkeeper.protocol.log_pin import StreamPin
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.unknown import Unknown
from herdkeeper.spark.object_store import StoreSecrets

STANDS_SECONDS = 600
"""A running stream renews its pin each half minute. One that is silent for longer than this is down, or can't reach ZooKeeper. Streams of
an earlier version are also silent during a batch."""


@dataclass(frozen=True)
class LogPin:
    """The log is kept from `lsn` (ledger id, entry id) on; None, of a malformed znode, keeps all of it. `version` is the znode's."""

    lsn: tuple[int, int] | None
    version: int


@dataclass(frozen=True)
class SeenStream:
    """A change stream's pin. `pin` is None if the znode is malformed: all of the log is kept. `moved_at`: last write, by ZooKeeper."""

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


@dataclass(frozen=True)
class SeenOrder:
    """The last order to expire, None if unreadable, and the znode's version."""

    order: ExpiryOrder | None
    version: int


@dataclass(frozen=True)
class ArchiveObserved:
    """What was observed of the archive.

    `progress` is the archiver's report, None before the first; `pin` the operator's pin on unarchived log, or None. `trouble` is why the
    archiver's pod does not run, empty if it runs or was not checked. `now`: Unix seconds. `order` is the order to expire, or None.
    `unread`: a Checkpoint of the tablespace can't be read. `doubted` tells by a Checkpoint's name why its files may be of no use; `locked`
    are the names of those whose key is gone. `store` opens the declared object store, None without one, or names the unusable Secret.
    """

    progress: ArchiveProgress | Unknown | None = None
    pin: LogPin | Unknown | None = None
    trouble: str = ""
    now: float = 0.0
    order: SeenOrder | Unknown | None = None
    unread: Unknown | None = None
    doubted: Mapping[str, str] = field(default_factory=dict)
    locked: frozenset[str] = frozenset()
    store: StoreSecrets | Problem | None = None


def archived_at(seen: ArchiveObserved, place: str) -> ArchivedRange | None:
    """Returns what is known to be archived at this place. Archives at other places don't count."""
    progress = seen.progress
    return progress.held if isinstance(progress, ArchiveProgress) and progress.destination == place else None


def archive_begins(held: ArchivedRange, seen: ArchiveObserved, place: str) -> tuple[int, int]:
    """Returns from where on an archive certainly exists: what may expire may be gone."""
    order = seen.order.order if isinstance(seen.order, SeenOrder) else None
    return held.first if order is None or order.destination != place else max(held.first, order.keep_from)
