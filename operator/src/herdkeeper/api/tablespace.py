"""Tablespace: a replicated set of tables inside a HerdDBCluster."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from herdkeeper.api.resource import (
    AGE_COLUMN,
    NAME_RULES,
    READY_COLUMN,
    STATUS_COLUMN,
    DeletionPolicy,
    Model,
    PrinterColumn,
    Reference,
    Resource,
    Rule,
    Status,
    unchanged,
    unchanged_optional,
)

SqlName = Annotated[str, Field(max_length=63, pattern=r"^[a-z][a-z0-9_]{0,62}$")]


ResourceNode = Annotated[str, Field(max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]


class Failover(Model):
    """When a follower takes the leadership without being asked."""

    hung_leader_seconds: int = Field(
        5,
        ge=3,
        le=600,
        description="Seconds after which the operator replaces a leader of which neither it nor ZooKeeper hears: one that hangs, or whose "
        "machine is gone. A leader whose process has ended is replaced at once.",
    )
    max_leader_inactivity_seconds: int = Field(
        10,
        ge=5,
        le=600,
        description="Seconds without a heartbeat of the leader after which a follower takes over by itself, the operator running or not. "
        "Keep it above the longest local checkpoint, and above `hungLeaderSeconds`.",
    )


class TablespaceSpec(Model):
    """What the tablespace shall be."""

    herd_db_ref: Reference = Field(alias="herdDBRef", description="The HerdDBCluster that holds it. Immutable.")
    tablespace_name: SqlName | None = Field(
        None, description="Its name in SQL; the resource's name with `-` as `_` when absent. Immutable."
    )
    replicas: int = Field(2, ge=1, le=99, description="SQL nodes that hold a copy, the leader included.")
    failover: Failover = Field(Failover(), description="Automatic failover.")
    preferred_leader: ResourceNode | None = Field(
        None, description="The SQL node (`<HerdDBCluster>-herddb-<number>`) that shall lead it when `failback` is WhenHealthy."
    )
    failback: Literal["Never", "WhenHealthy"] = Field(
        "Never",
        description="Whether `preferredLeader` gets the leadership back after a failover or a switchover: WhenHealthy, once it is settled, "
        "caught up, and a minute has passed since the last change.",
    )
    deletion_policy: DeletionPolicy = Field("Retain", description="Whether the tablespace is dropped when this resource is deleted.")


class ReplicaStatus(Model):
    """A node's copy."""

    node: str = Field(description="The SQL node.")
    role: str = Field(description="leader, follower, booting, failed or unknown.")
    ledger_id: int | None = Field(None, description="Ledger of the last applied entry.")
    entry_id: int | None = Field(None, description="Last applied entry.")


class TablespaceStatus(Status):
    """What the tablespace is."""

    tablespace_name: str | None = Field(None, description="Its name in SQL.")
    uuid: str | None = Field(None, description="Its identity inside HerdDB.")
    leader: str | None = Field(None, description="The SQL node that leads.")
    replicas: tuple[ReplicaStatus, ...] = Field((), description="Each copy.")
    leader_service: str | None = Field(None, description="Service whose SQL port is the leader's.")
    connection_secret: str | None = Field(
        None, description="Secret with `host`, `port`, `url`, `leaderUrl`, `user`, `password` and `database`, for clients."
    )
    last_switchover: str | None = Field(None, description="What became of the last switchover that was requested.")
    ready_replicas: int | None = Field(None, description="Copies that are settled in their role.")


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
        PrinterColumn(name="Connection", type="string", json_path=".status.connectionSecret", priority=1),
        STATUS_COLUMN,
        AGE_COLUMN,
    )
    RULES: ClassVar[tuple[Rule, ...]] = (
        unchanged("herdDBRef", "SELF.herdDBRef.name", "a tablespace can't move between clusters; create a new Tablespace"),
        unchanged_optional("tablespaceName", "SELF.tablespaceName", "HerdDB can't rename a tablespace; create a new Tablespace"),
        Rule(
            scope="resource",
            rule="(has(self.spec.tablespaceName) ? self.spec.tablespaceName : self.metadata.name) != 'herd'",
            message="the tablespace herd is HerdDB's own: set spec.tablespaceName to another name",
        ),
        *NAME_RULES,
    )

    spec: TablespaceSpec
    status: TablespaceStatus | None = None

    @property
    def sql_name(self) -> str:
        """The tablespace's name in SQL."""
        return self.spec.tablespace_name or self.metadata.name.replace("-", "_")
