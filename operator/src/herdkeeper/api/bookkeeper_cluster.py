"""BookKeeperCluster: bookies, their volumes and autorecovery."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from herdkeeper.api.network import NetworkPeers, NetworkPolicies
from herdkeeper.api.pods import Pods, pods_rules
from herdkeeper.api.resource import (
    NAME_RULES,
    READY_COLUMN,
    Compute,
    ConfigLines,
    DeletionPolicy,
    Image,
    Model,
    PrinterColumn,
    Quantity,
    Reference,
    Resource,
    Rule,
    Status,
    VolumeClaim,
    formatted,
    least_memory,
    refusal,
    unchanged,
    unchanged_class,
    unchanged_optional,
)
from herdkeeper.shared.names import BookKeeperNames

MOST = 2**31 - 1
"""BookKeeper reads some numbers of its configuration into 32 bits, and does not start with larger ones."""


class AutoRecovery(Model):
    """The daemon that copies the entries of lost bookies to other bookies."""

    enabled: bool = Field(True, description="Whether lost replicas are copied elsewhere. The operator never disables it.")
    replicas: int = Field(1, ge=1, le=16, description="Daemon pods; one of them is the elected auditor.")
    lost_bookie_recovery_delay_seconds: int = Field(
        300,
        ge=30,
        le=MOST,
        description="Seconds that a bookie may be away before its entries are copied. If this is shorter than a restart, every restart "
        "starts copying and fences open ledgers.",
    )
    bytes_per_second: Quantity | None = Field(
        None, description="Maximum bytes per second that each daemon copies, e.g. `50Mi`; unlimited when absent."
    )
    resources: Compute = Field(Compute(cpu="100m", memory="384Mi"), description="CPU and memory of each daemon.")


class Compaction(Model):
    """When entry logs with little live data are rewritten."""

    threshold_percent: int = Field(
        ge=0, le=99, description="Entry logs are rewritten if a smaller percentage of them is still needed; 0: never."
    )
    interval_seconds: int = Field(ge=60, le=MOST, description="Seconds between two passes. Not below garbageCollection.intervalSeconds.")


class LedgerVolumes(VolumeClaim):
    """The ledger volumes of each bookie."""

    volumes: int = Field(
        1,
        ge=1,
        le=8,
        description="Ledger volumes of each bookie, each of this size and with a ledger directory of its own; ledgers are spread over them "
        "by their ids. Immutable: which directories a bookie has is part of its identity.",
    )


class GarbageCollection(Model):
    """How the space of deleted ledgers is reclaimed."""

    interval_seconds: int = Field(60, ge=1, le=MOST, description="Seconds between two searches for deleted ledgers.")
    minor_compaction: Compaction = Field(
        Compaction(threshold_percent=20, interval_seconds=3600), description="The frequent pass, for entry logs that are nearly empty."
    )
    major_compaction: Compaction = Field(
        Compaction(threshold_percent=80, interval_seconds=86400),
        description="The rare pass; its threshold and interval are the larger ones.",
    )


class JournalSync(Model):
    """How many writes share one fsync of the journal. Every entry is always fsynced before it is acknowledged."""

    max_group_wait_milliseconds: int = Field(2, ge=0, le=1000, description="Maximum milliseconds that a write waits for others.")
    buffered_writes: Quantity = Field("512Ki", description="Bytes of waiting writes that trigger an fsync.")
    buffered_entries: int = Field(
        0, ge=0, le=MOST, description="Number of waiting entries that triggers an fsync; 0: only bytes and time count."
    )
    flush_when_queue_empty: bool = Field(False, description="Whether to fsync as soon as no further write waits: less delay, more fsyncs.")


class Placement(Model):
    """How the copies of an entry are spread over racks."""

    rack_label: str = Field(
        "topology.kubernetes.io/zone",
        min_length=1,
        max_length=317,
        description="Node label whose value is a bookie's rack. A node without the label is a rack of its own. Bookies in several "
        "`topology.kubernetes.io/region`s are spread over regions first.",
    )
    min_racks_per_write_quorum: int = Field(2, ge=1, le=15, description="Racks over which the copies of each entry are spread.")
    enforced: bool = Field(
        False,
        description="Whether to refuse a ledger that can't be spread over so many racks. Otherwise it is spread as well as possible.",
    )


class BookKeeperClusterSpec(Model):
    """The desired state of the bookies."""

    zoo_keeper_ref: Reference | None = Field(
        None, description="The ZooKeeperCluster that keeps the metadata. Immutable. Exactly one of zooKeeperRef and zooKeeperAddress."
    )
    zoo_keeper_address: str | None = Field(
        None,
        max_length=1024,
        # a path, `?` or `#` in it would lead bookies, by their URI, to another cluster's root
        pattern=r"^[A-Za-z0-9._-]+:[0-9]+(,[A-Za-z0-9._-]+:[0-9]+){0,14}$",
        json_schema_extra=refusal("%s names no ensemble: give host:port of each member, with commas between, e.g. zk-0:2181,zk-1:2181"),
        description="An external ZooKeeper ensemble, `host:port,host:port`, 15 members at most. Immutable. Exactly one of zooKeeperRef and "
        "zooKeeperAddress.",
    )
    bookies: int = Field(
        4,
        ge=1,
        le=999,
        description="Number of bookies. Use one more than the largest ensemble, so that a lost bookie can be replaced. If you lower "
        "it, the bookies with the highest numbers are drained: their ledgers are copied to the others and read back before anything "
        "is deleted.",
    )
    drain: tuple[Annotated[int, Field(ge=0, le=99999)], ...] = Field(
        (),
        max_length=100,
        description="Bookies to drain, by number. New bookies replace them up to `bookies`. Removing a number cancels its drain, as "
        "long as the bookie's identity exists.",
    )
    image: Image | None = Field(None, description="Image of bookies and autorecovery; the operator's setting when absent.")
    journal: VolumeClaim = Field(
        VolumeClaim(size="5Gi"),
        description="Journal volume of each bookie, fsynced before an entry is acknowledged. It can grow.",
    )
    ledgers: LedgerVolumes = Field(
        LedgerVolumes(size="20Gi"), description="Ledger volumes of each bookie: entry logs and their index. They can grow."
    )
    garbage_collection: GarbageCollection = Field(GarbageCollection(), description="How the space of deleted ledgers is reclaimed.")
    journal_sync: JournalSync = Field(JournalSync(), description="How many writes share one fsync of the journal.")
    resources: Compute = Field(Compute(cpu="200m", memory="768Mi"), description="CPU and memory of each bookie.")
    pods: Pods = Field(Pods(), description="Placement and metadata of the pods of bookies, autorecovery and drain Jobs.")
    network_policy: NetworkPolicies = "Enabled"
    clients: NetworkPeers = Field(
        (),
        description="Pods that may connect to the bookies' port (3181), besides the operator's pods in this namespace: e.g. programs "
        "with BookKeeper's client, readers of the log.",
    )
    scrapers: NetworkPeers = Field(
        (),
        description="Pods that may connect to the HTTP port (8080) of bookies and autorecovery, for `/metrics`, besides the operator. "
        "Orders at that port need the bookies' token. An image of 0.1.0 takes them from everybody: name only pods that you trust there.",
    )
    auto_recovery: AutoRecovery = Field(AutoRecovery(), description="Re-replication of lost entries.")
    placement: Placement = Field(Placement(), description="How the copies of an entry are spread over racks and regions.")
    roll_without_spare_bookie: bool = Field(
        False,
        description="Whether to restart bookies even if no spare one is writable, beyond the largest ensemble of an open ledger. With "
        "placement.enforced, also if too few racks remain. Writes then wait, or are acknowledged with fewer copies, during a restart.",
    )
    config: ConfigLines = Field(
        {},
        description="More lines of bk_server.conf, e.g. `numAddWorkerThreads`. Keys that the operator owns are refused. Keys that"
        " BookKeeper does not know have no effect; the condition ConfigKnown names them.",
    )
    deletion_policy: DeletionPolicy = Field("Retain", description="What happens to volumes and metadata when this resource is deleted.")


class DrainStatus(Model):
    """The drain of a bookie."""

    ledgers: int | None = Field(None, description="Ledgers whose metadata names the bookie; absent while unknown.")
    open_ledgers: int | None = Field(None, description="Those of them whose writer still uses the bookie.")
    bytes: int | None = Field(None, description="Estimated bytes of closed ledgers that are still to be moved.")
    seconds_left: int | None = Field(None, description="Estimate from the bytes moved so far; absent until some have moved.")
    message: str = Field(description="The next step, or what the drain waits for and how to unblock it.")


class BookieStatus(Model):
    """One bookie."""

    number: int = Field(description="Number in the names of its objects, never reused.")
    bookie_id: str = Field(description="Its identity in BookKeeper's metadata, bound to its volumes.")
    state: str = Field(description="Writable, ReadOnly, Starting, Away, Stopped (permanently), or Lost (one of its disks is gone).")
    ledgers_left: int | None = Field(None, description="Number of ledgers that still name a lost bookie.")
    rack: str | None = Field(None, description="The rack that BookKeeper's clients assume.")
    region: str | None = Field(None, description="The region of its node.")
    drain: DrainStatus | None = Field(None, description="Present while the bookie drains.")


class PlacementCheck(Model):
    """Ledgers whose copies are in fewer racks than placement.minRacksPerWriteQuorum requires and writable bookies allow."""

    checked_at: str = Field(description="When the metadata of all ledgers was read for the check (RFC 3339).")
    next_check_at: str = Field(
        description="Earliest time of the next check: after ten minutes, or a hundred times as long as the last read took."
    )
    ledgers: int | None = Field(None, description="Number of ledgers; absent while unknown.")
    first_ledgers: tuple[int, ...] = Field((), description="The ten with the lowest ids.")
    message: str | None = Field(None, description="Why it is unknown.")


class BookKeeperClusterStatus(Status):
    """The observed state of the bookies."""

    zoo_keeper_address: str | None = Field(None, description="Connection string of the metadata's ensemble.")
    accepts_plaintext: bool | None = Field(
        None, description="Whether bookies with certificates accept plain text, too; absent if they don't, or have none."
    )
    ledgers_root: str | None = Field(None, description="The cluster's root in ZooKeeper.")
    metadata_service_uri: str | None = Field(None, description="The URI that BookKeeper clients connect to.")
    instance_id: str | None = Field(None, description="Instance id that BookKeeper assigned when the cluster was formatted.")
    ready_bookies: int | None = Field(
        None, description="Bookies that are registered as writable and whose process runs; absent while ZooKeeper can't be read."
    )
    auditor: str | None = Field(None, description="The elected auditor.")
    under_replicated: bool | None = Field(None, description="Whether the auditor knows of under-replicated ledgers; absent while unknown.")
    placement_policy: str | None = Field(None, description="RackAware, or RegionAware if the bookies are in several regions.")
    under_replicated_ledgers: int | None = Field(None, description="Ledgers that the auditor marked; counted up to 1000.")
    under_replicated_since: str | None = Field(None, description="When the oldest of them was marked (RFC 3339).")
    replication_enabled: bool | None = Field(
        None, description="Whether autorecovery is enabled in BookKeeper's metadata. BookKeeper's own tools can disable it."
    )
    placement_check: PlacementCheck | None = Field(
        None, description="Result of the last placement check; absent before the first check, or if there is only one rack."
    )
    next_bookie: int | None = Field(None, description="The number of the next new bookie. Numbers are never reused.")
    bookies: tuple[BookieStatus, ...] = Field((), description="Each bookie.")


_GC = "self.garbageCollection"
_VOLUMES_WHY = "a bookie starts only with the directories that its identity names; revert it, or create a new BookKeeperCluster"


class BookKeeperCluster(Resource):
    """A BookKeeper cluster."""

    KIND: ClassVar[str] = "BookKeeperCluster"
    PLURAL: ClassVar[str] = "bookkeeperclusters"
    SHORT_NAME: ClassVar[str] = "bkc"
    SUMMARY: ClassVar[str] = "A BookKeeper cluster: bookies that keep the replicated log, and autorecovery."
    COLUMNS: ClassVar[tuple[PrinterColumn, ...]] = (
        READY_COLUMN,
        PrinterColumn(name="Bookies", type="integer", json_path=".status.readyBookies"),
        PrinterColumn(name="Under-replicated", type="boolean", json_path=".status.underReplicated"),
        PrinterColumn(name="Auditor", type="string", json_path=".status.auditor", priority=1),
    )
    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="has(self.zooKeeperRef) != has(self.zooKeeperAddress)",
            message="set exactly one of spec.zooKeeperRef and spec.zooKeeperAddress",
            message_expression=formatted(
                "spec.zooKeeperRef and spec.zooKeeperAddress are both %s",
                "has(self.zooKeeperRef) ? 'set: remove one of them' : 'absent: set one of them'",
            ),
            field_path=".zooKeeperRef",
        ),
        Rule(
            rule=f"{_GC}.minorCompaction.thresholdPercent == 0 || {_GC}.majorCompaction.thresholdPercent == 0"
            f" || ({_GC}.minorCompaction.thresholdPercent < {_GC}.majorCompaction.thresholdPercent"
            f" && {_GC}.minorCompaction.intervalSeconds < {_GC}.majorCompaction.intervalSeconds)",
            message="spec.garbageCollection.minorCompaction must have a smaller threshold and a smaller interval than majorCompaction: "
            "no bookie starts otherwise; lower it, or disable one of them with thresholdPercent 0",
            message_expression=formatted(
                "spec.garbageCollection.minorCompaction has thresholdPercent %d and intervalSeconds %d, and majorCompaction has %d and "
                "%d: no bookie starts unless the minor one has less of both; lower them, or disable one of the two with thresholdPercent 0",
                *(f"{_GC}.{one}Compaction.{field}" for one in ("minor", "major") for field in ("thresholdPercent", "intervalSeconds")),
            ),
            field_path=".garbageCollection.minorCompaction",
        ),
        Rule(
            rule=f"{_GC}.intervalSeconds <= {_GC}.minorCompaction.intervalSeconds"
            f" && {_GC}.intervalSeconds <= {_GC}.majorCompaction.intervalSeconds",
            message="spec.garbageCollection.intervalSeconds exceeds an interval of the compactions: no bookie would start; lower it",
            message_expression=formatted(
                "spec.garbageCollection.intervalSeconds is %d: no bookie starts if it exceeds the compactions' intervals (%d and "
                "%d); lower it",
                f"{_GC}.intervalSeconds",
                f"{_GC}.minorCompaction.intervalSeconds",
                f"{_GC}.majorCompaction.intervalSeconds",
            ),
            field_path=".garbageCollection.intervalSeconds",
        ),
        unchanged_optional("zooKeeperRef", "SELF.zooKeeperRef.name", "the metadata can't move; create a new BookKeeperCluster"),
        unchanged_optional("zooKeeperAddress", "SELF.zooKeeperAddress", "the metadata can't move; create a new BookKeeperCluster"),
        unchanged_class("journal", "BookKeeperCluster"),
        unchanged_class("ledgers", "BookKeeperCluster"),
        unchanged("ledgers.volumes", "SELF.ledgers.volumes", _VOLUMES_WHY),
        least_memory("resources.memory", 512),
        least_memory("autoRecovery.resources.memory", 256),
        *pods_rules(),
        *NAME_RULES,
    )

    spec: BookKeeperClusterSpec
    status: BookKeeperClusterStatus | None = None

    @property
    def names(self) -> BookKeeperNames:
        return BookKeeperNames(self.key)
