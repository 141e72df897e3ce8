"""Tablespace: a replicated set of tables inside a HerdDBCluster."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from herdkeeper.api.checkpoint import Lsn, Moment
from herdkeeper.api.job import PLACES, ClaimDestination, Destination, Encryption, ObjectStore, Phase, SparkJob, place_rules
from herdkeeper.api.pods import PodTraits, pods_rules
from herdkeeper.api.resource import (
    NAME_RULES,
    READY_COLUMN,
    Compute,
    DeletionPolicy,
    Image,
    Instant,
    Model,
    PrinterColumn,
    Quantity,
    Reference,
    Resource,
    Rule,
    Status,
    formatted,
    is_unchanged,
    least_memory,
    unchanged,
    unchanged_optional,
)
from herdkeeper.api.schedule import FIVE_FIELDS, Begin, CronExpression, Duration, TimeZone, five_fields
from herdkeeper.shared import names
from herdkeeper.shared.names import TablespaceNames

_MARK = re.compile(r"(\S+) by (\S*?)( filled)?")


@dataclass(frozen=True)
class MadeMark:
    """Which tablespace a Tablespace created, by uuid, and whether that is filled from its checkpoint, if any. It is kept as an annotation,
    since a status can be lost.
    """

    uuid: str
    filled: bool

    def text(self, resource_uid: str) -> str:
        """The value of the annotation."""
        return f"{self.uuid} by {resource_uid}{' filled' if self.filled else ''}"


SqlName = Annotated[str, Field(max_length=63, pattern=r"^[a-z][a-z0-9_]{0,62}$")]


ResourceNode = Annotated[str, Field(max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]


class Failover(Model):
    """When a follower takes over without a request."""

    hung_leader_seconds: int = Field(
        5,
        ge=3,
        le=600,
        description="Seconds after which the operator replaces a leader that answers neither it nor ZooKeeper, e.g. a hung process or "
        "a lost machine. A leader that reports that ZooKeeper answers others but not it, or that its bookies acknowledge nothing, "
        "has at least 7 s to recover. A leader whose process has ended, or whose log has failed, is replaced at once.",
    )
    max_leader_inactivity_seconds: int = Field(
        30,
        ge=5,
        le=600,
        description="Seconds without a heartbeat of the leader after which a follower promotes itself, with or without the operator. A "
        "leader sends no heartbeat while its node boots another tablespace or writes local checkpoints. Set it above the longest of "
        "these, above `hungLeaderSeconds`, and above the 15 to 20 s that a standby operator needs to take over.",
    )


_STEP = r"\.{0,2}[A-Za-z0-9_-][A-Za-z0-9._-]*"
"""A folder's name in a path. Neither `.` nor `..`, so a path never leaves its place."""

ManifestPath = Annotated[str, Field(max_length=512, pattern=rf"^({_STEP}/)*{_STEP}/{_STEP}/manifests/[0-9]{{20}}-[0-9]{{20}}\.json$")]
"""A manifest's path on its volume. The last four parts are the cluster's and the tablespace's identity, `manifests` and the LSN."""


class CheckpointFiles(Destination):
    """A checkpoint given by its files, if its resource no longer exists."""

    manifest: ManifestPath = Field(
        description="Path of the manifest, on the volume or below the store's prefix: `<INSTANCEID>/<tablespace "
        "uuid>/manifests/<ledger>-<entry>.json`."
    )


TablespaceFolder = Annotated[str, Field(max_length=400, pattern=rf"^({_STEP}/)*{_STEP}/{_STEP}$")]
"""A tablespace's folder at a place. The last two parts are the cluster's and the tablespace's identity."""


class RestoreTarget(Model):
    """The moment to restore: one of `lsn`, `timestamp` and `latest`."""

    lsn: Lsn | None = Field(None, description="Exactly the commits up to this position of the old log.")
    timestamp: Moment | None = Field(
        None,
        description="RFC 3339 with an offset, to the millisecond. The old log is read up to, but without, the first entry that its "
        "leader stamped later. That entry must be archived.",
    )
    latest: Literal[True] | None = Field(None, description="`true`: the last moment in the files when the Job first reads them.")

    @property
    def text(self) -> str:
        """Returns the program's `--to`. Raises ValueError for an empty target, which the API server refuses."""
        if self.lsn is not None:
            return f"{self.lsn.ledger_id},{self.lsn.entry_id}"
        if self.timestamp is not None:
            return self.timestamp
        if self.latest:
            return "latest"
        raise ValueError("spec.bootstrap.target has no moment: set one of its fields lsn, timestamp and latest")


class BootstrapArchive(Destination):
    """The archive of the old tablespace's log. Besides a checkpoint, nothing else of the old cluster is needed."""

    folder: TablespaceFolder | None = Field(
        None,
        description="The old tablespace's folder there, `<INSTANCEID>/<tablespace uuid>`. Use it instead of `checkpoint` and `files` "
        "if the archive begins with the log, or checkpoints are in the same folder. The new checkpoint is written there, too.",
    )


class Bootstrap(Model):
    """The source of a new tablespace: a checkpoint's tables at its LSN, or with `target` those of another moment. One of `checkpoint`,
    `files` and `archive.folder`.
    """

    checkpoint: Reference | None = Field(
        None, description="A Checkpoint of this namespace. The restore waits until it has succeeded. Immutable."
    )
    files: CheckpointFiles | None = Field(
        None,
        description="The checkpoint's files, if there is no such resource. Immutable except for `encryption`, which applies to the "
        "next Job.",
    )
    target: RestoreTarget | None = Field(
        None,
        description="A moment other than the checkpoint's own. Its checkpoint is made first, next to the named one, from the newest "
        "usable one without later changes and from `archive`. Nothing of the old cluster is needed. Immutable.",
    )
    archive: BootstrapArchive | None = Field(
        None,
        description="With `target`: where the old tablespace's log is archived (its `spec.log.archive.destination`). Immutable except "
        "for `encryption`, which applies to the next Job.",
    )
    job: SparkJob = Field(
        SparkJob(), description="How the Spark job runs. A change applies to the next Job, e.g. after a failed one was deleted."
    )


class ArchiveRetention(Model):
    """How long moments stay restorable."""

    keep_within: Duration = Field(
        description="The recovery window, in minutes, hours or days (`36h`, `30d`), counted back from the archive's end. Each moment "
        "in it stays restorable. The operator keeps the newest verified Checkpoint at or before the beginning of the window, and all "
        "of the archive from there on. Without such a Checkpoint, or while something is unknown, nothing is deleted."
    )


class LogArchive(Model):
    """Where, and how often, the log is archived. A pod copies new entries; nothing is fenced."""

    destination: Destination = Field(
        description="Where the archive is written, below `<INSTANCEID>/<tablespace uuid>/log`: the place of the Checkpoints, or "
        "another one of any kind. The archiver and the Checkpoints' Jobs must be able to mount a claim at the same time."
    )
    every_seconds: int = Field(60, ge=5, le=3600, description="Seconds between two reads of the log.")
    retention: ArchiveRetention | None = Field(None, description="How long the archive is kept; forever when absent.")
    bytes_per_second_per_bookie: Quantity | None = Field(
        None, description="Maximum bytes per second read from one bookie; unlimited when absent."
    )
    image: Image | None = Field(None, description="Image of the archiver; the operator's setting for jobs when absent.")
    resources: Compute = Field(Compute(cpu="100m", memory="768Mi"), description="CPU and memory of the archiver.")
    pods: PodTraits = Field(PodTraits(), description="Placement and metadata of the archiver's pod.")


class TablespaceLog(Model):
    """How long the log is kept."""

    release_on_one_disk: bool = Field(
        False,
        description="Whether to release the log after the HerdDBCluster's `ledgers.retentionHours` once a single SQL node's disk has "
        "the rows. Losing that volume then loses the rows. Otherwise the log is kept until two nodes' disks, a Checkpoint with "
        "`verify: Follower`, or the archive hold the rows. The condition LogReleased reports when this fills the bookies, and what "
        "would free them.",
    )
    keep_until_checkpoint: bool = Field(
        False,
        description="Whether to keep the log from the newest verified Checkpoint on, or from its beginning if there is none, even past "
        "the HerdDBCluster's `ledgers.retentionHours`. The next Checkpoint can then be made from that one, however late. The "
        "condition LogReleased reports when this fills the bookies.",
    )
    archive: LogArchive | None = Field(
        None,
        description="Archives the log continuously outside of the bookies. Unarchived log is kept, even past `ledgers.retentionHours`. "
        "Checkpoints of any archived moment can be made after the log was released. The condition LogArchived reports whether the "
        "archive keeps up. Only `archive.retention` deletes archived log; deleting this resource does not.",
    )


class FullCheckTiming(Begin):
    """When the leader's rows are compared with each follower's, and how long writes may wait for it."""

    schedule: CronExpression | None = Field(
        None,
        description=f"Cron expression with five fields: {FIVE_FIELDS}. Absent: once a week between midnight and six, at a day and a "
        "minute derived from the resource's uid, but never while `replicas` is 1.",
    )
    time_zone: TimeZone = "UTC"
    max_writes_stopped_milliseconds: int = Field(
        200,
        ge=10,
        le=60000,
        description="Maximum milliseconds of a single pause of writes. A table is read in parts; between two parts, writes run for as "
        "long as they were paused.",
    )


class TablespaceSpec(Model):
    """The desired state of the tablespace."""

    herd_db_ref: Reference = Field(alias="herdDBRef", description="The HerdDBCluster that holds it. Immutable.")
    tablespace_name: SqlName | None = Field(
        None, description="Its name in SQL; the resource's name with `-` as `_` when absent. Immutable."
    )
    replicas: int = Field(2, ge=1, le=99, description="Number of replicas, including the leader.")
    failover: Failover = Field(Failover(), description="Automatic failover.")
    log: TablespaceLog = Field(TablespaceLog(), description="For how long the log is kept.")
    full_check: FullCheckTiming = Field(
        FullCheckTiming(),
        description="When all rows of the leader are compared with each follower's: once a week by default; with `suspend`, only on "
        "request (annotation `herdkeeper.io/full-check`). A time that falls into a running check is skipped. If the tablespace or "
        "its cluster is not settled, the check waits for that, at most `startingDeadlineSeconds` or until the next time.",
    )
    preferred_leader: ResourceNode | None = Field(
        None,
        description="The SQL node (`<HerdDBCluster>-herddb-<number>`) that leads if `failback` is WhenHealthy and the node is healthy.",
    )
    failback: Literal["Never", "WhenHealthy"] = Field(
        "Never",
        description="Whether `preferredLeader` gets the leadership back after a failover or a switchover. WhenHealthy: once it is "
        "settled and caught up, and a minute has passed since the last leader change.",
    )
    bootstrap: Bootstrap | None = Field(
        None,
        description="Creates the tablespace from a checkpoint; never replaces an existing one. Ready only once its content is verified.",
    )
    deletion_policy: DeletionPolicy = Field("Retain", description="Whether the tablespace is dropped when this resource is deleted.")


class ReplicaStatus(Model):
    """A node's replica."""

    node: str = Field(description="The SQL node.")
    role: str = Field(description="leader, follower, booting, failed or unknown. removed: no longer a replica, because it differs.")
    verdict: Literal["Equal", "Different", "NotChecked"] | None = Field(
        None,
        description="Whether its rows matched the log in the last comparison by a Checkpoint. Different without `verifiedBy`: they "
        "differ from the leader's.",
    )
    verified_lsn: Lsn | None = Field(None, description="LSN of the comparison.")
    verified_at: Instant | None = Field(None, description="When.")
    verified_by: str | None = Field(None, description="The Checkpoint that compared it.")
    different_tables: tuple[str, ...] | None = Field(None, description="The tables with other rows.")


class RestoreStatus(Model):
    """Progress of the restore. Present before the tablespace is created, so that its owner is known."""

    phase: Phase | None = Field(None, description="Pending, Running, Succeeded or Failed.")
    job: str | None = Field(None, description="The Job that runs it.")
    claim_name: str | None = Field(None, description="The volume claim with the checkpoint.")
    object_store: ObjectStore | None = Field(None, description="The object store with the checkpoint.")
    encryption: Encryption | None = Field(None, description="The keys that the checkpoint is read with.")
    manifest: str | None = Field(
        None,
        description="Path of the checkpoint's manifest there. With `target`: the named one, and once the restore has succeeded, that "
        "of the moment's own checkpoint.",
    )
    lsn: Lsn | None = Field(None, description="Position in the old log to which the tablespace was restored.")
    lsn_timestamp: Instant | None = Field(None, description="When the entry there was written, by its leader's clock.")
    rows_loaded: int | None = Field(None, description="Rows that are committed in the tablespace so far.")
    rows: int | None = Field(None, description="Rows of the checkpoint.")
    verified: str | None = Field(None, description="How the content was verified.")
    started_at: Instant | None = Field(None, description="When the Job started.")
    completed_at: Instant | None = Field(None, description="When it ended.")
    duration_seconds: float | None = Field(None, description="Seconds that the last run took.")

    @property
    def source(self) -> Destination | None:
        """Location of the checkpoint, None until noted."""
        claim = ClaimDestination(claim_name=self.claim_name) if self.claim_name else None
        if claim is None and self.object_store is None:
            return None
        return Destination(persistent_volume_claim=claim, object_store=self.object_store, encryption=self.encryption)


class ArchiveStatus(Model):
    """The archived part of the log."""

    claim_name: str | None = Field(None, description="The volume claim with the archive.")
    object_store: ObjectStore | None = Field(None, description="The object store with the archive.")
    lsn: Lsn | None = Field(None, description="Everything up to here is archived, from where the archive begins.")
    lsn_timestamp: Instant | None = Field(None, description="The latest time of the last archived entries, by their leader's clock.")
    current_at: Instant | None = Field(None, description="Everything that was confirmed at this time is archived.")
    first_lsn: Lsn | None = Field(None, description="The first archived LSN; earlier entries have expired, or were never archived.")
    expiry: str | None = Field(
        None, description="With `retention`: the first LSN that is kept and the Checkpoint that needs it, or why nothing expires."
    )
    lag_seconds: int | None = Field(
        None, description="Maximum seconds that an entry waited before it was archived, in the last pass with entries."
    )


class RecoveryWindow(Model):
    """The moments for which a Checkpoint can be made from the archive alone."""

    from_: Instant | None = Field(None, alias="from", description="The first one.")
    to: Instant | None = Field(
        None,
        description="The time of the last archived entry. A time to restore to must be before it, since a later entry may have the same; "
        "`toLsn` has everything.",
    )
    from_lsn: Lsn | None = Field(None, description="The first one in the log.")
    to_lsn: Lsn | None = Field(None, description="The last one in the log.")


class CheckedTable(Model):
    """A table that the leader has read."""

    name: str = Field(description="The table.")
    writes_stopped_seconds: float = Field(description="Seconds for which writes to the tablespace may have waited for it.")


class UncheckedTable(Model):
    """A table that the leader could not read."""

    name: str = Field(description="The table.")
    why: str = Field(description="HerdDB's error.")


class CheckedReplica(Model):
    """A follower's result of the check."""

    node: str = Field(description="The SQL node.")
    verdict: Literal["Passed", "Failed", "NotAnswered"] = Field(
        description="Whether its rows of `tables` equal the leader's. NotAnswered: it has not checked all of them, was booting, can't "
        "be reached, or the check ended early."
    )
    different_tables: tuple[str, ...] | None = Field(None, description="The tables with different rows.")


class FullCheckTimes(Model):
    """The schedule of `spec.fullCheck`: past, missed and next times."""

    declared: str = Field(description="The schedule to which these fields refer, with its time zone.")
    since: Instant = Field(description="When the schedule was first seen. Earlier times don't count.")
    last_schedule_time: Instant | None = Field(None, description="The newest scheduled time at which a check started.")
    next_schedule_time: Instant | None = Field(None, description="When the next one is due; absent while suspended.")
    waits_for: str | None = Field(None, description="Why the due check has not started yet.")
    last_missed_time: Instant | None = Field(None, description="The newest scheduled time that was missed.")
    last_missed_why: str | None = Field(None, description="Why not.")


class LogBoundary(Lsn):
    """A position in the log: after this entry."""

    entry_id: int = Field(ge=-1, description="Entry; -1 before the ledger's first one.")


class FullCheckStatus(Model):
    """The last full check: the leader's rows against each follower's, at the same entries of the log."""

    last_request: str | None = Field(None, description="Result of the last request with the annotation `herdkeeper.io/full-check`.")
    leader: str | None = Field(None, description="The SQL node that led and read its own rows.")
    started_at: Instant | None = Field(None, description="Start of the check, by that node's clock.")
    completed_at: Instant | None = Field(None, description="When the leader was done. The followers check later.")
    writes_stopped_seconds: float | None = Field(None, description="Total seconds for which writes may have waited.")
    longest_writes_stopped_seconds: float | None = Field(None, description="The longest single wait, in seconds.")
    tables: tuple[CheckedTable, ...] = Field((), description="The tables that were checked.")
    not_checked: tuple[UncheckedTable, ...] = Field((), description="The tables that the leader could not read. They have no verdict.")
    replicas: tuple[CheckedReplica, ...] = Field((), description="What each follower found.")
    after_lsn: LogBoundary | None = Field(None, description="The check begins in the log after this entry.")
    until_lsn: Lsn | None = Field(
        None, description="Last log entry of the check so far. A follower that has applied it has checked all tables."
    )
    error: str | None = Field(None, description="Why it ended before all tables were done.")
    note: str | None = Field(None, description="Meaning of a failed check.")
    schedule: FullCheckTimes | None = Field(None, description="The schedule of `spec.fullCheck`: past, missed and next times.")


class StreamStatus(Model):
    """A change stream for which the log is kept."""

    name: str = Field(description="The stream's option `pin`.")
    state: Literal["Moves", "Stands", "Abandoned", "Unreadable"] = Field(
        description="Moves: the stream reported its position within ten minutes. Stands: it has not reported since `standsSince`; the "
        "log is kept for it until `countsUntil`. Abandoned: that time is over, and the log is no longer kept for it. Unreadable: its "
        "znode can't be read, so the whole log is kept.",
    )
    stands_since: Instant | None = Field(None, description="Time of its last report.")
    counts_until: Instant | None = Field(None, description="Until when the log is kept for it unless it moves.")
    lsn: Lsn | None = Field(None, description="For a stream that stands: the log is kept from this LSN on; from its beginning when absent.")


class TablespaceStatus(Status):
    """The observed state of the tablespace."""

    tablespace_name: str | None = Field(None, description="Its name in SQL.")
    uuid: str | None = Field(None, description="Its identity inside HerdDB.")
    leader: str | None = Field(None, description="The SQL node that leads.")
    replicas: tuple[ReplicaStatus, ...] = Field((), description="Each copy.")
    leader_service: str | None = Field(None, description="Service of the leader's SQL port.")
    connection_secret: str | None = Field(
        None,
        description="Secret for clients: `host`, `port`, `url`, `leaderUrl`, `user`, `password`, `database`, and `ca.crt` where SQL is "
        "encrypted.",
    )
    last_switchover: str | None = Field(None, description="Result of the last requested switchover.")
    full_check: FullCheckStatus | None = Field(None, description="The last full check, the last request for one, and the schedule.")
    ready_replicas: int | None = Field(None, description="Replicas that are settled in their role.")
    restore: RestoreStatus | None = Field(None, description="With `spec.bootstrap`: progress of the restore.")
    archive: ArchiveStatus | None = Field(None, description="With `spec.log.archive`: progress of the archive.")
    streams: tuple[StreamStatus, ...] = Field(
        (), description="Change streams that pin the log, the one that needs most of it first; at most 50."
    )
    recovery_window: RecoveryWindow | None = Field(
        None,
        description="With `spec.log.archive`: the moments that can be restored. Absent while there are none: an archive that does not "
        "begin with the log needs a verified Checkpoint as a base.",
    )


def sql_name_of(resource: str, declared: object) -> str:
    """Returns the SQL name of a Tablespace's tablespace. `declared` is its `spec.tablespaceName`, or None."""
    return str(declared or resource.replace("-", "_"))


def _unchanged_in_bootstrap(*fields: str) -> str:
    return " && ".join(is_unchanged(f"bootstrap.{field}") for field in fields)


def _same_place(place: str, path: str) -> str:
    """CEL: a place of the bootstrap, and the path in its field `path`, are unchanged. Its keys may change: they only tell how files are
    read, and a restore without a key could otherwise never continue.
    """
    same = _unchanged_in_bootstrap(f"{place}.{path}", *(f"{place}.{kind}" for kind in PLACES))
    there = f"has(self.bootstrap.{place})"
    return f"{there} == has(oldSelf.bootstrap.{place}) && (!{there} || ({same}))"


_SOURCES = "[has(self.bootstrap.checkpoint), has(self.bootstrap.files), has(self.bootstrap.archive) && has(self.bootstrap.archive.folder)]"
_MOMENTS = "[has(self.bootstrap.target.lsn), has(self.bootstrap.target.timestamp), has(self.bootstrap.target.latest)]"
_SHOWN_SOURCE = (
    "(!has(SELF.bootstrap) ? 'none' : has(SELF.bootstrap.checkpoint) ? SELF.bootstrap.checkpoint.name : "
    "has(SELF.bootstrap.files) ? SELF.bootstrap.files.manifest : SELF.bootstrap.archive.folder)"
)


class Tablespace(Resource):
    """A tablespace."""

    KIND: ClassVar[str] = "Tablespace"
    PLURAL: ClassVar[str] = "tablespaces"
    SHORT_NAME: ClassVar[str] = "ts"
    SUMMARY: ClassVar[str] = "A replicated set of tables with its own leader and log, inside a HerdDBCluster."
    COLUMNS: ClassVar[tuple[PrinterColumn, ...]] = (
        READY_COLUMN,
        PrinterColumn(name="Leader", type="string", json_path=".status.leader"),
        PrinterColumn(name="Replicas", type="integer", json_path=".status.readyReplicas"),
        PrinterColumn(name="Verified", type="string", json_path='.status.conditions[?(@.type=="ReplicasVerified")].status', priority=1),
        PrinterColumn(name="Archived", type="string", json_path='.status.conditions[?(@.type=="LogArchived")].status', priority=1),
        PrinterColumn(name="Connection", type="string", json_path=".status.connectionSecret", priority=1),
    )
    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="self.failover.maxLeaderInactivitySeconds > self.failover.hungLeaderSeconds",
            message="spec.failover.maxLeaderInactivitySeconds must be above spec.failover.hungLeaderSeconds: otherwise followers "
            "promote themselves before the operator decides; raise the first, or lower the second",
            message_expression=formatted(
                "spec.failover.maxLeaderInactivitySeconds is %d, not above the %d of spec.failover.hungLeaderSeconds: followers "
                "would promote themselves before the operator decides; raise the first, or lower the second",
                "self.failover.maxLeaderInactivitySeconds",
                "self.failover.hungLeaderSeconds",
            ),
            field_path=".failover",
        ),
        unchanged("herdDBRef", "SELF.herdDBRef.name", "a tablespace can't move between clusters; create a new Tablespace"),
        unchanged_optional("tablespaceName", "SELF.tablespaceName", "HerdDB can't rename a tablespace; create a new Tablespace"),
        Rule(
            scope="resource",
            rule="(has(self.spec.tablespaceName) ? self.spec.tablespaceName : self.metadata.name) != 'herd'",
            message="herd is HerdDB's own tablespace: set spec.tablespaceName to another name",
        ),
        Rule(
            rule=f"!has(self.bootstrap) || {_SOURCES}.exists_one(named, named)",
            message="spec.bootstrap has no source, or two: set one of spec.bootstrap.checkpoint, spec.bootstrap.files and "
            "spec.bootstrap.archive.folder",
            message_expression=formatted(
                "spec.bootstrap has %s: set one of spec.bootstrap.checkpoint, spec.bootstrap.files and spec.bootstrap.archive.folder",
                f"{_SOURCES}.exists(named, named) ? 'two sources' : 'no source'",
            ),
            field_path=".bootstrap",
        ),
        Rule(
            rule=f"!has(self.bootstrap) || !has(self.bootstrap.target) || {_MOMENTS}.exists_one(named, named)",
            message="spec.bootstrap.target has no moment, or two: set one of its fields lsn, timestamp and latest, or remove it for "
            "the checkpoint's own moment",
            field_path=".bootstrap",
        ),
        Rule(
            rule="!has(self.bootstrap) || has(self.bootstrap.target) == has(self.bootstrap.archive)",
            message="spec.bootstrap.target and spec.bootstrap.archive go together: a moment is made from the archive of the log",
            message_expression=formatted(
                "spec.bootstrap.%s: a moment is made from the archive of the log",
                "has(self.bootstrap.target) ? 'target is set and spec.bootstrap.archive is not; set it to where the log is archived' "
                ": 'archive is set and spec.bootstrap.target is not; set it to a moment, e.g. {latest: true}'",
            ),
            field_path=".bootstrap",
        ),
        *place_rules("bootstrap.archive", "!has(self.bootstrap) || !has(self.bootstrap.archive)"),
        *place_rules("bootstrap.files", "!has(self.bootstrap) || !has(self.bootstrap.files)"),
        Rule(
            rule=f"has(self.bootstrap) == has(oldSelf.bootstrap) && "
            f"(!has(self.bootstrap) || ({_unchanged_in_bootstrap('checkpoint')} && {_same_place('files', 'manifest')}))",
            message="spec.bootstrap can't change: the tablespace was made from it; create a new Tablespace",
            message_expression=formatted(
                "spec.bootstrap can't change from %s to %s: the tablespace was made from it; create a new Tablespace",
                _SHOWN_SOURCE.replace("SELF", "oldSelf"),
                _SHOWN_SOURCE.replace("SELF", "self"),
            ),
            field_path=".bootstrap",
        ),
        Rule(
            rule=f"!has(self.bootstrap) || !has(oldSelf.bootstrap) || "
            f"({_unchanged_in_bootstrap('target')} && {_same_place('archive', 'folder')})",
            message="spec.bootstrap.target and spec.bootstrap.archive can't change: the tablespace was made from them; create a new "
            "Tablespace",
            field_path=".bootstrap",
        ),
        least_memory("bootstrap.job.resources.memory", 1024, absent="!has(self.bootstrap)"),
        least_memory("bootstrap.job.executors.memory", 256, absent="!has(self.bootstrap)"),
        *place_rules("log.archive.destination", "!has(self.log.archive)"),
        least_memory("log.archive.resources.memory", 512, absent="!has(self.log.archive)"),
        five_fields("fullCheck", optional=True),
        *pods_rules("bootstrap.job.pods"),
        *pods_rules("log.archive.pods"),
        *NAME_RULES,
    )

    spec: TablespaceSpec
    status: TablespaceStatus | None = None

    @property
    def names(self) -> TablespaceNames:
        return TablespaceNames(self.key)

    @property
    def sql_name(self) -> str:
        return sql_name_of(self.metadata.name, self.spec.tablespace_name)

    @property
    def restore(self) -> RestoreStatus | None:
        return self.status.restore if self.status is not None else None

    @property
    def mark(self) -> MadeMark | None:
        """The mark of the tablespace that this resource created. A mark copied from another resource's manifest does not count."""
        match = _MARK.fullmatch(self.metadata.annotations.get(names.MADE_ANNOTATION, ""))
        return MadeMark(match[1], match[3] is not None) if match is not None and match[2] == self.metadata.uid else None

    @property
    def made_uuid(self) -> str | None:
        """The uuid of the tablespace that this resource created, even if its status was lost, or None."""
        told = self.status.uuid if self.status is not None else None
        return told or (self.mark.uuid if self.mark is not None else None)

    @property
    def restored_moment(self) -> RestoreTarget | None:
        """The moment of which it is made, unless that is the checkpoint's own."""
        return self.spec.bootstrap.target if self.spec.bootstrap is not None else None

    @property
    def is_restoring(self) -> bool:
        """Whether its restore from a checkpoint has not finished."""
        if self.spec.bootstrap is None or (self.restore is None and self.mark is not None and self.mark.filled):
            return False
        return self.restore is None or self.restore.phase != "Succeeded"
