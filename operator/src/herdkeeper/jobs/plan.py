"""Plans a Checkpoint or ReplicationAudit: its Job is created once, when what it refers to serves."""

from __future__ import annotations

import datetime
from collections.abc import Mapping

from herdkeeper.api import Checkpoint, HerdDBCluster, Tablespace
from herdkeeper.api.replication_audit import Window
from herdkeeper.api.tablespace import ReplicaStatus
from herdkeeper.herddb.log.identity import log_of_manifest
from herdkeeper.herddb.state.log_store import LogStore, log_store
from herdkeeper.herddb.state.nodes import mounted_secret
from herdkeeper.herddb.state.tls import http_secret, tls_of
from herdkeeper.herddb.tablespace.verdicts import replicas_of
from herdkeeper.jobs.audit.state import AuditRun, described, window_of
from herdkeeper.jobs.state import CheckpointRun
from herdkeeper.planning import requeue
from herdkeeper.planning.actions import Plan, deletions
from herdkeeper.planning.intent import needed_applies
from herdkeeper.protocol.verification import REREAD, alone
from herdkeeper.shared import names
from herdkeeper.shared.conditions import READY, condition, is_ready_resource, why_not_ready
from herdkeeper.shared.names import HERDDB_HTTP_PORT
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.time import text_of
from herdkeeper.spark.build_job import build_audit, build_checkpoint
from herdkeeper.spark.sources import ArchiveSource, AuditSource, CheckpointSource, FollowerSource, OpenWindow
from herdkeeper.spark.work import removal_at

_LOG_WHOLE = (
    Reason.REPLICAS_NOT_READY,
    Reason.NO_LEADER,
    Reason.STATEMENTS_BLOCKED,
    Reason.WAITING_FOR_FOLLOWER,
    Reason.WAITING_FOR_HERDDB,
)
"""Reasons of a Tablespace that is not Ready although its log is intact."""
_GONE = ("Stopped", "Lost")
"""States of bookies whose racks can't get new copies."""


def plan_checkpoint(seen: CheckpointRun, spark_image: str, driver_role: str = names.DRIVER_ROLE) -> Plan:
    """Create the Job, unless it exists or has ended."""
    if not seen.is_due:
        return Plan()
    if waiting := _waiting_for_others(seen):
        return waiting
    checkpoint, log = seen.checkpoint, log_store(seen.bookkeeper)
    if seen.tablespace is None or seen.herddb is None or log is None:
        return Plan.waiting(Reason.WAITING_FOR_TABLESPACE, f"the Tablespace {checkpoint.spec.tablespace_ref.name} does not exist yet")
    if not _can_be_checkpointed(seen.tablespace):
        why = why_not_ready(seen.tablespace)
        return Plan.waiting(Reason.WAITING_FOR_TABLESPACE, f"the Tablespace {seen.tablespace.metadata.name} is not Ready ({why})")
    follower = _next_compared(seen.tablespace, seen.herddb, _last_comparison(seen, seen.tablespace))
    secrets = _http_secrets(seen.tablespace, seen.herddb, seen.nodes, log)
    if waiting := _waiting_for_nodes(checkpoint, seen.tablespace, follower, secrets):
        return waiting
    leader = next((replica.node for replica in replicas_of(seen.tablespace) if replica.role == "leader"), None)
    archive = seen.tablespace.spec.log.archive
    source = CheckpointSource(
        zookeeper_address=log.zookeeper_address,
        ledgers_root=log.ledgers_root,
        herd_root=seen.herddb.names.herd_root,
        tablespace=seen.tablespace.sql_name,
        leader=None if leader is None else _address(leader, seen.herddb),
        follower=follower,
        secret=mounted_secret(seen.herddb),
        archive=None if archive is None else ArchiveSource(seen.tablespace.metadata.name, archive.destination),
        begins_with=_base_follower(seen.tablespace, seen.herddb),
        identity=log.readers_secret,
        with_tls=frozenset(secrets),
        authorities=next(iter(secrets.values()), None),
    )
    return Plan(needed_applies(build_checkpoint(checkpoint, source, spark_image, driver_role), seen.objects))


def _waiting_for_nodes(checkpoint: Checkpoint, tablespace: Tablespace, follower: str | None, secrets: Mapping[str, str]) -> Plan | None:
    """Returns the plan of a Checkpoint that waits for a follower to compare, or for one Secret that verifies all nodes; else None."""
    if checkpoint.spec.verify == "Follower" and follower is None:
        return Plan.waiting(Reason.WAITING_FOR_FOLLOWER, f"the Tablespace {tablespace.metadata.name} has no settled follower now")
    if (different := sorted(set(secrets.values())))[1:]:
        why = f"SQL nodes serve with different Secrets ({', '.join(different)}) until all are restarted, one by one"
        return Plan.waiting(Reason.WAITING_FOR_HERDDB, why)
    return None


def _can_be_checkpointed(tablespace: Tablespace) -> bool:
    """Returns whether a checkpoint of its log can be made. That needs ZooKeeper and the bookies, not its replicas: slow nodes, or a leader
    with hanging statements, don't prevent a Checkpoint.
    """
    ready = condition(tablespace, READY)
    if is_ready_resource(tablespace) or ready is None or ready.status != "False":
        return is_ready_resource(tablespace)
    there = tablespace.made_uuid is not None and tablespace.metadata.deletion_timestamp is None
    current = ready.observed_generation == tablespace.metadata.generation
    return there and current and not tablespace.is_restoring and ready.reason in _LOG_WHOLE


def _waiting_for_others(seen: CheckpointRun) -> Plan | None:
    """Returns why the Job can't be created, the destination not written, or the archive not read now; None if they can."""
    checkpoint = seen.checkpoint
    if seen.run.earlier is not None:
        return Plan.waiting(Reason.WAITING_FOR_OTHERS, seen.run.earlier, requeue.SOON)
    if (removal := removal_at(checkpoint.spec.destination, seen.work)) is not None:
        return Plan((), removal, requeue.PENDING)
    if seen.store_unusable is not None:
        return Plan.waiting(seen.store_unusable.reason, seen.store_unusable.why)
    if (unusable := seen.archive_unusable) is not None:
        why = f"the log is archived by the Tablespace {checkpoint.spec.tablespace_ref.name}, whose {unusable.why}"
        return Plan.waiting(unusable.reason, why)
    return None


def plan_audit(seen: AuditRun, spark_image: str, driver_role: str = names.DRIVER_ROLE) -> Plan:
    """Create the Job unless it exists or the run has ended; again when a paused run's window opens. Unhealthy clusters are audited, too."""
    audit, now = seen.audit, seen.now
    if audit.is_over:
        return Plan()
    if seen.run.job is not None or seen.run.earlier is not None:
        return _resume(seen)
    log = log_store(seen.bookkeeper)
    if seen.bookkeeper is None or log is None or not (seen.bookkeeper.status and seen.bookkeeper.status.instance_id):
        return Plan.waiting(
            Reason.WAITING_FOR_BOOKKEEPER, f"the BookKeeperCluster {audit.spec.book_keeper_ref.name} does not exist, or has no metadata yet"
        )
    racks = {bookie.bookie_id: bookie.rack for bookie in seen.bookkeeper.status.bookies if bookie.rack and bookie.state not in _GONE}
    identity = log.bookies_secret if audit.spec.repair == "Repair" else log.readers_secret
    source = AuditSource(log.zookeeper_address, log.ledgers_root, racks, log.placement.min_racks, identity)
    if audit.spec.window is None:
        return Plan(needed_applies(build_audit(audit, source, spark_image, driver_role=driver_role), seen.objects))
    window = window_of(audit.spec.window)
    closes = window.closing(now)
    if closes is None:
        return _until(window.opening_after(now), audit.spec.window, now)
    return Plan(needed_applies(build_audit(audit, source, spark_image, OpenWindow(now, closes), driver_role), seen.objects))


def _resume(seen: AuditRun) -> Plan:
    """Delete a paused run's Job when the window opens: the next one has its name and run id. Wait for a Job of an earlier audit to go."""
    if seen.run.earlier is not None:
        return Plan.waiting(Reason.WAITING_FOR_OTHERS, seen.run.earlier, requeue.SOON)
    opens = seen.resumes_at
    if opens is None:
        return Plan()
    if (left := (opens - seen.now).total_seconds()) > 0:
        return Plan(requeue_after_seconds=max(requeue.NEXT_STEP, left))
    return Plan(deletions([seen.run.job], Reason.RUN_GOES_ON), requeue_after_seconds=requeue.NEXT_STEP)


def _until(opens: datetime.datetime, window: Window, now: datetime.datetime) -> Plan:
    message = f"it reads only from {described(window)}; it starts at {text_of(opens)}"
    return Plan.waiting(Reason.WAITING_FOR_WINDOW, message, max(requeue.NEXT_STEP, (opens - now).total_seconds()))


def _next_compared(tablespace: Tablespace, herddb: HerdDBCluster, last: str) -> str | None:
    """Returns host:port of the next follower to compare: one that was never compared, then the one compared longest ago.

    `last` tells how the newest checkpoint was compared. If its chain begins with the tables of one follower, only another follower proves
    it. So that one comes after the others. A follower that is known to differ comes last, since it would fail this Checkpoint, too.
    """

    def order(replica: ReplicaStatus) -> tuple[bool, bool, tuple[int, int], str]:
        begins = last.startswith(alone(_address(replica.node, herddb)))
        return replica.verdict == "Different", begins, replica.verified_lsn.position if replica.verified_lsn else (-1, -1), replica.node

    return next((_address(replica.node, herddb) for replica in sorted(_followers(tablespace), key=order)), None)


def _last_comparison(seen: CheckpointRun, tablespace: Tablespace) -> str:
    """Returns how the newest checkpoint at the destination, whose chain goes on, was compared with a follower; empty if none was."""
    compared = (
        (*status.lsn.position, status.verified)
        for checkpoint in seen.checkpoints
        if checkpoint.place == seen.checkpoint.place
        and (status := checkpoint.status) is not None
        and (log := log_of_manifest(status.manifest)) is not None
        and log.tablespace_uuid == tablespace.made_uuid
        and status.lsn is not None
        and status.verified is not None
        and not status.verified.startswith(REREAD)
    )
    return max(compared, default=(0, 0, ""))[2]


def _base_follower(tablespace: Tablespace, herddb: HerdDBCluster) -> FollowerSource | None:
    """Returns the follower whose tables may be the base: preferably one that matched the log, and of several the latest. Another follower
    verifies it; a single one must have matched before.

    None if no follower is fit: one that is known to differ neither gives tables nor verifies any.
    """

    def order(replica: ReplicaStatus) -> tuple[bool, int, int, str]:
        ledger_id, entry_id = replica.verified_lsn.position if replica.verified_lsn else (0, 0)
        return replica.verdict != "Equal", -ledger_id, -entry_id, replica.node

    ordered = sorted((replica for replica in _followers(tablespace) if replica.verdict != "Different"), key=order)
    if not ordered or (len(ordered) == 1 and ordered[0].verdict != "Equal"):
        return None
    return FollowerSource(*(_address(replica.node, herddb) for replica in ordered[:2]))


def _followers(tablespace: Tablespace) -> list[ReplicaStatus]:
    return [replica for replica in replicas_of(tablespace) if replica.role == "follower"]


def _http_secrets(tablespace: Tablespace, herddb: HerdDBCluster, nodes: Objects, log: LogStore) -> dict[str, str]:
    """Returns host:port of the replicas' nodes that speak HTTP over TLS, and the Secret of each. A missing pod counts as its template."""
    tls, stateful_set = tls_of(herddb, log), herddb.names.stateful_set
    template = (nodes.get("StatefulSet", stateful_set) or {}).get("spec", {}).get("template")
    found = dict[str, str]()
    for replica in replicas_of(tablespace):
        pod = nodes.pod_of(stateful_set, replica.node) or template
        secret = http_secret(pod) if pod is not None else tls.secret_name if tls is not None else None
        if secret is not None:
            found[f"{herddb.names.host_of(replica.node)}:{HERDDB_HTTP_PORT}"] = secret
    return found


def _address(node: str, herddb: HerdDBCluster) -> str:
    """Returns host:port of a SQL node's node program."""
    return f"{herddb.names.host_of(node)}:{HERDDB_HTTP_PORT}"
