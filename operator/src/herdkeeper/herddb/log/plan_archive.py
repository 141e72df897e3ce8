"""The archiver: a pod that archives a tablespace's log while the spec asks for it."""

from __future__ import annotations

from herdkeeper.api.job import Destination
from herdkeeper.herddb.log.build_archive import build_archiver
from herdkeeper.herddb.tablespace.state import TablespaceObserved
from herdkeeper.planning.actions import Delete, Plan, deletions
from herdkeeper.planning.intent import needed_applies
from herdkeeper.shared.conditions import READY, condition
from herdkeeper.shared.objects import Json
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.reason import Reason
from herdkeeper.spark.encryption_keys import encrypts

LOOK_SECONDS = 10.0
"""The archiver reports to ZooKeeper, without events. Its report is read as often as it reads the log, but at most at this interval."""


def archive_steps(seen: TablespaceObserved, spark_image: str) -> Plan:
    """Create the archiver, or delete it. The archive stays.

    While its place can't be opened, nothing changes: a new pod would not start, and a running one may still have the keys. The same holds
    before a SQL node is Ready, and while the database is refused: the listed ledgers may be others'. An archiver that does not encrypt as
    declared is deleted at once: what it writes would stay readable forever.
    """
    tablespace, archive = seen.tablespace, seen.tablespace.spec.log.archive
    name = tablespace.names.archive
    if archive is None:
        return Plan(deletions((seen.objects.get("Deployment", name),), Reason.REMOVED))
    look = max(LOOK_SECONDS, float(archive.every_seconds))
    if seen.herddb is None or seen.log is None or f"Deployment {name}" in seen.taken:
        return Plan(requeue_after_seconds=look)
    ready, live = condition(seen.herddb, READY), seen.objects.get("Deployment", name)
    too_early = live is None and not seen.nodes  # the first SQL node is made once the listed ledgers were found to be the database's
    if isinstance(seen.archive.store, Problem) or ready is None or ready.reason == Reason.INVALID_SPEC or too_early:
        return Plan(_not_encrypting(archive.destination, live), requeue_after_seconds=look)
    archiver = build_archiver(tablespace, seen.log, seen.herddb.names.herd_root, spark_image, seen.archive.store)
    return Plan(needed_applies((archiver,), seen.objects), requeue_after_seconds=look)


def _not_encrypting(destination: Destination, live: Json | None) -> tuple[Delete, ...]:
    """Delete an archiver that writes unencrypted, or with another key than declared."""
    if live is None or destination.encryption is None:
        return ()
    wanted, given = encrypts(destination), tuple(live["spec"]["template"]["spec"]["containers"][0]["args"])
    as_asked = any(given[begin : begin + len(wanted)] == wanted for begin in range(len(given)))
    return () if as_asked else deletions((live,), Reason.REMOVED)
