"""What was seen of a Tablespace."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field

from herdkeeper.api import Checkpoint, HerdDBCluster, Tablespace
from herdkeeper.codecs.herddb.ledgers import LedgerList
from herdkeeper.herddb.log.identity import NOT_LOOKED_AT, LogIdentity, log_of
from herdkeeper.herddb.log.seen_archive import ArchiveObserved
from herdkeeper.herddb.log.seen_pins import LogPin, SeenStream
from herdkeeper.herddb.log.standing import Standing
from herdkeeper.herddb.state.cluster import NodeView, UserCredentials
from herdkeeper.herddb.state.tls import TlsUnusable, TlsUsable
from herdkeeper.herddb.tablespace.place import Place
from herdkeeper.herddb.tablespace.record import RecordAbsent, VersionedRecord
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.unknown import Unknown
from herdkeeper.spark.object_store import StoreUnusable
from herdkeeper.spark.work import CheckpointWork

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True)
class RestoreProgress:
    """Rows that are loaded for good, and rows of the checkpoint."""

    loaded: int
    rows: int


@dataclass(frozen=True)
class TablespaceObserved:
    """`herddb` is the HerdDBCluster that it refers to, None while there is none; `others` are the namespace's other Tablespaces.

    `zookeeper_address` and `ledgers_root` are None while the database has none yet. `log_left`: whether the ledger list of the tablespace
    that the status names is still there. `system_leader` leads HerdDB's own tablespace `herd`. `leaderships` counts, per SQL node, the
    tablespaces that it leads. `objects` has its connection Secret and its leader's Service, `taken` names what others made under the names
    of its objects (`Service flights-leader`), `credentials` are those of the database, None while they can't be read. While it is made from
    a checkpoint, `objects` has the Job too, `checkpoint` is the resource that it names, and `progress` what SQL says of the load,
    and `store_unusable` why the place of the checkpoint, or of the archive that a moment is made of, can't be opened or read; before a Job
    that makes one, `work` is what is done at the places of the namespace's Checkpoints.
    `checkpoints` are those that refer to it. `places` tells where SQL nodes run; it is only looked at while copies are added or taken away.
    `tls` is what the Secret of the database's `spec.tls` is good for, None when none is named.
    `log_pin` is the operator's pin on the log for Checkpoints, `disk_pin` that for what one disk alone holds, None while there is none.
    `archive` is what was seen of the log's archive.
    `ledgers` is the list of the log's ledgers, None while there is none. `streams` are the pins of streams of changes on it.
    `standings` tells how it stands with those who need the log: it follows from the rest, once, and plan, status and gauges go by it.
    `now` is when that was seen. `instance_id` is the INSTANCEID of the BookKeeper cluster that keeps the log. `readers_secret` is the
    Secret with the certificate of jobs that read the log, None where none is asked for.
    """

    herddb: HerdDBCluster | None
    zookeeper_address: str | None
    ledgers_root: str | None
    record: VersionedRecord | RecordAbsent | Unknown
    log_left: bool | Unknown
    system_leader: str | None
    leaderships: Mapping[str, int]
    nodes: Mapping[str, NodeView | Unknown]
    others: tuple[Tablespace, ...] = ()
    objects: Objects = field(default_factory=lambda: Objects({}))
    taken: tuple[str, ...] = ()
    credentials: UserCredentials | None = None
    checkpoint: Checkpoint | None = None
    progress: RestoreProgress | Unknown | None = None
    places: Mapping[str, Place] = field(default_factory=dict)
    checkpoints: tuple[Checkpoint, ...] = ()
    tls: TlsUsable | TlsUnusable | None = None
    log_pin: LogPin | Unknown | None = None
    disk_pin: LogPin | Unknown | None = None
    archive: ArchiveObserved = field(default_factory=ArchiveObserved)
    ledgers: LedgerList | Unknown | None = None
    streams: tuple[SeenStream, ...] | Unknown = ()
    standings: tuple[Standing, ...] | Unknown = ()
    now: datetime.datetime = EPOCH
    store_unusable: StoreUnusable | None = None
    work: tuple[CheckpointWork, ...] = ()
    instance_id: str | Unknown = NOT_LOOKED_AT
    readers_secret: str | None = None

    def log_of(self, uuid: str) -> LogIdentity | Unknown:
        """The log of the tablespace with this uuid."""
        return log_of(self.instance_id, uuid)
