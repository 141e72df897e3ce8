"""A Tablespace: what is declared, and what was observed."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field

from herdkeeper.api import Checkpoint, HerdDBCluster, Tablespace
from herdkeeper.codecs.herddb.ledgers import LedgerList
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.herddb.log.identity import NOT_LOOKED_AT, LogIdentity, log_of
from herdkeeper.herddb.log.seen import ArchiveObserved, LogPin, SeenStream, archived_at
from herdkeeper.herddb.log.standing import Standing
from herdkeeper.herddb.state.cluster import NodeTablespace, NodeView, Place, RecordAbsent, UserCredentials, VersionedRecord
from herdkeeper.herddb.state.log_store import LogStore
from herdkeeper.herddb.state.tls import TlsUsable
from herdkeeper.herddb.tablespace.judged_nodes import Declared
from herdkeeper.protocol.log_archive import ArchivedRange
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.unknown import Unknown
from herdkeeper.spark.work import CheckpointWork

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True)
class RestoreProgress:
    """Committed rows, and rows of the checkpoint."""

    loaded: int
    rows: int


@dataclass(frozen=True)
class TablespaceObserved:
    """A Tablespace, and what was observed of it.

    `herddb` is the HerdDBCluster that it refers to, or None. `others` are the namespace's other Tablespaces, `unread_others` those of the
    same HerdDBCluster whose spec can't be read. `log` is the location of the database's log, None until it has one. `log_left`: whether the
    ledger list of the tablespace in the status still exists. `system_leader` leads HerdDB's own tablespace `herd`. `leaderships` counts the
    tablespaces that each SQL node leads. `objects` has its connection Secret and its leader's Service. `taken` names foreign objects with
    its objects' names (`Service flights-leader`). `credentials` are the database's, None if unreadable.

    During a restore, `objects` has the Job, too. `checkpoint` is then the named resource, and `progress` the load's progress by SQL.
    `store_unusable` is why the place of the checkpoint or the archive can't be used. `work` is the activity at the places of the
    namespace's Checkpoints, before a Job that makes a checkpoint.

    `checkpoints` are those that refer to it, `without_files` the names of those whose volume claim is gone. `places` tells where SQL nodes
    run, only while replicas are added or removed. `tls` is the verdict on the Secret of the database's SQL port, or None. `log_pin` is the
    operator's log pin for Checkpoints, `disk_pin` that for rows on a single disk, each or None. `archive` is the observation of the log's
    archive. `ledgers` is the log's ledger list, or None. `streams` are the pins of change streams. `standings` is computed once from the
    rest, for plan, status and gauges. `now` is the time of the observation. `instance_id` is the INSTANCEID of the log's BookKeeper
    cluster.
    """

    tablespace: Tablespace
    herddb: HerdDBCluster | None
    log: LogStore | None
    record: VersionedRecord | RecordAbsent | Unknown
    log_left: bool | Unknown
    system_leader: str | None
    leaderships: Mapping[str, int]
    nodes: Mapping[str, NodeView | Unknown]
    others: tuple[Tablespace, ...] = ()
    unread_others: tuple[Declared, ...] = ()
    objects: Objects = field(default_factory=lambda: Objects({}))
    taken: tuple[str, ...] = ()
    credentials: UserCredentials | None = None
    checkpoint: Checkpoint | None = None
    progress: RestoreProgress | Unknown | None = None
    places: Mapping[str, Place] = field(default_factory=dict)
    checkpoints: tuple[Checkpoint, ...] = ()
    without_files: frozenset[str] = frozenset()
    tls: TlsUsable | Problem | None = None
    log_pin: LogPin | Unknown | None = None
    disk_pin: LogPin | Unknown | None = None
    archive: ArchiveObserved = field(default_factory=ArchiveObserved)
    ledgers: LedgerList | Unknown | None = None
    streams: tuple[SeenStream, ...] | Unknown = ()
    standings: tuple[Standing, ...] | Unknown = ()
    now: datetime.datetime = EPOCH
    store_unusable: Problem | None = None
    work: tuple[CheckpointWork, ...] = ()
    instance_id: str | Unknown = NOT_LOOKED_AT

    @property
    def known_record(self) -> TablespaceRecord | None:
        """HerdDB's record. None if it is absent or unknown."""
        return self.record.record if isinstance(self.record, VersionedRecord) else None

    def replica_on(self, node: str) -> NodeTablespace | Unknown | None:
        """Returns a node's view of the recorded tablespace, or None. For a moment it may tell of an earlier one of its name."""
        view, record = self.nodes.get(node, Unknown(f"{node} is not Ready")), self.known_record
        if isinstance(view, Unknown):
            return view
        return next((entry for entry in view if record is not None and entry.uuid == record.uuid), None)

    @property
    def archived(self) -> ArchivedRange | None:
        """What is archived at the declared place. None if nothing is known to be, or no archive is declared."""
        declared = self.tablespace.spec.log.archive
        return None if declared is None else archived_at(self.archive, declared.destination.place)

    @property
    def with_files(self) -> tuple[Checkpoint, ...]:
        """Returns the Checkpoints on whose files log and archive may rest."""
        return tuple(each for each in self.checkpoints if each.metadata.name not in self.without_files)

    def log_of(self, uuid: str) -> LogIdentity | Unknown:
        return log_of(self.instance_id, uuid)
