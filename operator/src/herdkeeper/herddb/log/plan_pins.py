"""Pins the log of a tablespace: the SQL nodes release nothing from a pin on (docs/decisions/0318)."""

from __future__ import annotations

from collections.abc import Iterator

from herdkeeper.herddb.leadership.decision import why_not_verified
from herdkeeper.herddb.log.checkpoint_base import bases
from herdkeeper.herddb.log.seen import LogPin
from herdkeeper.herddb.state.cluster import NodeView
from herdkeeper.herddb.tablespace.state import TablespaceObserved
from herdkeeper.planning.actions import SetLogPin
from herdkeeper.protocol.log_pin import ARCHIVE, BEGIN, CHECKPOINT, SECOND_DISK, log_pin_path
from herdkeeper.shared.unknown import Unknown


def log_pin_steps(seen: TablespaceObserved, uuid: str) -> tuple[SetLogPin, ...]:
    """Returns the actions that bring the pins to the spec. `uuid` is the tablespace's."""
    return (
        *_for_checkpoints(seen, uuid),
        *_for_the_archive(seen, uuid),
        *_for_a_second_disk(seen, uuid),
    )


def unpin(seen: TablespaceObserved, uuid: str, why: str) -> tuple[SetLogPin, ...]:
    """Remove all existing pins."""
    return tuple(step for name in (CHECKPOINT, ARCHIVE, SECOND_DISK) for step in _remove(seen, uuid, name, why))


def unreadable_pin(seen: TablespaceObserved) -> Unknown | None:
    """Returns why the pins are unknown, or None."""
    return next((pin for pin in (seen.log_pin, seen.archive.pin, seen.disk_pin) if isinstance(pin, Unknown)), None)


def _for_checkpoints(seen: TablespaceObserved, uuid: str) -> tuple[SetLogPin, ...]:
    pin = seen.log_pin
    if isinstance(pin, Unknown):
        return ()
    if not seen.tablespace.spec.log.keep_until_checkpoint:
        return _remove(seen, uuid, CHECKPOINT, "spec.log.keepUntilCheckpoint is no longer set")
    newest = _newest(seen, uuid)
    if isinstance(newest, Unknown):
        # Without a pin nothing is kept; an existing one stays.
        return _set(seen, (uuid, CHECKPOINT), BEGIN, newest.why) if pin is None else ()
    lsn, why = (BEGIN, "no Checkpoint is verified") if newest is None else newest
    if pin is not None and pin.lsn == lsn:
        return ()
    return _move(seen, (uuid, CHECKPOINT), lsn, why, back=seen.archive.unread is None)


def _for_the_archive(seen: TablespaceObserved, uuid: str) -> tuple[SetLogPin, ...]:
    """Ledgers are released as a whole, so the pin moves only from one to another."""
    pin, archive = seen.archive.pin, seen.tablespace.spec.log.archive
    if isinstance(pin, Unknown):
        return ()
    if archive is None:
        return _remove(seen, uuid, ARCHIVE, "spec.log.archive is no longer set")
    nothing = (BEGIN, f"nothing is archived yet at {archive.destination.described}")
    lsn, why = nothing if seen.archived is None else (seen.archived.resume, "everything before is archived")
    if pin is not None and pin.lsn is not None and pin.lsn[0] == lsn[0]:
        return ()
    return _move(seen, (uuid, ARCHIVE), lsn, why, back=not isinstance(seen.archive.progress, Unknown))


def _for_a_second_disk(seen: TablespaceObserved, uuid: str) -> tuple[SetLogPin, ...]:
    """Keeps what neither two replicas' disks nor a Checkpoint nor the archive hold. The pin moves only from one ledger to another."""
    pin = seen.disk_pin
    if isinstance(pin, Unknown):
        return ()
    if seen.tablespace.spec.log.release_on_one_disk:
        return _remove(seen, uuid, SECOND_DISK, "spec.log.releaseOnOneDisk accepts the risk")
    lsn, why = max([(BEGIN, "only one disk holds its rows"), *_held_twice(seen, uuid)])
    if pin is not None and pin.lsn is not None and pin.lsn[0] == lsn[0]:
        return ()
    return _move(seen, (uuid, SECOND_DISK), lsn, why, back=_every_holder_is_known(seen, uuid))


def _held_twice(seen: TablespaceObserved, uuid: str) -> Iterator[tuple[tuple[int, int], str]]:
    """Yields up to where something besides the bookies and one disk holds the rows, and what. Unknown holders don't count."""
    record = seen.known_record
    views = [seen.nodes.get(node) for node in (record.replicas if record is not None else ())]
    copies = [copy for view in views if isinstance(view, tuple) for copy in view if copy.uuid == uuid and why_not_verified(copy) is None]
    disks = sorted((copy.checkpoint for copy in copies if copy.checkpoint is not None), reverse=True)
    if len(disks) > 1:
        yield disks[1], "two SQL nodes' disks hold everything before"
    newest = _newest(seen, uuid)
    if newest is not None and not isinstance(newest, Unknown):
        yield newest
    if seen.archived is not None:
        yield seen.archived.resume, "everything before is archived"


def _every_holder_is_known(seen: TablespaceObserved, uuid: str) -> bool:
    """Returns whether all that may hold the rows is known: how far each replica's disk has them, all Checkpoints, and the archive."""
    if seen.known_record is None or seen.archive.unread is not None or isinstance(_newest(seen, uuid), Unknown):
        return False
    if seen.tablespace.spec.log.archive is not None and isinstance(seen.archive.progress, Unknown):
        return False
    return all(_tells_its_disk(seen.nodes.get(node), uuid) for node in seen.known_record.replicas)


def _tells_its_disk(view: NodeView | Unknown | None, uuid: str) -> bool:
    copies = [copy for copy in view if copy.uuid == uuid] if isinstance(view, tuple) else []
    return any(copy.checkpoint is not None and not isinstance(copy.differs, Unknown) for copy in copies)


def _move(seen: TablespaceObserved, which: tuple[str, str], lsn: tuple[int, int], why: str, *, back: bool) -> tuple[SetLogPin, ...]:
    """`back`: whether the pin may move back; forward it always may."""
    pin = _pin(seen, which[1])
    is_back = isinstance(pin, LogPin) and pin.lsn is not None and pin.lsn > lsn
    return () if is_back and not back else _set(seen, which, lsn, why)


def _remove(seen: TablespaceObserved, uuid: str, name: str, why: str) -> tuple[SetLogPin, ...]:
    return _set(seen, (uuid, name), None, why) if isinstance(_pin(seen, name), LogPin) else ()


def _pin(seen: TablespaceObserved, name: str) -> LogPin | Unknown | None:
    return {ARCHIVE: seen.archive.pin, SECOND_DISK: seen.disk_pin, CHECKPOINT: seen.log_pin}[name]


def _set(seen: TablespaceObserved, which: tuple[str, str], lsn: tuple[int, int] | None, why: str) -> tuple[SetLogPin, ...]:
    """`which`: the tablespace's uuid and the pin's name."""
    if seen.herddb is None or seen.log is None:
        return ()
    root = seen.herddb.names.herd_root
    pin = _pin(seen, which[1])
    version = pin.version if isinstance(pin, LogPin) else None
    return (SetLogPin(seen.log.zookeeper_address, log_pin_path(root, *which), lsn, version, why),)


def _newest(seen: TablespaceObserved, uuid: str) -> tuple[tuple[int, int], str] | Unknown | None:
    """Returns the restart position of the newest one, and its name. One whose files may be of no use lets nothing go."""
    usable = (each for each in seen.with_files if each.metadata.name not in seen.archive.doubted)
    found = bases(usable, seen.log_of(uuid), seen.ledgers)
    if isinstance(found, Unknown):
        return found
    newest = max(found, key=lambda base: (base.lsn, base.restart, base.name), default=None)
    return None if newest is None else (newest.restart, f"the Checkpoint {newest.name} is verified, and continues from there")
