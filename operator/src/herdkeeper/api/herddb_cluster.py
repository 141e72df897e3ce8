"""HerdDBCluster: the SQL nodes whose leaders write the log to BookKeeper."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from herdkeeper.api.resource import (
    AGE_COLUMN,
    READY_COLUMN,
    STATUS_COLUMN,
    Compute,
    DeletionPolicy,
    Model,
    PrinterColumn,
    Quantity,
    Reference,
    Resource,
    Rule,
    Status,
    VolumeClaim,
)


class LogLedgers(Model):
    """How the log is written to BookKeeper. An entry is on writeQuorum bookies and acknowledged by ackQuorum of them."""

    ensemble_size: int = Field(3, ge=1, le=15, description="Bookies that a ledger is spread over (E).")
    write_quorum: int = Field(3, ge=1, le=15, description="Copies of each entry (Wq).")
    ack_quorum: int = Field(2, ge=1, le=15, description="Copies that are fsynced before a write is acknowledged (Aq).")
    max_size: Quantity = Field("256Mi", description="Bytes of log after which the leader opens the next ledger.")
    retention_hours: int = Field(
        48,
        ge=1,
        description="Hours after which HerdDB drops ledgers that its checkpoint no longer needs. Checkpoints read the log from its beginning in this version.",
    )


class HerdDBClusterSpec(Model):
    """What the SQL nodes shall be."""

    book_keeper_ref: Reference = Field(description="The BookKeeperCluster that keeps the log. Immutable.")
    replicas: int = Field(2, ge=1, le=99, description="SQL nodes.")
    image: str = Field("herdkeeper/herddb:0.1.0", min_length=1, description="Image of the SQL nodes.")
    ledgers: LogLedgers = Field(LogLedgers(), description="How the log is replicated.")
    storage: VolumeClaim = Field(VolumeClaim(size="10Gi"), description="Volume of each SQL node: its local checkpoints.")
    resources: Compute = Field(Compute(cpu="200m", memory="1Gi"), description="CPU and memory of each SQL node.")
    credentials_secret_ref: Reference | None = Field(
        None, description="A Secret with `username` and `password` of the administrator; one is generated when absent. Immutable."
    )
    config: dict[str, str] = Field({}, description="More lines of server.properties. Keys that the operator owns are refused.")
    deletion_policy: DeletionPolicy = Field(
        "Retain", description="What happens to volumes, metadata and the generated Secret when this resource is deleted."
    )


class HerdDBClusterStatus(Status):
    """What the SQL nodes are."""

    ready_nodes: int | None = Field(None, description="SQL nodes whose tablespaces are settled.")
    herd_root: str | None = Field(None, description="The cluster's own root in ZooKeeper.")
    sql_address: str | None = Field(None, description="host:port of the SQL nodes inside the cluster.")
    jdbc_url: str | None = Field(None, description="JDBC URL that finds leaders through ZooKeeper.")
    credentials_secret: str | None = Field(None, description="Secret with `username` and `password`.")
    tablespaces: tuple[str, ...] = Field((), description="Tablespaces that the nodes report.")


class HerdDBCluster(Resource):
    """A HerdDB cluster."""

    KIND: ClassVar[str] = "HerdDBCluster"
    PLURAL: ClassVar[str] = "herddbclusters"
    SHORT_NAME: ClassVar[str] = "hdb"
    SUMMARY: ClassVar[str] = "A replicated SQL database: HerdDB nodes whose leaders write their log to BookKeeper."
    COLUMNS: ClassVar[tuple[PrinterColumn, ...]] = (
        READY_COLUMN,
        PrinterColumn(name="Nodes", type="integer", json_path=".status.readyNodes"),
        PrinterColumn(name="E", type="integer", json_path=".spec.ledgers.ensembleSize", priority=1),
        PrinterColumn(name="Wq", type="integer", json_path=".spec.ledgers.writeQuorum", priority=1),
        PrinterColumn(name="Aq", type="integer", json_path=".spec.ledgers.ackQuorum", priority=1),
        STATUS_COLUMN,
        AGE_COLUMN,
    )
    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="self.ledgers.writeQuorum <= self.ledgers.ensembleSize",
            message="spec.ledgers.writeQuorum must not exceed spec.ledgers.ensembleSize: an entry can't have more copies than its ledger has bookies; lower writeQuorum or raise ensembleSize",
            field_path=".ledgers.writeQuorum",
        ),
        Rule(
            rule="self.ledgers.ackQuorum <= self.ledgers.writeQuorum",
            message="spec.ledgers.ackQuorum must not exceed spec.ledgers.writeQuorum: a write can't wait for more copies than are written; lower ackQuorum or raise writeQuorum",
            field_path=".ledgers.ackQuorum",
        ),
        Rule(
            rule="self.bookKeeperRef == oldSelf.bookKeeperRef",
            message="spec.bookKeeperRef is immutable: the log can't move; create a new HerdDBCluster",
            field_path=".bookKeeperRef",
        ),
        Rule(
            rule="has(self.credentialsSecretRef) == has(oldSelf.credentialsSecretRef) && (!has(self.credentialsSecretRef) || self.credentialsSecretRef == oldSelf.credentialsSecretRef)",
            message="spec.credentialsSecretRef is immutable in this version: a changed password would lock clients out of running nodes",
            field_path=".credentialsSecretRef",
        ),
    )

    spec: HerdDBClusterSpec
    status: HerdDBClusterStatus | None = None
