"""What a resource may not say, each refusal with the field, the value, the problem and the fix.

Called by the reconcile before anything is built; a refusal becomes the condition Ready=False and nothing is changed. The API server
refuses most of it at once by
the CRDs' CEL rules, which the rules within one resource repeat: a resource may be older than the rules. What spans resources can only be
refused here.
A resource that is referred to but absent, paused or on its way out is no refusal but a reason to wait: pass None for it.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from herdkeeper.api import (
    BookKeeperCluster,
    Checkpoint,
    HerdDBCluster,
    ReplicationAudit,
    ScheduledCheckpoint,
    ScheduledReplicationAudit,
    Tablespace,
    ZooKeeperCluster,
)
from herdkeeper.api.bookkeeper_cluster import GarbageCollection
from herdkeeper.api.herddb_cluster import LEAST_LEDGER_SIZE
from herdkeeper.api.job import SparkJob
from herdkeeper.api.replication_audit import Window
from herdkeeper.api.resource import ObjectMeta
from herdkeeper.api.schedule import FIVE_FIELDS, MOST_NAME_CHARACTERS, Times
from herdkeeper.api.tablespace import Failover
from herdkeeper.herddb.state.nodes import told_nodes
from herdkeeper.herddb.tablespace.full_check import timing_of
from herdkeeper.jobs.audit.window import SHORTEST_WINDOW, described
from herdkeeper.shared import names, owned_config
from herdkeeper.shared.daily_window import DailyWindow, UnknownTimeZoneError
from herdkeeper.shared.owned_config import OwnedKeys
from herdkeeper.shared.quorum import SAFE_SIZE
from herdkeeper.shared.timetable import Timetable, TimetableError

MIB = 1024 * 1024
MAXIMUM_NAME = 40
"""Characters of a resource's name: the longest suffix of a pod (`-bookie-999-0`, `-autorecovery-<hash>-<random>`) must fit into 63 with
it."""

MINIMUM_MEMORY_MIB = {"zookeeper": 192, "bookie": 512, "autorecovery": 256, "herddb": 512, "driver": 1024, "executor": 256}
"""Least memory limits (MiB): each process's measured resident size at its smallest useful heap, and half of it again. Below, it is killed
in a loop."""

_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SQL_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_UNITS = {"Ki": 1024, "Mi": MIB, "Gi": 1024 * MIB, "Ti": 1024 * 1024 * MIB}


@dataclass(frozen=True)
class Refusal:
    """Something that a resource says and must not say.

    `path` is the field as a user writes it (`spec.ledgers.writeQuorum`), `value` what stands there, `problem` why that can't be, `fix`
    what to write instead.
    """

    path: str
    value: str
    problem: str
    fix: str

    @property
    def sentence(self) -> str:
        """The refusal as one sentence for a condition, an event or a log line."""
        return f"{self.path} is {self.value}: {self.problem}; {self.fix}"


def bytes_of(quantity: str) -> int:
    """Bytes of a quantity with a binary unit, e.g. `20Gi`. ValueError when it is none."""
    number, unit = quantity[:-2], quantity[-2:]
    if unit not in _UNITS or not number.isdigit():
        raise ValueError(f"quantity is {quantity!r}: it must be a whole number with one of Ki, Mi, Gi and Ti, e.g. 20Gi")
    return int(number) * _UNITS[unit]


def zookeeper_refusals(cluster: ZooKeeperCluster, voters: int | None = None) -> tuple[Refusal, ...]:
    """What a ZooKeeperCluster says and must not say, given how many members vote now (None while that is not known)."""
    return (
        *_name_refusals(cluster.metadata),
        *_even_ensemble(cluster),
        *_single_member(cluster, voters),
        *_memory_refusals("spec.resources.memory", cluster.spec.resources.memory, "zookeeper"),
        *_config_refusals(cluster.spec.config, owned_config.ZOOKEEPER, owned_config.ZOOKEEPER_PREFIXES),
    )


def bookkeeper_refusals(cluster: BookKeeperCluster) -> tuple[Refusal, ...]:
    """What a BookKeeperCluster says and must not say."""
    return (
        *_name_refusals(cluster.metadata),
        *_one_metadata_source(cluster),
        *_memory_refusals("spec.resources.memory", cluster.spec.resources.memory, "bookie"),
        *_memory_refusals("spec.autoRecovery.resources.memory", cluster.spec.auto_recovery.resources.memory, "autorecovery"),
        *_compaction_refusals(cluster.spec.garbage_collection),
        *_config_refusals(cluster.spec.config, owned_config.BOOKKEEPER),
    )


def herddb_refusals(cluster: HerdDBCluster, bookkeeper: BookKeeperCluster | None) -> tuple[Refusal, ...]:
    """What a HerdDBCluster says and must not say, given the BookKeeperCluster that it refers to (None while there is none)."""
    return (
        *_name_refusals(cluster.metadata),
        *_quorum_refusals(cluster),
        *_ensemble_beyond_bookies(cluster, bookkeeper),
        *_memory_refusals("spec.resources.memory", cluster.spec.resources.memory, "herddb"),
        *_config_refusals(cluster.spec.config, owned_config.HERDDB),
        *_checkpoint_period(cluster),
        *_ledger_size(cluster),
    )


def tablespace_refusals(tablespace: Tablespace, herddb: HerdDBCluster | None, others: Iterable[Tablespace] = ()) -> tuple[Refusal, ...]:
    """What a Tablespace says and must not say.

    `herddb` is the HerdDBCluster that it refers to (None while there is none); `others` are the Tablespaces of the namespace, of which one
    may already hold the SQL name.
    """
    return (
        *_name_refusals(tablespace.metadata),
        *_sql_name_refusals(tablespace),
        *_taken_sql_name(tablespace, others),
        *_replicas_beyond_nodes(tablespace, herddb),
        *_preferred_leader_refusals(tablespace, herddb),
        *_failover_refusals(tablespace.spec.failover),
        *(_timetable_refusals(timing, "spec.fullCheck") if (timing := timing_of(tablespace)) is not None else ()),
        *(_job_refusals(tablespace.spec.bootstrap.job, "spec.bootstrap.job") if tablespace.spec.bootstrap else ()),
    )


def checkpoint_refusals(checkpoint: Checkpoint, tablespace: Tablespace | None) -> tuple[Refusal, ...]:
    """What a Checkpoint says and must not say, given the Tablespace that it refers to (None while there is none)."""
    return (
        *_name_refusals(checkpoint.metadata),
        *_no_follower(checkpoint, tablespace),
        *_job_refusals(checkpoint.spec.job),
    )


def audit_refusals(audit: ReplicationAudit) -> tuple[Refusal, ...]:
    """What a ReplicationAudit says and must not say. Of one that is over the hours may still change, and mean nothing: what is known of it
    stays."""
    return (
        *_name_refusals(audit.metadata),
        *(() if audit.is_over else _window_refusals(audit.spec.window, "spec.window")),
        *_job_refusals(audit.spec.job),
    )


def schedule_refusals(schedule: ScheduledCheckpoint | ScheduledReplicationAudit) -> tuple[Refusal, ...]:
    """What a schedule says and must not say. What depends on other resources is refused of each run, by itself."""
    return (
        *_name_refusals(schedule.metadata, MOST_NAME_CHARACTERS, "the names of its runs"),
        *_timetable_refusals(schedule.spec, "spec"),
        *_drill_refusals(schedule),
        *_fixed_position(schedule),
        *(
            _window_refusals(schedule.spec.template.window, "spec.template.window")
            if isinstance(schedule, ScheduledReplicationAudit)
            else ()
        ),
        *_job_refusals(schedule.spec.template.job, "spec.template.job"),
    )


def unreadable_refusals(error: ValidationError) -> tuple[Refusal, ...]:
    """The refusals of a resource that its model could not read: one per field. Such a resource was stored under older rules, or past
    them."""
    return tuple(
        Refusal(
            path=".".join(str(part) for part in problem["loc"]),
            value=repr(problem["input"]) if not isinstance(problem["input"], Mapping) else "an object",
            problem=problem["msg"],
            fix="correct it as docs/reference.md describes the field",
        )
        for problem in error.errors()
    )


def _name_refusals(metadata: ObjectMeta, most: int = MAXIMUM_NAME, made_of_it: str = "the names of pods and services") -> Iterator[Refusal]:
    if len(metadata.name) > most:
        yield Refusal(
            "metadata.name",
            metadata.name,
            f"it has {len(metadata.name)} characters and {made_of_it} are made from it",
            f"take a name of at most {most} characters",
        )
    if not _NAME.fullmatch(metadata.name):
        yield Refusal(
            "metadata.name",
            metadata.name,
            "the names of services are made from it",
            "take small letters, digits and `-` only, beginning with a letter and ending with a letter or digit",
        )


def _even_ensemble(cluster: ZooKeeperCluster) -> Iterator[Refusal]:
    replicas = cluster.spec.replicas
    if replicas % 2 == 0:
        yield Refusal(
            "spec.replicas",
            str(replicas),
            f"an even ensemble tolerates no more losses than one of {replicas - 1}",
            f"set {replicas - 1} or {replicas + 1}",
        )


def _single_member(cluster: ZooKeeperCluster, voters: int | None) -> Iterator[Refusal]:
    """A resource that was deleted and declared anew finds the ensemble of its retained volumes: the rule on changes does not see that."""
    replicas = cluster.spec.replicas
    if voters is not None and replicas < SAFE_SIZE <= voters and not cluster.spec.allow_single_member:
        yield Refusal(
            "spec.replicas",
            str(replicas),
            f"the ensemble has {voters} voters; the loss of a single one would stop everything, and its volume would be the only copy",
            f"set {SAFE_SIZE}, or set spec.allowSingleMember to true",
        )


def _one_metadata_source(cluster: BookKeeperCluster) -> Iterator[Refusal]:
    if (cluster.spec.zoo_keeper_ref is None) == (cluster.spec.zoo_keeper_address is None):
        both = cluster.spec.zoo_keeper_ref is not None
        yield Refusal(
            "spec.zooKeeperRef",
            f"{cluster.spec.zoo_keeper_ref.name} beside a zooKeeperAddress"
            if cluster.spec.zoo_keeper_ref
            else "absent, and so is zooKeeperAddress",
            "the metadata is in exactly one ensemble",
            "remove one of spec.zooKeeperRef and spec.zooKeeperAddress"
            if both
            else "set one of spec.zooKeeperRef and spec.zooKeeperAddress",
        )


def _compaction_refusals(collection: GarbageCollection) -> Iterator[Refusal]:
    """What a bookie refuses at its start (GarbageCollectorThread, BookKeeper 4.18)."""
    minor, major = collection.minor_compaction, collection.major_compaction
    path, larger = "spec.garbageCollection", f"{major.threshold_percent} % each {major.interval_seconds} s"
    both = minor.threshold_percent > 0 and major.threshold_percent > 0
    if both and not (minor.threshold_percent < major.threshold_percent and minor.interval_seconds < major.interval_seconds):
        yield Refusal(
            f"{path}.minorCompaction",
            f"{minor.threshold_percent} % each {minor.interval_seconds} s",
            f"its threshold and interval must be below those of majorCompaction ({larger})",
            "lower it, or switch one of them off with thresholdPercent 0",
        )
    if collection.interval_seconds > min(minor.interval_seconds, major.interval_seconds):
        yield Refusal(
            f"{path}.intervalSeconds",
            str(collection.interval_seconds),
            f"bookies do not start when it exceeds the compactions' intervals ({minor.interval_seconds} and {major.interval_seconds})",
            "lower it",
        )


def _checkpoint_period(cluster: HerdDBCluster) -> Iterator[Refusal]:
    """What HerdDB refuses at its start: it might drop log that no checkpoint covers yet."""
    key = "server.checkpoint.period"
    period, most = cluster.spec.config.get(key), cluster.spec.ledgers.retention_hours * 3_600_000 // 2
    if period is not None and not (period.isdigit() and 0 < int(period) <= most):
        yield Refusal(
            f"spec.config[{key}]",
            repr(period),
            f"it is milliseconds, and at most half of spec.ledgers.retentionHours ({most})",
            "lower it, or raise retentionHours",
        )


def _ledger_size(cluster: HerdDBCluster) -> Iterator[Refusal]:
    size = cluster.spec.ledgers.max_size
    if bytes_of(size) < bytes_of(LEAST_LEDGER_SIZE):
        yield Refusal(
            "spec.ledgers.maxSize", size, "each ledger costs ZooKeeper and the bookies metadata", f"set at least {LEAST_LEDGER_SIZE}"
        )


def _failover_refusals(failover: Failover) -> Iterator[Refusal]:
    least, found = failover.hung_leader_seconds, failover.max_leader_inactivity_seconds
    if found <= least:
        yield Refusal(
            "spec.failover.maxLeaderInactivitySeconds",
            str(found),
            f"it is not above spec.failover.hungLeaderSeconds ({least}): followers would take over before the operator judges",
            f"set at least {least + 1}, or lower hungLeaderSeconds",
        )


def _quorum_refusals(cluster: HerdDBCluster) -> Iterator[Refusal]:
    ledgers = cluster.spec.ledgers
    if ledgers.write_quorum > ledgers.ensemble_size:
        yield Refusal(
            "spec.ledgers.writeQuorum",
            str(ledgers.write_quorum),
            f"an entry can't have more copies than its ledger has bookies (ensembleSize {ledgers.ensemble_size})",
            "lower writeQuorum or raise ensembleSize",
        )
    if ledgers.ack_quorum > ledgers.write_quorum:
        yield Refusal(
            "spec.ledgers.ackQuorum",
            str(ledgers.ack_quorum),
            f"a write can't wait for more copies than are written (writeQuorum {ledgers.write_quorum})",
            "lower ackQuorum or raise writeQuorum",
        )


def _ensemble_beyond_bookies(cluster: HerdDBCluster, bookkeeper: BookKeeperCluster | None) -> Iterator[Refusal]:
    if bookkeeper is None:
        return
    ensemble_size = cluster.spec.ledgers.ensemble_size
    if ensemble_size > bookkeeper.spec.bookies:
        yield Refusal(
            "spec.ledgers.ensembleSize",
            str(ensemble_size),
            f"the BookKeeperCluster {bookkeeper.metadata.name} has {bookkeeper.spec.bookies} bookies, so no ledger could be opened",
            f"create a HerdDBCluster with an ensembleSize of at most {bookkeeper.spec.bookies}, "
            f"or raise spec.bookies of {bookkeeper.metadata.name} to {ensemble_size + 1} (one to spare)",
        )


def _sql_name_refusals(tablespace: Tablespace) -> Iterator[Refusal]:
    name = tablespace.sql_name
    path = "spec.tablespaceName" if tablespace.spec.tablespace_name else "metadata.name"
    if not _SQL_NAME.fullmatch(name):
        yield Refusal(path, name, "it is no name in SQL", "take small letters, digits and `_`, beginning with a letter, 63 at most")
    elif name == "herd":
        yield Refusal(path, name, "HerdDB keeps this tablespace for itself", "take another name")


def _taken_sql_name(tablespace: Tablespace, others: Iterable[Tablespace]) -> Iterator[Refusal]:
    """The older resource keeps the name: both see that alike, whatever order they are reconciled in."""
    mine = tablespace.metadata
    for other in others:
        same = other.spec.herd_db_ref == tablespace.spec.herd_db_ref and other.sql_name == tablespace.sql_name
        # one that is being dropped has the name until it is gone: who took it over before would lose it
        holds = other.metadata.deletion_timestamp is None or names.FINALIZER in other.metadata.finalizers
        if same and other.metadata.name != mine.name and holds and _older(other.metadata, mine):
            yield Refusal(
                "spec.tablespaceName",
                tablespace.sql_name,
                f"the Tablespace {other.metadata.name} declares it already in the HerdDBCluster {other.spec.herd_db_ref.name}",
                "delete this resource and create one with another tablespaceName",
            )


def _older(one: ObjectMeta, other: ObjectMeta) -> bool:
    return (one.creation_timestamp, one.name) < (other.creation_timestamp, other.name)


def _replicas_beyond_nodes(tablespace: Tablespace, herddb: HerdDBCluster | None) -> Iterator[Refusal]:
    """Nodes that leave count: it is the HerdDBCluster that waits then, and a tablespace that serves is not refused."""
    if herddb is not None and tablespace.spec.replicas > (nodes := len(told_nodes(herddb))):
        yield Refusal(
            "spec.replicas",
            str(tablespace.spec.replicas),
            f"the HerdDBCluster {herddb.metadata.name} has {nodes} SQL nodes and a node holds one copy",
            f"lower it to at most {nodes}, or raise spec.replicas of {herddb.metadata.name}",
        )


def _preferred_leader_refusals(tablespace: Tablespace, herddb: HerdDBCluster | None) -> Iterator[Refusal]:
    preferred, failback = tablespace.spec.preferred_leader, tablespace.spec.failback
    if preferred is None and failback != "Never":
        yield Refusal("spec.failback", failback, "no leader is preferred", "set spec.preferredLeader, or failback: Never")
    if preferred is None or herddb is None:
        return
    nodes = told_nodes(herddb)
    if preferred not in nodes:
        yield Refusal(
            "spec.preferredLeader",
            preferred,
            f"it is no SQL node of the HerdDBCluster {herddb.metadata.name}",
            f"name one of {', '.join(nodes)}",
        )


def _no_follower(checkpoint: Checkpoint, tablespace: Tablespace | None) -> Iterator[Refusal]:
    if tablespace is not None and checkpoint.spec.verify == "Follower" and tablespace.spec.replicas < 2:
        yield Refusal(
            "spec.verify",
            "Follower",
            f"the Tablespace {tablespace.metadata.name} has one replica, so there is no follower to compare with",
            "create a Checkpoint with verify: Reread, or raise the Tablespace's replicas to 2",
        )


def _drill_refusals(schedule: ScheduledCheckpoint | ScheduledReplicationAudit) -> Iterator[Refusal]:
    drill = schedule.spec.drill if isinstance(schedule, ScheduledCheckpoint) else None
    if drill is not None:
        yield from _timetable_refusals(drill, "spec.drill")
        yield from _memory_refusals("spec.drill.job.resources.memory", drill.job.resources.memory, "driver")
        yield from _memory_refusals("spec.drill.server.resources.memory", drill.server.resources.memory, "herddb")


def _timetable_refusals(timing: Times, path: str) -> Iterator[Refusal]:
    try:
        Timetable.of(timing.schedule, timing.time_zone)
    except TimetableError as error:
        if error.field == "timeZone":
            yield _unknown_time_zone(f"{path}.timeZone", timing.time_zone)
        else:
            yield Refusal(f"{path}.schedule", repr(timing.schedule), str(error), f"write {FIVE_FIELDS}")


def _window_refusals(window: Window | None, path: str) -> Iterator[Refusal]:
    if window is None:
        return
    try:
        open_for = DailyWindow.of(window.from_, window.to, window.time_zone).by_the_clock
    except UnknownTimeZoneError:
        yield _unknown_time_zone(f"{path}.timeZone", window.time_zone)
        return
    if open_for < SHORTEST_WINDOW:
        minutes = SHORTEST_WINDOW // datetime.timedelta(minutes=1)
        problem = f"a run that starts its Job there reads little or nothing in less than {minutes} minutes"
        yield Refusal(path, described(window), problem, f"let it close at least {minutes} minutes after it opens, or leave it out")


def _unknown_time_zone(path: str, name: str) -> Refusal:
    return Refusal(path, repr(name), "there is no time zone of this name", "take a name of the IANA database, e.g. UTC or Europe/Vienna")


def _fixed_position(schedule: ScheduledCheckpoint | ScheduledReplicationAudit) -> Iterator[Refusal]:
    if isinstance(schedule, ScheduledCheckpoint) and (target := schedule.spec.template.moment) is not None:
        yield Refusal(
            "spec.template.target",
            target.timestamp or (f"{target.lsn.ledger_id},{target.lsn.entry_id}" if target.lsn else "empty"),
            "the same checkpoint would be made each time",
            "remove it, or create a Checkpoint",
        )


def _job_refusals(job: SparkJob, path: str = "spec.job") -> Iterator[Refusal]:
    yield from _memory_refusals(f"{path}.resources.memory", job.resources.memory, "driver")
    if job.executors.instances > 0:
        yield from _memory_refusals(f"{path}.executors.memory", job.executors.memory, "executor")


def _memory_refusals(path: str, memory: str, process: str) -> Iterator[Refusal]:
    minimum = MINIMUM_MEMORY_MIB[process]
    if bytes_of(memory) < minimum * MIB:
        yield Refusal(path, memory, f"a {process} process does not run in less than {minimum}Mi", f"set at least {minimum}Mi")


def _config_refusals(config: Mapping[str, str], owned: OwnedKeys, prefixes: tuple[str, ...] = ()) -> Iterator[Refusal]:
    for key, value in sorted(config.items()):
        owner = owned_config.owner_of(key, owned, prefixes)
        if owner is not None:
            fix = "remove it" if owner == "the operator" else f"set {owner} instead"
            yield Refusal(f"spec.config[{key}]", repr(value), f"the key is decided by {owner}", fix)
        elif re.search(r"[\r\n]", key + value) or value.endswith("\\") or not re.fullmatch(r"[A-Za-z0-9._-]+", key):
            yield Refusal(
                f"spec.config[{key!r}]",
                repr(value),
                "it would not be one line of the file",  # a backslash at its end joins the next line to it
                "write one key of letters, digits, `.`, `_`, `-` and one value, without line breaks and without a backslash at its end",
            )
