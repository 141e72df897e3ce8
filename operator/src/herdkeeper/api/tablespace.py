"""Tablespace: a replicated set of tables inside a HerdDBCluster."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from herdkeeper.api.checkpoint import Lsn, Moment
from herdkeeper.api.job import PLACES, ClaimDestination, Destination, Encryption, FileSystem, ObjectStore, Phase, SparkJob, place_rules
from herdkeeper.api.pods import PodTraits, pods_rules
from herdkeeper.api.resource import (
    AGE_COLUMN,
    NAME_RULES,
    READY_COLUMN,
    STATUS_COLUMN,
    Compute,
    DeletionPolicy,
    Image,
    Model,
    PrinterColumn,
    Quantity,
    Reference,
    Resource,
    Rule,
    Status,
    formatted,
    unchanged,
    unchanged_optional,
)
from herdkeeper.api.schedule import FIVE_FIELDS, Begin, CronExpression, Duration, TimeZone, five_fields
from herdkeeper.shared import names
from herdkeeper.shared.names import TablespaceNames

_MARK = re.compile(r"(\S+) by (\S*?)( filled)?")


@dataclass(frozen=True)
class MadeMark:
    """An annotation of a Tablespace, since a status can be lost: the uuid of the tablespace that it made, and whether that has all rows
    of the checkpoint that it is made from, if any."""

    uuid: str
    filled: bool

    def text(self, resource_uid: str) -> str:
        """As the annotation has it."""
        return f"{self.uuid} by {resource_uid}{' filled' if self.filled else ''}"


SqlName = Annotated[str, Field(max_length=63, pattern=r"^[a-z][a-z0-9_]{0,62}$")]


ResourceNode = Annotated[str, Field(max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]


class Failover(Model):
    """When a follower takes the leadership without being asked."""

    hung_leader_seconds: int = Field(
        5,
        ge=3,
        le=600,
        description="Seconds after which the operator replaces a leader of which neither it nor ZooKeeper hears: one that hangs, or whose "
        "machine is gone. Not before 7 s, in which it may help itself, one that says that ZooKeeper answers others and not it, or that its "
        "bookies acknowledge nothing. A leader whose process has ended, or whose log has failed, is replaced at once.",
    )
    max_leader_inactivity_seconds: int = Field(
        30,
        ge=5,
        le=600,
        description="Seconds without a heartbeat of the leader after which a follower takes over by itself, the operator running or not. "
        "A leader sends none while its node boots another tablespace, or writes its local checkpoints: keep it above the longest of these. "
        "Keep it above `hungLeaderSeconds`, too, and above the 15 to 20 s after which another operator takes over from one that ended.",
    )


_STEP = r"\.{0,2}[A-Za-z0-9_-][A-Za-z0-9._-]*"
"""A folder's name in a path. Neither `.` nor `..`: a path leads below its place, never out of it."""

ManifestPath = Annotated[str, Field(max_length=512, pattern=rf"^({_STEP}/)*{_STEP}/{_STEP}/manifests/[0-9]{{20}}-[0-9]{{20}}\.json$")]
"""A manifest's path on its volume; the last four parts are the cluster's and the tablespace's identity, `manifests` and the LSN."""


class CheckpointFiles(Destination):
    """A checkpoint by its files, when its resource no longer exists."""

    manifest: ManifestPath = Field(
        description="Path of the manifest on the volume, or below the store's prefix: "
        "`<INSTANCEID>/<tablespace uuid>/manifests/<ledger>-<entry>.json`."
    )


TablespaceFolder = Annotated[str, Field(max_length=400, pattern=rf"^({_STEP}/)*{_STEP}/{_STEP}$")]
"""A tablespace's folder at a place; the last two parts are the cluster's and the tablespace's identity."""


class RestoreTarget(Model):
    """The moment that the tablespace is made as of. One of `lsn`, `timestamp` and `latest`."""

    lsn: Lsn | None = Field(None, description="Exactly the commits up to this position of the old log.")
    timestamp: Moment | None = Field(
        None,
        description="RFC 3339 with an offset, to the millisecond. The old log up to the first entry that its leader stamped later, without "
        "it, which must be archived.",
    )
    latest: Literal[True] | None = Field(None, description="`true`: the last moment that the files have when the Job first looks.")

    @property
    def text(self) -> str:
        """As the program's `--to`. ValueError for a target that names nothing, which the API server refuses."""
        if self.lsn is not None:
            return f"{self.lsn.ledger_id},{self.lsn.entry_id}"
        if self.timestamp is not None:
            return self.timestamp
        if self.latest:
            return "latest"
        raise ValueError("spec.bootstrap.target names no moment: set one of its fields lsn, timestamp and latest")


class BootstrapArchive(Destination):
    """The archive of the old tablespace's log, which is all that is needed of the old cluster besides a checkpoint."""

    folder: TablespaceFolder | None = Field(
        None,
        description="Instead of `checkpoint` and `files`, where the archive begins with the log, or checkpoints lie beside it: the old "
        "tablespace's folder at that place, `<INSTANCEID>/<tablespace uuid>`. What is made of it is written there, too.",
    )


class Bootstrap(Model):
    """What a new tablespace is made from: the tables of a checkpoint at its LSN, or with `target` those of another moment. One of
    `checkpoint`, `files` and `archive.folder`."""

    checkpoint: Reference | None = Field(None, description="A Checkpoint of this namespace; waited for until it succeeded. Immutable.")
    files: CheckpointFiles | None = Field(
        None,
        description="The checkpoint's files, when there is no such resource. Immutable, but for `encryption`, which counts for the next "
        "Job.",
    )
    target: RestoreTarget | None = Field(
        None,
        description="The moment, when it is not the checkpoint's own. A checkpoint of it is made first, beside the one that is named: from "
        "the newest usable one there that holds nothing later, and from `archive`. Nothing of the old cluster need be left. Immutable.",
    )
    archive: BootstrapArchive | None = Field(
        None,
        description="With `target`: where the old tablespace's log is archived (its `spec.log.archive.destination`). Immutable, but for "
        "`encryption`, which counts for the next Job.",
    )
    job: SparkJob = Field(
        SparkJob(), description="How the Spark job runs. A change counts for the next Job, e.g. after one that failed was deleted."
    )


class ArchiveRetention(Model):
    """For how long moments stay restorable."""

    keep_within: Duration = Field(
        description="The recovery window, in minutes, hours or days (`36h`, `30d`), back from the archive's end: each moment of it stays "
        "restorable. The operator keeps the newest verified Checkpoint at or before the beginning of the window, and all of the archive"
        " from there on. Without such a Checkpoint, or while something is unknown, nothing is deleted."
    )


class LogArchive(Model):
    """Where, and how often, the log is archived. A pod copies what is new; nothing is fenced."""

    destination: Destination = Field(
        description="Where the archive goes, below `<INSTANCEID>/<tablespace uuid>/log`: the place of the Checkpoints, or another one, "
        "also of the other kind. A claim must be mountable where the archiver and the Checkpoints' Jobs run at the same time."
    )
    every_seconds: int = Field(60, ge=5, le=3600, description="Seconds from one look at the log to the next.")
    retention: ArchiveRetention | None = Field(None, description="How long the archive is kept; forever when absent.")
    bytes_per_second_per_bookie: Quantity | None = Field(
        None, description="Most bytes per second read from one bookie; unlimited when absent."
    )
    image: Image | None = Field(None, description="Image of the archiver; the operator's setting for jobs when absent.")
    resources: Compute = Field(Compute(cpu="100m", memory="768Mi"), description="CPU and memory of the archiver.")
    pods: PodTraits = Field(PodTraits(), description="Where the archiver runs, and what else its pod carries.")


class TablespaceLog(Model):
    """For how long the log is kept."""

    release_on_one_disk: bool = Field(
        False,
        description="Releases the log past the HerdDBCluster's `ledgers.retentionHours` as soon as one SQL node's disk has the rows. A "
        "lost volume then loses them. Otherwise the log is kept until two nodes' disks, one Checkpoint with `verify: Follower` or the "
        "archive hold them; the condition LogReleased tells when that fills the bookies, and what would free it.",
    )
    keep_until_checkpoint: bool = Field(
        False,
        description="Keeps the log from the newest verified Checkpoint on, or from its beginning while there is none. It is kept also past "
        "the HerdDBCluster's `ledgers.retentionHours`, so that the next Checkpoint can be made from the last one, however late it comes. "
        "The condition LogReleased tells when that fills the bookies.",
    )
    archive: LogArchive | None = Field(
        None,
        description="Archives the log continuously outside of the bookies, and keeps what is not archived yet, also past "
        "`ledgers.retentionHours`. Checkpoints of any moment that the archive has can be made after the log was released. The condition "
        "LogArchived tells whether it keeps up. What is archived goes by `archive.retention` only, not with this resource.",
    )


class FullCheckTiming(Begin):
    """When the leader's rows are compared with each follower's, and for how long writes may wait for it."""

    schedule: CronExpression | None = Field(
        None,
        description=f"When, in five fields: {FIVE_FIELDS}. Once a week when absent, between midnight and six, at a day and a minute that "
        "follow from the resource's uid; never by itself then while `replicas` is 1.",
    )
    time_zone: TimeZone = "UTC"
    max_writes_stopped_milliseconds: int = Field(
        200,
        ge=10,
        le=60000,
        description="The longest single pause of writes. A table is read in parts; between two parts writes run for as long as they"
        " were paused.",
    )


class TablespaceSpec(Model):
    """The desired state of the tablespace."""

    herd_db_ref: Reference = Field(alias="herdDBRef", description="The HerdDBCluster that holds it. Immutable.")
    tablespace_name: SqlName | None = Field(
        None, description="Its name in SQL; the resource's name with `-` as `_` when absent. Immutable."
    )
    replicas: int = Field(2, ge=1, le=99, description="SQL nodes that hold a copy, the leader included.")
    failover: Failover = Field(Failover(), description="Automatic failover.")
    log: TablespaceLog = Field(TablespaceLog(), description="For how long the log is kept.")
    full_check: FullCheckTiming = Field(
        FullCheckTiming(),
        description="When all rows of the leader are compared with each follower's, by itself: once a week unless it says something else, "
        "and with `suspend` only on request (annotation `herdkeeper.io/full-check`). A time that comes while a check runs is left out. One "
        "that comes while the tablespace or its cluster is not settled waits until they are: for `startingDeadlineSeconds`, or until the "
        "next time.",
    )
    preferred_leader: ResourceNode | None = Field(
        None,
        description="The SQL node (`<HerdDBCluster>-herddb-<number>`) that leads when `failback` is WhenHealthy and the node is healthy.",
    )
    failback: Literal["Never", "WhenHealthy"] = Field(
        "Never",
        description="Whether `preferredLeader` gets the leadership back after a failover or a switchover: WhenHealthy, once it is settled, "
        "caught up, and a minute has passed since the last change.",
    )
    bootstrap: Bootstrap | None = Field(
        None,
        description="Creates the tablespace from a checkpoint; never replaces an existing tablespace. Ready only once its content is"
        " verified.",
    )
    deletion_policy: DeletionPolicy = Field("Retain", description="Whether the tablespace is dropped when this resource is deleted.")


class ReplicaStatus(Model):
    """A node's copy."""

    node: str = Field(description="The SQL node.")
    role: str = Field(description="leader, follower, booting, failed or unknown; removed: off the list, and differs.")
    verdict: Literal["Equal", "Different", "NotChecked"] | None = Field(
        None,
        description="Whether its rows were those that the log says, when a Checkpoint compared them last; Different without `verifiedBy`: "
        "from the leader's.",
    )
    verified_lsn: Lsn | None = Field(None, description="Where it was compared.")
    verified_at: str | None = Field(None, description="When.", json_schema_extra={"format": "date-time"})
    verified_by: str | None = Field(None, description="The Checkpoint that compared it.")
    different_tables: tuple[str, ...] | None = Field(None, description="The tables with other rows.")


class RestoreStatus(Model):
    """How far it is made from its checkpoint. Present before the tablespace is created, so that its owner is known."""

    phase: Phase | None = Field(None, description="Pending, Running, Succeeded or Failed.")
    job: str | None = Field(None, description="The Job that runs it.")
    claim_name: str | None = Field(None, description="The volume claim with the checkpoint.")
    object_store: ObjectStore | None = Field(None, description="The object store with the checkpoint.")
    file_system: FileSystem | None = Field(None, description="The file system with the checkpoint.")
    encryption: Encryption | None = Field(None, description="The keys that the checkpoint is read with.")
    manifest: str | None = Field(
        None,
        description="Path of the checkpoint's manifest there; of a moment that was asked for (`target`) the one that is named, until the "
        "restore has succeeded with that moment's own.",
    )
    lsn: Lsn | None = Field(None, description="The tablespace was made as it was at this position of the old log.")
    lsn_timestamp: str | None = Field(
        None, description="When the entry there was written, by its leader's clock.", json_schema_extra={"format": "date-time"}
    )
    rows_loaded: int | None = Field(None, description="Rows that are in the tablespace for good, while it runs.")
    rows: int | None = Field(None, description="Rows of the checkpoint.")
    verified: str | None = Field(None, description="How the content was verified.")
    started_at: str | None = Field(None, description="When the Job started.", json_schema_extra={"format": "date-time"})
    completed_at: str | None = Field(None, description="When it ended.", json_schema_extra={"format": "date-time"})
    duration_seconds: float | None = Field(None, description="Seconds that the last run worked.")

    @property
    def source(self) -> Destination | None:
        """Where the checkpoint is; None while that is not noted."""
        claim = ClaimDestination(claim_name=self.claim_name) if self.claim_name else None
        store, file_system = self.object_store, self.file_system
        if claim is None and store is None and file_system is None:
            return None
        return Destination(persistent_volume_claim=claim, object_store=store, file_system=file_system, encryption=self.encryption)


class ArchiveStatus(Model):
    """What is archived of the log."""

    claim_name: str | None = Field(None, description="The volume claim with the archive.")
    object_store: ObjectStore | None = Field(None, description="The object store with the archive.")
    file_system: FileSystem | None = Field(None, description="The file system with the archive.")
    lsn: Lsn | None = Field(None, description="Everything up to here is archived, from where the archive begins.")
    lsn_timestamp: str | None = Field(
        None,
        description="The latest time of the last archived entries, by their leader's clock.",
        json_schema_extra={"format": "date-time"},
    )
    current_at: str | None = Field(
        None, description="All that was confirmed at this time is archived.", json_schema_extra={"format": "date-time"}
    )
    first_lsn: Lsn | None = Field(None, description="The first archived LSN; earlier entries have expired, or were never archived.")
    expiry: str | None = Field(
        None, description="With `retention`: the first LSN that is kept and the Checkpoint that needs it, or why nothing expires."
    )
    lag_seconds: int | None = Field(
        None, description="For how long, at most, an entry waited until it was archived, when there was one last."
    )


class RecoveryWindow(Model):
    """The moments that a Checkpoint can be made for from the archive alone."""

    from_: str | None = Field(None, alias="from", description="The first one.", json_schema_extra={"format": "date-time"})
    to: str | None = Field(None, description="The last one.", json_schema_extra={"format": "date-time"})
    from_lsn: Lsn | None = Field(None, description="The first one in the log.")
    to_lsn: Lsn | None = Field(None, description="The last one in the log.")


class CheckedTable(Model):
    """A table that the leader has read."""

    name: str = Field(description="The table.")
    writes_stopped_seconds: float = Field(description="Seconds for which the tablespace's writes could have had to wait for it.")


class UncheckedTable(Model):
    """A table that the leader could not read."""

    name: str = Field(description="The table.")
    why: str = Field(description="What HerdDB said.")


class CheckedReplica(Model):
    """What a follower found when it came to the check in its log."""

    node: str = Field(description="The SQL node.")
    verdict: Literal["Passed", "Failed", "NotAnswered"] = Field(
        description="Whether it had the leader's rows of `tables` there. NotAnswered: it has not come to all of them, or was booting then, "
        "or can't be asked, or the check ended early."
    )
    different_tables: tuple[str, ...] | None = Field(None, description="The tables of which it had others.")


class FullCheckTimes(Model):
    """The schedule of `spec.fullCheck`: past, missed and next times."""

    declared: str = Field(description="The schedule that these fields are about, with its time zone.")
    since: str = Field(description="When it was first seen: times up to here are not its own.", json_schema_extra={"format": "date-time"})
    last_schedule_time: str | None = Field(
        None, description="The newest scheduled time at which a check started.", json_schema_extra={"format": "date-time"}
    )
    next_schedule_time: str | None = Field(
        None, description="When the next one is due; absent while suspended.", json_schema_extra={"format": "date-time"}
    )
    waits_for: str | None = Field(None, description="Why the due check has not started yet.")
    last_missed_time: str | None = Field(
        None, description="The newest scheduled time that was missed.", json_schema_extra={"format": "date-time"}
    )
    last_missed_why: str | None = Field(None, description="Why not.")


class LogBoundary(Model):
    """Where something in the log begins: behind this entry."""

    ledger_id: int = Field(ge=0, description="Ledger.")
    entry_id: int = Field(ge=-1, description="Entry; -1 before the ledger's first one.")


class FullCheckStatus(Model):
    """The last check of all tables: the leader's rows against each follower's, at the same entries of the log."""

    last_request: str | None = Field(None, description="Result of the last request by the annotation `herdkeeper.io/full-check`.")
    leader: str | None = Field(None, description="The SQL node that led, and read its rows.")
    started_at: str | None = Field(None, description="When it began, by that node's clock.", json_schema_extra={"format": "date-time"})
    completed_at: str | None = Field(
        None, description="When the leader was done; the followers come to it later.", json_schema_extra={"format": "date-time"}
    )
    writes_stopped_seconds: float | None = Field(
        None, description="Seconds for which writes could have had to wait, in all; not in one piece."
    )
    longest_writes_stopped_seconds: float | None = Field(None, description="The longest piece.")
    tables: tuple[CheckedTable, ...] = Field((), description="The tables that are done.")
    not_checked: tuple[UncheckedTable, ...] = Field((), description="The tables that the leader could not read: no verdict is about them.")
    replicas: tuple[CheckedReplica, ...] = Field((), description="What each follower found.")
    after_lsn: LogBoundary | None = Field(None, description="The check lies in the log behind this entry.")
    until_lsn: Lsn | None = Field(None, description="Its last entry so far: a follower that has applied it has come to all of them.")
    error: str | None = Field(None, description="Why it ended before all tables were done.")
    note: str | None = Field(None, description="What a failed check means.")
    schedule: FullCheckTimes | None = Field(None, description="The schedule of `spec.fullCheck`: past, missed and next times.")


class StreamStatus(Model):
    """A stream of changes that the log is kept for."""

    name: str = Field(description="The stream's option `pin`.")
    state: Literal["Moves", "Stands", "Abandoned", "Unreadable"] = Field(
        description="Moves: the stream reported its position within ten minutes. Stands: it has not since `standsSince`; the log is"
        " kept for it until `countsUntil`. Abandoned: that time is over, and the log is no longer kept for it. Unreadable: its znode"
        " can't be read, and the whole log is kept.",
    )
    stands_since: str | None = Field(None, description="Time of its last report.", json_schema_extra={"format": "date-time"})
    counts_until: str | None = Field(
        None, description="Up to when the log is kept for it unless it moves.", json_schema_extra={"format": "date-time"}
    )
    lsn: Lsn | None = Field(None, description="For a stream that stands: the log is kept from this LSN on, from its beginning when absent.")


class TablespaceStatus(Status):
    """The observed state of the tablespace."""

    tablespace_name: str | None = Field(None, description="Its name in SQL.")
    uuid: str | None = Field(None, description="Its identity inside HerdDB.")
    leader: str | None = Field(None, description="The SQL node that leads.")
    replicas: tuple[ReplicaStatus, ...] = Field((), description="Each copy.")
    leader_service: str | None = Field(None, description="Service of the leader's SQL port.")
    connection_secret: str | None = Field(
        None, description="Secret with `host`, `port`, `url`, `leaderUrl`, `user`, `password` and `database`, for clients."
    )
    last_switchover: str | None = Field(None, description="Result of the last requested switchover.")
    full_check: FullCheckStatus | None = Field(None, description="The last full check, the last request for one, and the schedule.")
    ready_replicas: int | None = Field(None, description="Copies that are settled in their role.")
    restore: RestoreStatus | None = Field(None, description="With `spec.bootstrap`: how far it is.")
    archive: ArchiveStatus | None = Field(None, description="With `spec.log.archive`: how far it is.")
    streams: tuple[StreamStatus, ...] = Field(
        (), description="Streams of changes that pin the log, the one that needs most of it first; 50 at most."
    )
    recovery_window: RecoveryWindow | None = Field(
        None,
        description="With `spec.log.archive`: the moments that can be had. Absent while there is none: an archive that does not "
        "begin with the log needs a verified Checkpoint to go on from.",
    )


def _unchanged_in_bootstrap(*fields: str) -> str:
    return " && ".join(
        f"has(self.bootstrap.{field}) == has(oldSelf.bootstrap.{field}) && "
        f"(!has(self.bootstrap.{field}) || self.bootstrap.{field} == oldSelf.bootstrap.{field})"
        for field in fields
    )


def _same_place(place: str, path: str) -> str:
    """A place of the bootstrap, and the path there at its field `path`, are as before. Its keys may come and change: they say how files are
    read, and a restore that lacks one could else never go on."""
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
        STATUS_COLUMN,
        AGE_COLUMN,
    )
    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="self.failover.maxLeaderInactivitySeconds > self.failover.hungLeaderSeconds",
            message="spec.failover.maxLeaderInactivitySeconds must be above spec.failover.hungLeaderSeconds: else followers take over by "
            "themselves before the operator judges; raise the first, or lower the second",
            message_expression=formatted(
                "spec.failover.maxLeaderInactivitySeconds is %d, not above the %d of spec.failover.hungLeaderSeconds: followers would take "
                "over by themselves before the operator judges; raise the first, or lower the second",
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
            message="the tablespace herd is HerdDB's own: set spec.tablespaceName to another name",
        ),
        Rule(
            rule=f"!has(self.bootstrap) || {_SOURCES}.exists_one(named, named)",
            message="spec.bootstrap names no source, or two: set one of spec.bootstrap.checkpoint, spec.bootstrap.files and "
            "spec.bootstrap.archive.folder",
            message_expression=formatted(
                "spec.bootstrap names %s: set one of spec.bootstrap.checkpoint, spec.bootstrap.files and spec.bootstrap.archive.folder",
                f"{_SOURCES}.exists(named, named) ? 'two sources' : 'no source'",
            ),
            field_path=".bootstrap",
        ),
        Rule(
            rule=f"!has(self.bootstrap) || !has(self.bootstrap.target) || {_MOMENTS}.exists_one(named, named)",
            message="spec.bootstrap.target names no moment, or two: set one of its fields lsn, timestamp and latest, or remove it for the "
            "checkpoint's own",
            field_path=".bootstrap",
        ),
        Rule(
            rule="!has(self.bootstrap) || has(self.bootstrap.target) == has(self.bootstrap.archive)",
            message="spec.bootstrap.target and spec.bootstrap.archive go together: a moment is made from the archive of the log",
            message_expression=formatted(
                "spec.bootstrap.%s: a moment is made from the archive of the log",
                "has(self.bootstrap.target) ? 'target is set and spec.bootstrap.archive is not, set that to where the log is archived' : "
                "'archive is set and spec.bootstrap.target is not, set that to a moment, e.g. {latest: true}'",
            ),
            field_path=".bootstrap",
        ),
        *place_rules("bootstrap.archive", "!has(self.bootstrap) || !has(self.bootstrap.archive)"),
        *place_rules("bootstrap.files", "!has(self.bootstrap) || !has(self.bootstrap.files)"),
        Rule(
            rule=f"has(self.bootstrap) == has(oldSelf.bootstrap) && "
            f"(!has(self.bootstrap) || ({_unchanged_in_bootstrap('checkpoint')} && {_same_place('files', 'manifest')}))",
            message="spec.bootstrap can't change: it says what the tablespace was made from; create a new Tablespace",
            message_expression=formatted(
                "spec.bootstrap can't change from %s to %s: it says what the tablespace was made from; create a new Tablespace",
                _SHOWN_SOURCE.replace("SELF", "oldSelf"),
                _SHOWN_SOURCE.replace("SELF", "self"),
            ),
            field_path=".bootstrap",
        ),
        Rule(
            rule=f"!has(self.bootstrap) || !has(oldSelf.bootstrap) || "
            f"({_unchanged_in_bootstrap('target')} && {_same_place('archive', 'folder')})",
            message="spec.bootstrap.target and spec.bootstrap.archive can't change: they say what the tablespace was made from; create a "
            "new Tablespace",
            field_path=".bootstrap",
        ),
        *(
            Rule(
                rule=f"!has(self.bootstrap) || quantity(self.bootstrap.job.{field}).compareTo(quantity('{mebibytes}Mi')) >= 0",
                message=f"spec.bootstrap.job.{field} is too small: the process does not run in less than {mebibytes}Mi; raise it",
                field_path=".bootstrap",
            )
            for field, mebibytes in (("resources.memory", 1024), ("executors.memory", 256))
        ),
        *place_rules("log.archive.destination", "!has(self.log.archive)"),
        Rule(
            rule="!has(self.log.archive) || quantity(self.log.archive.resources.memory).compareTo(quantity('512Mi')) >= 0",
            message="spec.log.archive.resources.memory is too small: the process does not run in less than 512Mi; raise it",
            field_path=".log",
        ),
        five_fields("fullCheck", optional=True),
        *pods_rules("bootstrap.job.pods"),
        *pods_rules("log.archive.pods"),
        *NAME_RULES,
    )

    spec: TablespaceSpec
    status: TablespaceStatus | None = None

    @property
    def names(self) -> TablespaceNames:
        """The names of its objects."""
        return TablespaceNames(self.key)

    @property
    def sql_name(self) -> str:
        """The tablespace's name in SQL."""
        return self.spec.tablespace_name or self.metadata.name.replace("-", "_")

    @property
    def restore(self) -> RestoreStatus | None:
        """What the status says of its restore."""
        return self.status.restore if self.status is not None else None

    @property
    def mark(self) -> MadeMark | None:
        """What the metadata say of the tablespace that this resource made. That of another resource, copied with its manifest, is none."""
        match = _MARK.fullmatch(self.metadata.annotations.get(names.MADE_ANNOTATION, ""))
        return MadeMark(match[1], match[3] is not None) if match is not None and match[2] == self.metadata.uid else None

    @property
    def made_uuid(self) -> str | None:
        """The uuid of the tablespace that this resource made, also when its status was lost; None while it has made none."""
        told = self.status.uuid if self.status is not None else None
        return told or (self.mark.uuid if self.mark is not None else None)

    @property
    def is_restoring(self) -> bool:
        """Whether it is made from a checkpoint, and is not yet what that checkpoint is."""
        if self.spec.bootstrap is None or (self.restore is None and self.mark is not None and self.mark.filled):
            return False
        return self.restore is None or self.restore.phase != "Succeeded"
