"""The archiver: a pod that archives a tablespace's log while the spec asks for it."""

from __future__ import annotations

from herdkeeper.api import Tablespace
from herdkeeper.api.job import Destination
from herdkeeper.herddb.log.build_archive import ArchivedLog, build_archiver
from herdkeeper.herddb.tablespace.state import TablespaceObserved
from herdkeeper.planning.actions import Delete, Plan
from herdkeeper.planning.intent import settle
from herdkeeper.shared import names
from herdkeeper.shared.names import ObjectKey, TablespaceNames
from herdkeeper.shared.objects import Json
from herdkeeper.shared.reason import Reason
from herdkeeper.spark.build_encryption_keys import encrypts
from herdkeeper.spark.object_store import StoreUnusable

LOOK_SECONDS = 10.0
"""The archiver tells ZooKeeper, of which no event comes; it is looked at as often as it looks at the log, but not more often than this."""


def archive_steps(tablespace: Tablespace, seen: TablespaceObserved, spark_image: str) -> Plan:
    """Create the archiver, or delete it. The archive stays.

    While its place can't be opened nothing is changed: a pod would not start, and one that is there may still have the keys. But one that
    does not encrypt as it is asked to goes at once: what it would archive meanwhile could be read for ever.
    """
    archive, key = tablespace.spec.log.archive, tablespace.key
    name = TablespaceNames(key).archive
    if archive is None:
        return Plan(_removed(seen.objects.get("Deployment", name)))
    look = max(LOOK_SECONDS, float(archive.every_seconds))
    if seen.herddb is None or seen.zookeeper_address is None or seen.ledgers_root is None or f"Deployment {name}" in seen.taken:
        return Plan(requeue_after_seconds=look)
    if isinstance(seen.archive.store, StoreUnusable):
        return Plan(_not_encrypting(archive.destination, seen.objects.get("Deployment", name)), requeue_after_seconds=look)
    root = names.herd_root(ObjectKey(key.namespace, seen.herddb.metadata.name))
    source = ArchivedLog(seen.zookeeper_address, seen.ledgers_root, root, seen.readers_secret)
    return Plan(settle((build_archiver(tablespace, source, spark_image, seen.archive.store),), seen.objects), requeue_after_seconds=look)


def _not_encrypting(destination: Destination, live: Json | None) -> tuple[Delete, ...]:
    """Takes an archiver away that writes in the clear, or with another key than the one that is asked for."""
    if live is None or destination.encryption is None:
        return ()
    wanted, given = encrypts(destination), tuple(live["spec"]["template"]["spec"]["containers"][0]["args"])
    as_asked = any(given[begin : begin + len(wanted)] == wanted for begin in range(len(given)))
    return () if as_asked else _removed(live)


def _removed(live: Json | None) -> tuple[Delete, ...]:
    if live is None or live["metadata"].get("deletionTimestamp"):
        return ()
    return (Delete("apps/v1", "Deployment", live["metadata"]["name"], live["metadata"]["uid"], Reason.REMOVED),)
