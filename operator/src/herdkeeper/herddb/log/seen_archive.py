"""The observation of a log's archive."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.herddb.log.seen_pins import LogPin
from herdkeeper.protocol.log_archive import ArchivedRange, ArchiveProgress, ExpiryOrder
from herdkeeper.shared.unknown import Unknown
from herdkeeper.spark.object_store import StoreSecrets, StoreUnusable


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
    `unread`: a Checkpoint of the tablespace can't be read. `store` opens the declared object store, None without one, or names the unusable
    Secret.
    """

    progress: ArchiveProgress | Unknown | None = None
    pin: LogPin | Unknown | None = None
    trouble: str = ""
    now: float = 0.0
    order: SeenOrder | Unknown | None = None
    unread: Unknown | None = None
    store: StoreSecrets | StoreUnusable | None = None


def archived_at(seen: ArchiveObserved, place: str) -> ArchivedRange | None:
    """Returns what is known to be archived at this place. Archives at other places don't count."""
    progress = seen.progress
    return progress.held if isinstance(progress, ArchiveProgress) and progress.destination == place else None


def archive_begins(held: ArchivedRange, seen: ArchiveObserved, place: str) -> tuple[int, int]:
    """Returns from where on an archive certainly exists: what may expire may be gone."""
    order = seen.order.order if isinstance(seen.order, SeenOrder) else None
    return held.first if order is None or order.destination != place else max(held.first, order.keep_from)
