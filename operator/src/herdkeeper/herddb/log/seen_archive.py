"""What was seen of the archive of a tablespace's log."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.herddb.log.seen_pins import LogPin
from herdkeeper.protocol.log_archive import ArchivedRange, ArchiveProgress, ExpiryOrder
from herdkeeper.shared.unknown import Unknown
from herdkeeper.spark.object_store import StoreSecrets, StoreUnusable


@dataclass(frozen=True)
class SeenOrder:
    """What the archiver was told last of what may go, None when that can't be read, and the znode's version."""

    order: ExpiryOrder | None
    version: int


@dataclass(frozen=True)
class ArchiveObserved:
    """`progress` is what the archiver says, None while it said nothing yet; `pin` the operator's pin on what is not archived, None while
    there is none. `trouble` is why the archiver's pod does not run, empty when it does, or was not looked at. `now`: seconds since 1970.
    `order` is what of the archive may go, None while nothing may. `unread`: a Checkpoint of the tablespace can't be read. `store` is what
    the object store is opened with that the spec names, None where it names none; or which Secret is not what the destination needs."""

    progress: ArchiveProgress | Unknown | None = None
    pin: LogPin | Unknown | None = None
    trouble: str = ""
    now: float = 0.0
    order: SeenOrder | Unknown | None = None
    unread: Unknown | None = None
    store: StoreSecrets | StoreUnusable | None = None


def archived_at(seen: ArchiveObserved, place: str) -> ArchivedRange | None:
    """What is archived at a place, as far as it is known. What is at another one counts for nothing."""
    progress = seen.progress
    return progress.held if isinstance(progress, ArchiveProgress) and progress.destination == place else None


def archive_begins(held: ArchivedRange, seen: ArchiveObserved, place: str) -> tuple[int, int]:
    """From where on an archive is there for certain: what may go may be gone by now."""
    order = seen.order.order if isinstance(seen.order, SeenOrder) else None
    return held.first if order is None or order.destination != place else max(held.first, order.keep_from)
