"""From where on the log of a tablespace is kept for its Checkpoints: the SQL nodes release nothing from there on (images/herddb).

The pin is in ZooKeeper, so it holds while no operator runs, and for whoever leads. It only moves on: what it has let go may be gone.
"""

from __future__ import annotations

from collections.abc import Iterable

from herdkeeper.api import Checkpoint, Tablespace
from herdkeeper.api.checkpoint import CheckpointStatus
from herdkeeper.domain import names
from herdkeeper.domain.names import ObjectKey
from herdkeeper.domain.observed.log_pin import LogPin
from herdkeeper.domain.observed.tablespace import TablespaceObserved
from herdkeeper.domain.unknown import Unknown
from herdkeeper.formats.herddb_log_pin import BEGIN, checkpoint_pin_path
from herdkeeper.plan.action import SetLogPin


def log_pin_step(tablespace: Tablespace, seen: TablespaceObserved, uuid: str) -> tuple[SetLogPin, ...]:
    """How the pin becomes what the spec asks for, if it is not yet. `uuid` is the tablespace's."""
    pin = seen.log_pin
    if isinstance(pin, Unknown):
        return ()
    if not tablespace.spec.log.keep_until_checkpoint:
        return unpin(seen, uuid, "spec.log.keepUntilCheckpoint does not ask for it any more")
    newest = _newest(seen.checkpoints, uuid)
    lsn, why = (BEGIN, "no Checkpoint was verified yet") if newest is None else newest
    if pin is not None and pin.lsn is not None and pin.lsn >= lsn:
        return ()
    return _set(seen, uuid, lsn, why)


def unpin(seen: TablespaceObserved, uuid: str, why: str) -> tuple[SetLogPin, ...]:
    """Take the pin away, if there is one."""
    return _set(seen, uuid, None, why) if isinstance(seen.log_pin, LogPin) else ()


def _set(seen: TablespaceObserved, uuid: str, lsn: tuple[int, int] | None, why: str) -> tuple[SetLogPin, ...]:
    if seen.herddb is None or seen.zookeeper_address is None:
        return ()
    root = names.herd_root(ObjectKey(seen.herddb.metadata.namespace, seen.herddb.metadata.name))
    version = seen.log_pin.version if isinstance(seen.log_pin, LogPin) else None
    return (SetLogPin(seen.zookeeper_address, checkpoint_pin_path(root, uuid), lsn, version, why),)


def _newest(checkpoints: Iterable[Checkpoint], uuid: str) -> tuple[tuple[int, int], str] | None:
    """Where the newest verified Checkpoint of this very tablespace has to be gone on from, and its name. One that is being deleted may have
    no files any more."""
    found = [
        ((status.lsn.ledger_id, status.lsn.entry_id), restart, checkpoint.metadata.name)
        for checkpoint in checkpoints
        if (status := checkpoint.status) is not None
        and checkpoint.metadata.deletion_timestamp is None
        and status.lsn is not None
        and _is_base(status, uuid)
        and (restart := _restart(status)) is not None
    ]
    if not found:
        return None
    _, restart, name = max(found)
    return restart, f"the Checkpoint {name} is verified, and goes on from there"


def _is_base(status: CheckpointStatus, uuid: str) -> bool:
    """The manifest's path names the tablespace: `<INSTANCEID>/<uuid>/manifests/<LSN>.json`."""
    return status.phase == "Succeeded" and bool(status.verified) and (status.manifest or "").split("/")[-3:-1] == [uuid, "manifests"]


def _restart(status: CheckpointStatus) -> tuple[int, int] | None:
    """None for one of an earlier version that does not tell where its open transactions began."""
    lsn = status.restart_lsn or (status.lsn if status.open_transactions == 0 else None)
    return None if lsn is None else (lsn.ledger_id, lsn.entry_id)
