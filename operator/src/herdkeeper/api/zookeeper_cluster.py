"""ZooKeeperCluster: a ZooKeeper ensemble."""

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
    Model,
    ObjectName,
    PrinterColumn,
    Resource,
    Rule,
    Status,
    VolumeClaim,
    formatted,
    least_memory,
    unchanged_volume,
)
from herdkeeper.shared.names import ZOOKEEPER_CLIENT_PORT, ZOOKEEPER_SECURE_PORT, ZooKeeperNames
from herdkeeper.shared.quorum import SAFE_SIZE

LEAST_WITH_TLS = "256Mi"
"""A member with 40 TLS sessions used 152 MiB where the limit would have been 192Mi; in plain text, 103."""
NOBODY = "nobody"
"""`status.plaintextNeededBy` if plain text can be refused."""
MOST_PLAINTEXT_USERS = 1000
"""Characters of `status.plaintextNeededBy`: the API server must know how long it can be."""
_IN_ORDER = "the mode changes from Insecure to Permissive, and then to TLS (docs/how-to/certificates.md); revert it"


class GivenAuthority(Model):
    """An authority that the operator does not make itself."""

    secret_name: ObjectName = Field(
        description="A Secret of the type kubernetes.io/tls in the same namespace, as cert-manager writes it for a Certificate with "
        "`isCA: true`: `tls.crt` and `tls.key`, of the curve P-256. It must sign for nobody else. If another one is put there, it takes "
        "over in three steps, by itself.",
    )


class Security(Model):
    """How the servers of a stack authenticate each other and their clients."""

    mode: Literal["Insecure", "Permissive", "TLS"] = Field(
        "TLS",
        description="`TLS`: members, bookies and SQL nodes on this ensemble, jobs and the operator use certificates that the operator "
        "issues. Their connections are encrypted, and clients without a certificate are refused. `Insecure`: plain text for every "
        "client that reaches the ports. `Permissive`: both, to move a stack from `Insecure` to `TLS`: servers and jobs come to use "
        "certificates one after the other, and plain text is still accepted. It changes from `Insecure` by `Permissive` to `TLS` only.",
    )
    authority: GivenAuthority | None = Field(
        None,
        description="The authority that signs the certificates of members, bookies, SQL nodes, jobs and the operator. "
        "The operator makes one when absent.",
    )
    quorum_authority: GivenAuthority | None = Field(
        None,
        description="The authority that signs what members show one another. It must have another key than `authority`, and neither may "
        "have signed the other. The operator makes one when absent.",
    )


class ZooKeeperClusterSpec(Model):
    """The desired state of the ensemble."""

    replicas: int = Field(
        3,
        ge=1,
        le=7,
        description=(
            "Number of members. It must be odd: an even ensemble tolerates no more losses than the odd one below it. Members join "
            "and leave one by one."
        ),
    )
    allow_single_member: bool = Field(
        False,
        description="Whether the ensemble may shrink to one member. Its loss would stop everything, and its volume is the only copy.",
    )
    image: Image | None = Field(None, description="Image of the members; the operator's setting when absent.")
    storage: VolumeClaim = Field(VolumeClaim(size="5Gi"), description="Volume of each member (transaction log and snapshots).")
    resources: Compute = Field(Compute(cpu="100m", memory="512Mi"), description="CPU and memory of each member.")
    pods: Pods = Field(Pods(), description="Placement and metadata of the members' pods.")
    security: Security = Field(Security(), description="How the servers of this stack authenticate each other and their clients.")
    network_policy: NetworkPolicies = "Enabled"
    clients: NetworkPeers = Field(
        (),
        description="Pods that may connect to the client port (2181, or 2281 with TLS), besides the operator and its pods in this "
        "namespace: e.g. SQL clients that find leaders through ZooKeeper, readers of the log, bookies of another namespace. In "
        "plain text such a pod can write to ZooKeeper, and so take over the database: name only pods that you trust. With TLS it also "
        "needs a certificate.",
    )
    scrapers: NetworkPeers = Field((), description="Pods that may connect to the port with `/metrics` (7070).")
    config: ConfigLines = Field({}, description="More lines of zoo.cfg, e.g. `snapCount`. Keys that the operator owns are refused.")
    deletion_policy: DeletionPolicy = Field("Retain", description="What happens to the volumes when this resource is deleted.")


class ZooKeeperClusterStatus(Status):
    """The observed state of the ensemble."""

    address: str | None = Field(None, description="Connection string for clients inside the cluster.")
    ready_members: int | None = Field(None, description="Declared members that serve in the quorum.")
    voters: int | None = Field(None, description="Members that vote, according to the ensemble's membership.")
    leader: str | None = Field(None, description="Pod of the leading member.")
    authority_expires: str | None = Field(
        None,
        description="With certificates: when the first of the authorities that sign certificates expires (RFC 3339). "
        "Another one takes over when two thirds of its life are over.",
    )
    plaintext_needed_by: str | None = Field(
        None,
        max_length=MOST_PLAINTEXT_USERS,
        description="While members accept plain text beside certificates: what still needs it. `nobody`: `security.mode` can become `TLS`.",
    )
    founded: bool | None = Field(
        None, description="Whether all members have served once. From then on, an empty member joins without a vote."
    )


class ZooKeeperCluster(Resource):
    """A ZooKeeper ensemble."""

    KIND: ClassVar[str] = "ZooKeeperCluster"
    PLURAL: ClassVar[str] = "zookeeperclusters"
    SHORT_NAME: ClassVar[str] = "zkc"
    SUMMARY: ClassVar[str] = "A ZooKeeper ensemble: the metadata of BookKeeper and HerdDB."
    COLUMNS: ClassVar[tuple[PrinterColumn, ...]] = (
        READY_COLUMN,
        PrinterColumn(name="Members", type="integer", json_path=".status.readyMembers"),
        PrinterColumn(name="Leader", type="string", json_path=".status.leader"),
    )
    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="self.replicas % 2 == 1",
            message="spec.replicas must be odd (1, 3, 5, 7): an even ensemble tolerates no more losses than the odd one below it",
            message_expression=formatted(
                "spec.replicas is %d: an even ensemble tolerates no more losses than one of %d; set %d or %d",
                "self.replicas",
                "self.replicas - 1",
                "self.replicas - 1",
                "self.replicas + 1",
            ),
            field_path=".replicas",
        ),
        Rule(
            rule=f"self.replicas >= {SAFE_SIZE} || oldSelf.replicas < {SAFE_SIZE} || self.allowSingleMember",
            message=f"spec.replicas can't shrink below {SAFE_SIZE} unless spec.allowSingleMember is true: a single member is not an"
            f" ensemble",
            message_expression=formatted(
                "spec.replicas can't shrink from %d to %d: the loss of that member would stop everything, and its volume would be the only "
                f"copy; keep {SAFE_SIZE}, or set spec.allowSingleMember to true",
                "oldSelf.replicas",
                "self.replicas",
            ),
            field_path=".replicas",
        ),
        Rule(
            # An ensemble without an authority may have been founded in plain text, whatever its mode says: by an earlier version, or
            # before its resource was deleted and created again.
            scope="resource",
            rule="[oldSelf.spec.security.mode, self.spec.security.mode] in [['Insecure', 'Insecure'], ['Insecure', 'Permissive'], "
            "['Permissive', 'Permissive'], ['Permissive', 'TLS'], ['TLS', 'TLS']] || (oldSelf.spec.security.mode == 'TLS' && "
            "!(has(oldSelf.status) && has(oldSelf.status.authorityExpires)))",
            message=f"spec.security.mode can't change so: {_IN_ORDER}",
            message_expression=formatted(
                f"spec.security.mode can't change from %s to %s: {_IN_ORDER}", "oldSelf.spec.security.mode", "self.spec.security.mode"
            ),
            field_path=".spec.security.mode",
        ),
        Rule(
            scope="resource",
            rule="oldSelf.spec.security.mode != 'Permissive' || self.spec.security.mode != 'TLS' || "
            f"(has(oldSelf.status) && has(oldSelf.status.plaintextNeededBy) && oldSelf.status.plaintextNeededBy == '{NOBODY}')",
            message="spec.security.mode can't become TLS yet: status.plaintextNeededBy is not nobody",
            message_expression=formatted(
                "spec.security.mode can't become TLS yet, since plain text is still needed by %s; keep Permissive until "
                f"status.plaintextNeededBy is {NOBODY}",
                "has(oldSelf.status) && has(oldSelf.status.plaintextNeededBy) ? oldSelf.status.plaintextNeededBy : "
                "'servers that have not been looked at'",
            ),
            field_path=".spec.security.mode",
        ),
        unchanged_volume("storage", "ZooKeeperCluster"),
        least_memory("resources.memory", 192),
        Rule(
            rule=f"self.security.mode == 'Insecure' || quantity(self.resources.memory).compareTo(quantity('{LEAST_WITH_TLS}')) >= 0",
            message=f"spec.resources.memory is too small: a member with certificates needs {LEAST_WITH_TLS}; raise it",
            message_expression=formatted(
                f"spec.resources.memory is %s: a member with certificates needs {LEAST_WITH_TLS}; raise it", "self.resources.memory"
            ),
            field_path=".resources.memory",
        ),
        *pods_rules(),
        *NAME_RULES,
    )

    spec: ZooKeeperClusterSpec
    status: ZooKeeperClusterStatus | None = None

    @property
    def has_certificates(self) -> bool:
        return self.spec.security.mode != "Insecure"

    @property
    def accepts_plaintext(self) -> bool:
        """Whether members accept plain text, by the status: they do until nobody needs it any more."""
        return self.spec.security.mode == "Insecure" or (self.status is not None and self.status.plaintext_needed_by is not None)

    @property
    def client_port(self) -> int:
        """The port that every client of the declared mode may use."""
        return ZOOKEEPER_SECURE_PORT if self.spec.security.mode == "TLS" else ZOOKEEPER_CLIENT_PORT

    @property
    def address(self) -> str:
        """Connection string of the declared members."""
        return self.names.address(self.spec.replicas, self.client_port)

    @property
    def published_address(self) -> str | None:
        """Connection string of its status, or None. Other hosts than its members do not count: data is changed there."""
        known = self.status.address if self.status is not None else None
        return known if known is not None and self.names.lists(known) else None

    @property
    def names(self) -> ZooKeeperNames:
        return ZooKeeperNames(self.key)
