"""From where on the log of a tablespace is kept: for its Checkpoints, and until it is archived. The SQL nodes release nothing from there on
(images/herddb).

The pins are in ZooKeeper, so they hold while no operator runs, and for whoever leads. They only move on: what they have let go may be gone.
"""

from __future__ import annotations

from herdkeeper.api import Tablespace
from herdkeeper.domain import names
from herdkeeper.domain.checkpoint_base import bases
from herdkeeper.domain.names import ObjectKey
from herdkeeper.domain.observed.archive import archived_at
from herdkeeper.domain.observed.log_pin import LogPin
from herdkeeper.domain.observed.tablespace import TablespaceObserved
from herdkeeper.domain.unknown import Unknown
from herdkeeper.formats.herddb_log_pin import ARCHIVE, BEGIN, CHECKPOINT, log_pin_path
from herdkeeper.plan.action import SetLogPin


def log_pin_steps(tablespace: Tablespace, seen: TablespaceObserved, uuid: str) -> tuple[SetLogPin, ...]:
    """How the pins become what the spec asks for, if they are not yet. `uuid` is the tablespace's."""
    return (*_for_checkpoints(tablespace, seen, uuid), *_for_the_archive(tablespace, seen, uuid))


def unpin(seen: TablespaceObserved, uuid: str, why: str) -> tuple[SetLogPin, ...]:
    """Take all pins away that there are."""
    return (*_take(seen, uuid, CHECKPOINT, why), *_take(seen, uuid, ARCHIVE, why))


def unreadable_pin(seen: TablespaceObserved) -> Unknown | None:
    """Why it is not known which pins there are; None when it is."""
    return next((pin for pin in (seen.log_pin, seen.archive.pin) if isinstance(pin, Unknown)), None)


def _for_checkpoints(tablespace: Tablespace, seen: TablespaceObserved, uuid: str) -> tuple[SetLogPin, ...]:
    pin = seen.log_pin
    if isinstance(pin, Unknown):
        return ()
    if not tablespace.spec.log.keep_until_checkpoint:
        return _take(seen, uuid, CHECKPOINT, "spec.log.keepUntilCheckpoint does not ask for it any more")
    newest = _newest(seen, uuid)
    if isinstance(newest, Unknown):
        # Without a pin nothing is kept; one that is there stays where it is.
        return _set(seen, (uuid, CHECKPOINT), BEGIN, newest.why) if pin is None else ()
    lsn, why = (BEGIN, "no Checkpoint was verified yet") if newest is None else newest
    if pin is not None and pin.lsn is not None and pin.lsn >= lsn:
        return ()
    return _set(seen, (uuid, CHECKPOINT), lsn, why)


def _for_the_archive(tablespace: Tablespace, seen: TablespaceObserved, uuid: str) -> tuple[SetLogPin, ...]:
    """Ledgers are released whole, so the pin moves from one to another only."""
    pin, archive = seen.archive.pin, tablespace.spec.log.archive
    if isinstance(pin, Unknown):
        return ()
    if archive is None:
        return _take(seen, uuid, ARCHIVE, "spec.log.archive does not ask for it any more")
    held = archived_at(seen.archive, archive.destination.place)
    if held is None:
        return _set(seen, (uuid, ARCHIVE), BEGIN, f"nothing is archived yet at {archive.destination.described}") if pin is None else ()
    if pin is not None and pin.lsn is not None and pin.lsn[0] >= held.resume[0]:
        return ()
    return _set(seen, (uuid, ARCHIVE), held.resume, "everything before is archived")


def _take(seen: TablespaceObserved, uuid: str, name: str, why: str) -> tuple[SetLogPin, ...]:
    return _set(seen, (uuid, name), None, why) if isinstance(_pin(seen, name), LogPin) else ()


def _pin(seen: TablespaceObserved, name: str) -> LogPin | Unknown | None:
    return seen.archive.pin if name == ARCHIVE else seen.log_pin


def _set(seen: TablespaceObserved, which: tuple[str, str], lsn: tuple[int, int] | None, why: str) -> tuple[SetLogPin, ...]:
    """`which`: the tablespace's uuid and the pin's name."""
    if seen.herddb is None or seen.zookeeper_address is None:
        return ()
    root = names.herd_root(ObjectKey(seen.herddb.metadata.namespace, seen.herddb.metadata.name))
    pin = _pin(seen, which[1])
    version = pin.version if isinstance(pin, LogPin) else None
    return (SetLogPin(seen.zookeeper_address, log_pin_path(root, *which), lsn, version, why),)


def _newest(seen: TablespaceObserved, uuid: str) -> tuple[tuple[int, int], str] | Unknown | None:
    """Where the newest one has to be gone on from, and its name."""
    found = bases(seen.checkpoints, seen.log_of(uuid))
    if isinstance(found, Unknown):
        return found
    newest = max(found, key=lambda base: (base.lsn, base.restart, base.name), default=None)
    return None if newest is None else (newest.restart, f"the Checkpoint {newest.name} is verified, and goes on from there")
