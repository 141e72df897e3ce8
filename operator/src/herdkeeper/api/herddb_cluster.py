"""HerdDBCluster: the SQL nodes whose leaders write the log to BookKeeper."""

from __future__ import annotations

from typing import ClassVar, Literal

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
    Instant,
    Model,
    ObjectName,
    PrinterColumn,
    Quantity,
    Reference,
    Resource,
    Rule,
    SecretReference,
    Status,
    VolumeClaim,
    formatted,
    least_memory,
    unchanged,
    unchanged_optional,
    unchanged_volume,
)
from herdkeeper.shared.names import HerdDBNames

LEAST_LEDGER_SIZE = "16Ki"


class LogLedgers(Model):
    """How the log is written to BookKeeper. An entry is on writeQuorum bookies, and ackQuorum of them acknowledge it."""

    ensemble_size: int = Field(3, ge=1, le=15, description="Bookies that a ledger is spread over (E).")
    write_quorum: int = Field(3, ge=1, le=15, description="Copies of each entry (Wq).")
    ack_quorum: int = Field(2, ge=1, le=15, description="Copies that are fsynced before a write is acknowledged (Aq).")
    max_size: Quantity = Field("256Mi", description="Bytes of log after which the leader opens the next ledger; at least 16Ki.")
    retention_hours: int = Field(
        48,
        ge=1,
        le=8_760_000,
        description="Hours that a ledger of the log is kept after its end. It is kept longer while a replica's disk lacks its entries. "
        "Two Checkpoints at one destination must be less than this apart: the later one is made from the earlier one and the log "
        "after it.",
    )


Plaintext = Literal["Refused", "Accepted"]


class Tls(Model):
    """How the SQL port is encrypted. The HTTP port gets the same certificate, and then never speaks plain text."""

    secret_name: ObjectName = Field(
        description="A Secret of the type kubernetes.io/tls in the same namespace, as cert-manager writes it: `tls.crt`, `tls.key` and "
        "`ca.crt`, the certificates that clients trust. The certificate is for all SQL nodes: "
        "`*.<name>-herddb-nodes.<namespace>.svc`. A renewed one is in use within two minutes, without a restart.",
    )
    plaintext: Plaintext = Field(
        "Refused",
        description="Whether SQL clients without TLS are served, too. To add TLS to a running cluster, begin with `Accepted`.",
    )


MOST_USERS = 32


class UserSecret(Model):
    """A user who may log in besides the administrator."""

    secret_name: ObjectName = Field(
        description="A Secret in the same namespace with `username` and `password`, as in the type kubernetes.io/basic-auth. A change "
        "takes effect on all nodes within about three minutes, without a restart.",
    )


class HerdDBClusterSpec(Model):
    """The desired state of the SQL nodes."""

    book_keeper_ref: Reference = Field(description="The BookKeeperCluster that keeps the log. Immutable.")
    replicas: int = Field(2, ge=1, le=99, description="Number of SQL nodes.")
    image: Image | None = Field(None, description="Image of the SQL nodes; the operator's setting when absent.")
    ledgers: LogLedgers = Field(LogLedgers(), description="How the log is replicated.")
    storage: VolumeClaim = Field(VolumeClaim(size="10Gi"), description="Volume of each SQL node: its local checkpoints.")
    resources: Compute = Field(Compute(cpu="200m", memory="1Gi"), description="CPU and memory of each SQL node.")
    pods: Pods = Field(Pods(), description="Placement and metadata of the SQL nodes' pods.")
    network_policy: NetworkPolicies = "Enabled"
    clients: NetworkPeers | None = Field(
        None,
        description="Pods that may connect to the SQL port (7000), besides the operator, the nodes and restores. Absent: any pod. "
        "Empty: no other pod.",
    )
    scrapers: NetworkPeers = Field(
        (), description="Pods that may connect to the HTTP port (9845), for `/metrics`, besides the operator and Checkpoints."
    )
    credentials_secret_ref: SecretReference | None = Field(
        None, description="A Secret with `username` and `password` of the administrator; one is generated when absent. Immutable."
    )
    users: tuple[UserSecret, ...] = Field(
        (),
        max_length=MOST_USERS,
        description="Users besides the administrator. HerdDB has no permissions: each user may do all that the administrator may. "
        "Removed users can't log in any more, and their connections are closed.",
    )
    tls: Tls | None = Field(
        None,
        description="Encrypts the SQL port, and with the same certificate the HTTP port. Absent: with `security.mode: TLS` of the "
        "ensemble, they are encrypted by the operator's Secret `<name>-herddb-identity` and refuse plain text; otherwise they are not "
        "encrypted. HerdDB's JDBC driver encrypts, but does not verify the server; Python's client does.",
    )
    config: ConfigLines = Field({}, description="More lines of server.properties. Keys that the operator owns are refused.")
    deletion_policy: DeletionPolicy = Field(
        "Retain", description="What happens to volumes, metadata and the generated Secret when this resource is deleted."
    )


class RelievedNode(Model):
    """A SQL node whose leaderships move away."""

    node: str = Field(description="The SQL node.")
    reason: str = Field(description="Why, as the end of a sentence.")


class HerdDBClusterStatus(Status):
    """The observed state of the SQL nodes."""

    nodes: int | None = Field(None, description="Existing SQL nodes, including those being removed.")
    relieved_nodes: tuple[RelievedNode, ...] = Field(
        (), description="SQL nodes that must lead nothing for now; their leaderships move away."
    )
    leaving_nodes: tuple[str, ...] = Field((), description="SQL nodes that are being removed; their replicas move to other nodes.")
    ready_nodes: int | None = Field(None, description="SQL nodes whose tablespaces are settled.")
    herd_root: str | None = Field(None, description="The cluster's root in ZooKeeper.")
    sql_address: str | None = Field(None, description="host:port of the SQL nodes inside the cluster.")
    jdbc_url: str | None = Field(
        None,
        description="JDBC URL that finds leaders through ZooKeeper. HerdDB's driver encrypts where the nodes do, but verifies no server.",
    )
    credentials_secret: str | None = Field(None, description="Secret with `username` and `password`.")
    users: tuple[str, ...] = Field((), description="Users who may log in on all SQL nodes, the administrator first.")
    users_revision: str | None = Field(None, description="Revision of the users file in use, as the nodes report it.")
    encrypted: bool | None = Field(None, description="`true` once every SQL node has started with TLS.")
    certificate_expires: Instant | None = Field(
        None,
        description="When the certificate of the SQL port expires (RFC 3339); absent while the port is not encrypted, or the certificate "
        "is unusable.",
    )
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
    )
    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="self.ledgers.writeQuorum <= self.ledgers.ensembleSize",
            message="spec.ledgers.writeQuorum must not exceed spec.ledgers.ensembleSize: lower writeQuorum or raise ensembleSize",
            message_expression=formatted(
                "spec.ledgers.writeQuorum is %d: an entry can't have more copies than its ledger has bookies (ensembleSize %d); "
                "lower writeQuorum or raise ensembleSize",
                "self.ledgers.writeQuorum",
                "self.ledgers.ensembleSize",
            ),
            field_path=".ledgers.writeQuorum",
        ),
        Rule(
            rule="self.ledgers.ackQuorum <= self.ledgers.writeQuorum",
            message="spec.ledgers.ackQuorum must not exceed spec.ledgers.writeQuorum: lower ackQuorum or raise writeQuorum",
            message_expression=formatted(
                "spec.ledgers.ackQuorum is %d: a write can't wait for more copies than are written (writeQuorum %d); "
                "lower ackQuorum or raise writeQuorum",
                "self.ledgers.ackQuorum",
                "self.ledgers.writeQuorum",
            ),
            field_path=".ledgers.ackQuorum",
        ),
        Rule(
            rule=" && ".join(f"self.ledgers.{size} == oldSelf.ledgers.{size}" for size in ("ensembleSize", "writeQuorum", "ackQuorum")),
            message="spec.ledgers can't change its quorums: ledgers written before would keep the old ones; create a new HerdDBCluster",
            message_expression=formatted(
                "spec.ledgers can't change from ensembleSize %d, writeQuorum %d, ackQuorum %d to %d, %d, %d: ledgers written before "
                "would keep the old ones, and rewriting them is not supported in this version; revert them, or create a new "
                "HerdDBCluster",
                *(f"{owner}.ledgers.{size}" for owner in ("oldSelf", "self") for size in ("ensembleSize", "writeQuorum", "ackQuorum")),
            ),
            field_path=".ledgers",
        ),
        unchanged("bookKeeperRef", "SELF.bookKeeperRef.name", "the log can't move; create a new HerdDBCluster"),
        Rule(
            rule="!has(self.users) || self.users.all(one, self.users.exists_one(other, other.secretName == one.secretName))",
            message="spec.users must name each Secret once: remove one of two entries with the same secretName",
            message_expression=formatted(
                "spec.users names the Secret %s more than once: remove one of its entries",
                "self.users.filter(one, !self.users.exists_one(other, other.secretName == one.secretName))[0].secretName",
            ),
            field_path=".users",
        ),
        unchanged_optional(
            "credentialsSecretRef",
            "SELF.credentialsSecretRef.name",
            "the login of a running database changes in its Secret; revert it, and change the Secret that status.credentialsSecret names",
        ),
        Rule(
            rule="has(oldSelf.tls) || !has(self.tls) || self.tls.plaintext == 'Accepted'",
            message="spec.tls.plaintext must be Accepted when TLS is added to a running cluster: connected drivers don't notice that a"
            " node now uses TLS; set spec.tls.plaintext to Refused once all clients have reconnected",
            field_path=".tls",
        ),
        Rule(
            rule="has(self.tls) || !has(oldSelf.tls) || oldSelf.tls.plaintext == 'Accepted'",
            message="spec.tls can't be removed while its plaintext is Refused: nodes restart one by one, and clients could not connect"
            " to all of them; set spec.tls.plaintext to Accepted first, and remove spec.tls once all nodes have it",
        ),
        unchanged_volume("storage", "HerdDBCluster"),
        least_memory("resources.memory", 512),
        Rule(
            rule=f"quantity(self.ledgers.maxSize).compareTo(quantity('{LEAST_LEDGER_SIZE}')) >= 0",
            message="spec.ledgers.maxSize is too small: each ledger costs ZooKeeper and the bookies metadata; set at least "
            f"{LEAST_LEDGER_SIZE}",
            message_expression=formatted(
                f"spec.ledgers.maxSize is %s: each ledger costs ZooKeeper and the bookies metadata; set at least {LEAST_LEDGER_SIZE}",
                "self.ledgers.maxSize",
            ),
            field_path=".ledgers.maxSize",
        ),
        *pods_rules(),
        *NAME_RULES,
    )

    spec: HerdDBClusterSpec
    status: HerdDBClusterStatus | None = None

    @property
    def names(self) -> HerdDBNames:
        return HerdDBNames(self.key)

    @property
    def known_nodes(self) -> tuple[str, ...]:
        """The declared SQL nodes and those above them that still exist, by number."""
        there = (self.status.nodes or 0) if self.status is not None else 0
        return tuple(map(self.names.pod, range(max(self.spec.replicas, there))))
