"""The identity of a log. A new BookKeeper cluster starts ledger ids again, so an LSN alone identifies nothing."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.api import BookKeeperCluster
from herdkeeper.shared.unknown import Unknown

NOT_LOOKED_AT = Unknown("the BookKeeperCluster was not read, so the log's owner is unknown")


@dataclass(frozen=True)
class LogIdentity:
    """The log of a tablespace: the INSTANCEID of its BookKeeper cluster, and the tablespace's uuid."""

    instance_id: str
    tablespace_uuid: str


def instance_of(bookkeeper: BookKeeperCluster | None, name: str) -> str | Unknown:
    """Returns the INSTANCEID in the status of the BookKeeperCluster of this name. Unknown if it is missing, unreadable or reports none."""
    if bookkeeper is None:
        return Unknown(f"the BookKeeperCluster {name} does not exist or can't be read, so the log's owner is unknown")
    if bookkeeper.status is None or not bookkeeper.status.instance_id:
        return Unknown(f"the BookKeeperCluster {name} does not report its instanceId yet, so the log's owner is unknown")
    return bookkeeper.status.instance_id


def log_of(instance_id: str | Unknown, uuid: str) -> LogIdentity | Unknown:
    return instance_id if isinstance(instance_id, Unknown) else LogIdentity(instance_id, uuid)


def log_of_manifest(path: str | None) -> LogIdentity | None:
    """Returns the log of a checkpoint, from its manifest's path `<INSTANCEID>/<uuid>/manifests/<LSN>.json`. None for another path."""
    match (path or "").split("/")[-4:]:
        case [instance_id, uuid, "manifests", _]:
            return LogIdentity(instance_id, uuid)
        case _:
            return None
