"""Every name that the operator gives: objects, labels, annotations, ports, hosts, roots in ZooKeeper, bookie ids.

Names are defined only here, so that all code agrees. A released name never changes: claims, cookies and ledgers outlive the pods that made
them. docs/objects.md lists them.

Hosts end with `.svc`, without the cluster's domain: each pod's resolver appends it.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import ClassVar

MANAGER = "herdkeeper"
"""Field manager of everything applied, and the value of the managed-by label."""

MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
COMPONENT_LABEL = "app.kubernetes.io/name"
INSTANCE_LABEL = "app.kubernetes.io/instance"
OWNER_KIND_LABEL = "herdkeeper.io/owner-kind"
OWNER_NAME_LABEL = "herdkeeper.io/owner-name"
NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"
"""Name of a namespace, set by Kubernetes."""
REVISION_LABEL = "controller-revision-hash"
"""Revision of the template that a StatefulSet's pod was made from, set by Kubernetes."""
JOB_NAME_LABEL = "batch.kubernetes.io/job-name"
"""Name of the Job that a pod was made for, set by Kubernetes."""
BOOKIE_LABEL = "herdkeeper.io/bookie"
"""Number of the bookie that owns a StatefulSet, pod or claim."""

INTENT_ANNOTATION = "herdkeeper.io/intent"
"""Hash of what the operator last applied."""
CONFIG_ANNOTATION = "herdkeeper.io/config"
"""On a pod template: hash of the mounted configuration. A changed configuration rolls the pods."""
SCHEME_ANNOTATION = "prometheus.io/scheme"
"""On a SQL node's pod: `https` if its HTTP port speaks TLS. For scrapers; the operator itself never reads it."""
USERS_ANNOTATION = "herdkeeper.io/users"
"""On a SQL node's pod: revision of the users file. The kubelet refreshes the file when this changes."""
FOUNDED_ANNOTATION = "herdkeeper.io/founded"
"""On a ZooKeeper member's claim: "false" while new, "true" once its member has voted, "left" once the member left the ensemble."""
NEW, FOUNDED, LEFT = "false", "true", "left"
"""Values of FOUNDED_ANNOTATION."""
ENSEMBLE_ANNOTATION = "herdkeeper.io/ensemble"
"""On a ZooKeeper member's claim: the ensemble whose data it holds, by the uid of the founding resource."""
BOOKIE_ID_ANNOTATION = "herdkeeper.io/bookie-id"
"""On all claims of a bookie: the identity bound to them."""
KNOWN_BOOKIES_KEY = "known-bookies"
"""In the bookies' ConfigMap: the ids that have served."""
INSTANCE_ID_KEY = "instance-id"
"""In the same ConfigMap: the instance id of the metadata to which the volumes belong."""
FOUNDING_KEY = "founding"
"""In the members' ConfigMap: "true" while the ensemble is being founded, then "false"."""
DRAINING_ANNOTATION = "herdkeeper.io/draining"
"""On a bookie's journal claim: since when the operator keeps it read-only. A cancelled drain makes it writable again."""
RETIRING_ANNOTATION = "herdkeeper.io/retiring"
"""On the StatefulSet of an empty bookie: the operator scaled it to zero."""

PAUSED_ANNOTATION = "herdkeeper.io/paused"
"""On a resource, by the user: "true" stops every change by the operator. The status is still updated."""
PLAN_ANNOTATION = "herdkeeper.io/plan"
"""On a resource, by the user: "true" stops every change by the operator; status.plan shows what it would do."""
SWITCHOVER_ANNOTATION = "herdkeeper.io/switchover"
"""On a Tablespace, by the user: the SQL node that is to lead now. Answered once, then removed."""
SWITCHOVER_ANSWER_ANNOTATION = "herdkeeper.io/switchover-answer"
"""On a Tablespace, by the operator: result of the last request."""
FULL_CHECK_ANNOTATION = "herdkeeper.io/full-check"
"""On a Tablespace, by the user, with any value: run a full check now, which pauses writes. Answered once, then removed."""
FULL_CHECK_ANSWER_ANNOTATION = "herdkeeper.io/full-check-answer"
"""On a Tablespace, by the operator: result of the last request."""
SET_ASIDE_PREFIX = "set-aside.herdkeeper.io/"
"""On a Tablespace, followed by a SQL node: LSN of the verdict for which its files were set aside, see herddb/tablespace/verdicts.py."""
MADE_ANNOTATION = "herdkeeper.io/made"
"""On a Tablespace, by the operator: which tablespace it created, and whether that is filled. See MadeMark in api/tablespace.py."""
DID_NOT_LEAD_PREFIX = "did-not-lead.herdkeeper.io/"
"""On a HerdDBCluster, followed by a SQL node: the last leadership that it failed to take over, see herddb/leadership/take_over.py."""
RUN_NOW_ANNOTATION = "herdkeeper.io/run-now"
"""On a schedule, by the user, with any value: start a run now. Answered once, then removed."""
RUN_NOW_ANSWER_ANNOTATION = "herdkeeper.io/run-now-answer"
"""On a schedule, by the operator: result of the last request."""
ROLL_AUTHORITIES_ANNOTATION = "herdkeeper.io/roll-authorities"
"""On a ZooKeeperCluster with certificates, by the user, with any value: let other authorities take over. Answered once, then removed."""
ROLL_AUTHORITIES_ANSWER_ANNOTATION = "herdkeeper.io/roll-authorities-answer"
"""On a ZooKeeperCluster, by the operator: result of the last request."""
QUORUM_TLS_ANNOTATION = "herdkeeper.io/quorum-tls"
"""On a ZooKeeper member's pod that accepts plain text and TLS: whether it only accepts TLS from other members, or uses it, too."""
TLS_ACCEPTED, TLS_USED = "accepted", "used"
"""Values of QUORUM_TLS_ANNOTATION."""
TRUSTED_ANNOTATION = "herdkeeper.io/trusted"
"""On the pod of a ZooKeeper member with certificates: the SHA-256 of each authority that its client port trusts."""
PLAINTEXT_ANNOTATION = "herdkeeper.io/plaintext"
"""On the pod of a bookie with a certificate that accepts plain text, too: `accepted`."""
DUE_AT_ANNOTATION = "herdkeeper.io/due-at"
"""On a schedule's run: its scheduled time."""
REQUESTED_AT_ANNOTATION = "herdkeeper.io/requested-at"
"""On a requested run of a schedule: when it was requested."""
FINALIZER = "herdkeeper.io/delete-data"
"""On a resource whose data is deleted with it, whose log is kept, or that another resource uses."""

ZOOKEEPER_COMPONENT = "zookeeper"
BOOKIE_COMPONENT = "bookie"
AUTORECOVERY_COMPONENT = "autorecovery"
DRAIN_COMPONENT = "drain"
HERDDB_COMPONENT = "herddb"
CHECKPOINT_COMPONENT = "checkpoint"
AUDIT_COMPONENT = "audit"
RESTORE_COMPONENT = "restore"
EXECUTOR_COMPONENT = "executor"
REMOVAL_COMPONENT = "removal"
ARCHIVE_COMPONENT = "archive"
DRILL_COMPONENT = "restore-drill"
OPERATOR_COMPONENT = "herdkeeper-operator"
"""On the operator's pods, by the chart: the NetworkPolicies admit them by it."""
LEASE = "herdkeeper"
"""In the operator's namespace: its holder is the one process that acts."""

ZOOKEEPER_MOST_MEMBERS = 7
LOOPBACK = "127.0.0.1"
ZOOKEEPER_CLIENT_PORT = 2181
ZOOKEEPER_SECURE_PORT = 2281
"""Port for clients with certificates. It differs from 2181, so that an address shows which protocol it serves (secure_ensemble)."""
ZOOKEEPER_LOOPBACK_PORT = 2182
"""Port for a member's own readiness probe, in plain text, if clients need certificates.

It differs from 2181: a running member (3.9.5) binds a new address before it closes the old one. It can't change from all addresses to
loopback on one port."""
ZOOKEEPER_QUORUM_PORT = 2888
ZOOKEEPER_ELECTION_PORT = 3888
ZOOKEEPER_ADMIN_PORT = 8080
ZOOKEEPER_METRICS_PORT = 7070
"""ZooKeeper's default, 7000, is the SQL nodes' port here."""
BOOKIE_PORT = 3181
BOOKIE_ADMIN_PORT = 8080
HERDDB_SQL_PORT = 7000
HERDDB_HTTP_PORT = 9845
METRICS_PORT_NAME = "metrics"
"""Name of the container port with `/metrics`, in the pods of all servers."""

USERNAME_KEY = "username"
PASSWORD_KEY = "password"  # noqa: S105 - the key in the Secret, not a password
USERS_KEY = "users"
"""Keys of the credentials Secret. The operator derives `users`, HerdDB's users file, from the other two and the Secrets of `spec.users`."""
TOKEN_KEY = "token"  # noqa: S105 - as above
"""Key of the same Secret: the token that requests for changes present to a SQL node's HTTP port. Also of the Secret with the bookies'."""
CONNECTION_HOST_KEY, CONNECTION_PORT_KEY = "host", "port"
CONNECTION_URL_KEY, CONNECTION_LEADER_URL_KEY = "url", "leaderUrl"
CONNECTION_USER_KEY, CONNECTION_DATABASE_KEY = "user", "database"
"""Keys of a Tablespace's connection Secret, besides `password`. Clients read them, so they never change."""
CERTIFICATE_KEY, PRIVATE_KEY_KEY, AUTHORITIES_KEY = "tls.crt", "tls.key", "ca.crt"
"""Keys of a Secret of the type kubernetes.io/tls, as cert-manager writes it. With TLS, a connection Secret has the last one, too."""
ACCESS_KEY_ID_KEY, SECRET_ACCESS_KEY_KEY = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"
GOOGLE_KEY_KEY, AZURE_KEY_KEY = "GOOGLE_SERVICE_ACCOUNT_KEY", "AZURE_STORAGE_ACCOUNT_KEY"
"""Keys of the Secret that an object store is opened with: of S3, of Google, of Azure. They are obstore's names of variables."""
STORE_KEYS = {"s3": (ACCESS_KEY_ID_KEY, SECRET_ACCESS_KEY_KEY), "gs": (GOOGLE_KEY_KEY,), "az": (AZURE_KEY_KEY,)}
"""By the scheme of an object store's address the keys that its Secret must have."""
STORE_ENDPOINTS = {"s3": "AWS_ENDPOINT_URL", "gs": "GOOGLE_BASE_URL", "az": "AZURE_STORAGE_ENDPOINT"}
"""By the same the variable of those jobs that has the store's address."""
REGION_VARIABLE, STORAGE_ACCOUNT_VARIABLE = "AWS_REGION", "AZURE_STORAGE_ACCOUNT_NAME"
STORE_AUTHORITIES_VARIABLE = "OBJECT_STORE_AUTHORITIES"
"""Further variables of those jobs; the last one has certificates to trust."""
DESTINATION_VARIABLES = "DESTINATION_"
"""Prefix of these variables in a job. obstore reads those without it by itself, and would use one store's keys for another store."""
ARCHIVE_VARIABLES = "ARCHIVE_"
"""The same of the place with the log's archive, in a job that has another destination."""
IDENTITY_VARIABLE = "IDENTITY_FOLDER"
"""Variable with the folder of the certificate that jobs, and applications that read a log, present to servers."""
NODE_AUTHORITIES_VARIABLE = "HERDDB_AUTHORITIES"
"""Variable with the certificates by which a job verifies SQL nodes."""
SUPER_DIGEST_KEY = "super-digest"
"""In a ZooKeeperCluster's Secret, besides `password`: the digest for the members."""

TLS_VOLUME = "tls"
"""Volume with the certificate of a SQL node that serves TLS."""

DATA_CLAIM_PREFIX = "data-"
"""Prefix of a volume claim, before the pod's name, from a StatefulSet's template `data`."""

JDBC_TIMEOUTS = "client.network.timeout=10000&client.timeout=30000&client.operation.retry.delay=200"
"""Milliseconds. With HerdDB's defaults a client hangs: no network timeout, five minutes for a reply, a second between retries."""

ZONE_LABEL = "topology.kubernetes.io/zone"
"""Zone of a Kubernetes node, set by the provider."""
POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
"""Name of a StatefulSet's pod, set by Kubernetes."""

RACKS_KEY = "racks"
"""Key of the map in the racks ConfigMap."""

_ONE_SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*")
_TOKEN = re.compile(r"[a-z0-9]{6,16}")
_SECURE_MEMBER = re.compile(rf"(?P<name>[^.:]+)-{ZOOKEEPER_COMPONENT}-[0-9]\.[^:]+:{ZOOKEEPER_SECURE_PORT}")
_NUMBER = "([0-9]{1,99})"
"""A bookie's number in a name. Whoever writes to ZooKeeper can name a cookie, and Python refuses to read thousands of digits."""
_OF_A_BOOKIE = re.compile(rf"-{_NUMBER}(?:-ledgers-[1-9]|-[a-z0-9]{{6,16}})?")
"""What follows the common name of all bookies: a StatefulSet, one of its claims, or an identity."""
_CLAIM_OF_A_BOOKIE = re.compile(rf"-{_NUMBER}-(?:journal|ledgers(?:-[1-9])?)")
"""The same of a claim only: another one, such as a copy that somebody keeps, is no bookie's."""


@dataclass(frozen=True)
class ObjectKey:
    """Key of a namespaced object of a known kind."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def selector(component: str, instance: str) -> dict[str, str]:
    """Returns the labels that select the pods of one component of one resource. Immutable in StatefulSets, Deployments and Services."""
    return {COMPONENT_LABEL: component, INSTANCE_LABEL: instance}


def labels(component: str, owner_kind: str, owner_name: str) -> dict[str, str]:
    """Returns the labels of every object of one component of one resource."""
    return {
        **selector(component, owner_name),
        MANAGED_BY_LABEL: MANAGER,
        OWNER_KIND_LABEL: owner_kind,
        OWNER_NAME_LABEL: owner_name,
    }


def addresses(hosts: tuple[str, ...], port: int) -> str:
    """Returns a connection string: `host:port,host:port`."""
    return ",".join(f"{host}:{port}" for host in hosts)


def ledgers_root(bookkeeper: ObjectKey) -> str:
    """Returns the BookKeeperCluster's root in ZooKeeper. It never changes: cookies and clients' configurations have it."""
    return f"/{bookkeeper.namespace}/{bookkeeper.name}/ledgers"


def herd_root(herddb: ObjectKey) -> str:
    """Returns the HerdDBCluster's root in ZooKeeper."""
    return f"/{herddb.namespace}/{herddb.name}/herd"


def metadata_service_uri(zookeeper_address: str, root: str) -> str:
    """Returns the URI with which BookKeeper 4.18 connects. Unlike ZooKeeper's connection strings, it separates hosts by semicolons.

    `zookeeper_address` is `host:port,host:port`, `root` the result of ledgers_root().
    """
    return f"zk+hierarchical://{zookeeper_address.replace(',', ';')}{root}"


class _Suffixed:
    """The name of an object: the common prefix of the servers' objects, and a suffix."""

    def __init__(self, suffix: str) -> None:
        self._suffix = suffix

    def __get__(self, named: _ServerNames, _: type) -> str:
        return f"{named.servers}{self._suffix}"


@dataclass(frozen=True)
class _ServerNames:
    """Names that the servers of one cluster share. ConfigMap, PodDisruptionBudget and NetworkPolicy have the same name."""

    key: ObjectKey
    COMPONENT: ClassVar[str]

    @property
    def servers(self) -> str:
        """Common prefix of the cluster's object names."""
        return f"{self.key.name}-{self.COMPONENT}"

    config_map = _Suffixed("")
    """ConfigMap with the servers' configuration files."""
    disruption_budget = _Suffixed("")
    """PodDisruptionBudget of all servers together."""
    network_policy = _Suffixed("")


@dataclass(frozen=True)
class _StatefulSetNames(_ServerNames):
    """Names of servers that are replicas of one StatefulSet, numbered from 0."""

    stateful_set = _Suffixed("")
    client_service = _Suffixed("")
    """Service for clients inside the cluster: ready servers only."""

    def pod(self, number: int) -> str:
        """Pod of server `number`. For a SQL node also its id in HerdDB."""
        return f"{self.stateful_set}-{number}"

    def claim(self, number: int) -> str:
        """Volume claim of server `number`, as the StatefulSet's template `data` creates or adopts it."""
        return f"{DATA_CLAIM_PREFIX}{self.pod(number)}"


@dataclass(frozen=True)
class ZooKeeperNames(_StatefulSetNames):
    """Names of a ZooKeeperCluster's objects. Members are numbered from 0, server ids from 1."""

    COMPONENT = ZOOKEEPER_COMPONENT

    members_service = _Suffixed("-members")
    """Headless Service that gives each member its host name, ready or not."""
    reconfig_secret = _Suffixed("-reconfig")
    """Secret with the password that may change the membership."""
    authority_secret = _Suffixed("-authority")
    """Secret with the CA key for certificates of servers and clients. No pod mounts it."""
    quorum_authority_secret = _Suffixed("-quorum-authority")
    """Secret with the CA key for certificates that members present to each other. No pod mounts it."""
    operator_secret = _Suffixed("-operator")
    """Secret with the operator's own certificate. No pod mounts it."""
    clients_secret = _Suffixed("-clients")
    """Secret with the certificate of the members' client port."""
    members_secret = _Suffixed("-quorum")
    """Secret with the certificate that members present to each other."""

    @property
    def served_hosts(self) -> frozenset[str]:
        """Host names in the members' certificates: of each member, and of the Service."""
        namespace = f"{self.key.namespace}.svc"
        return frozenset({f"*.{self.members_service}.{namespace}", f"{self.client_service}.{namespace}"})

    def host(self, number: int) -> str:
        return f"{self.pod(number)}.{self.members_service}.{self.key.namespace}.svc"

    def address(self, replicas: int, port: int = ZOOKEEPER_CLIENT_PORT) -> str:
        """Connection string that lists the members one by one, as ZooKeeper clients should use it."""
        return addresses(tuple(self.host(number) for number in range(replicas)), port)

    def lists(self, zookeeper_address: str, ports: tuple[int, ...] = (ZOOKEEPER_CLIENT_PORT, ZOOKEEPER_SECURE_PORT)) -> bool:
        """Whether a connection string lists members of this ensemble only, each at one of these ports. A status may list anything."""
        hosts = tuple(self.host(number) for number in range(ZOOKEEPER_MOST_MEMBERS))
        return {member for port in ports for member in addresses(hosts, port).split(",")}.issuperset(zookeeper_address.split(","))


def may_be_an_object(name: str) -> bool:
    """Whether an object may have this name, which is then one segment of a path at the API server.

    `../../other/secrets/s` would be a Secret of the namespace `other`: the clients of Kubernetes quote no names of custom paths, and take
    `..` out of them.
    """
    return _ONE_SEGMENT.fullmatch(name) is not None


def ledgers_volume(volume: int) -> str:
    """Name of a bookie's ledger volume and of its mount folder. Volume 0 keeps the name from when it was the only one."""
    return "ledgers" if volume == 0 else f"ledgers-{volume}"


def secure_ensemble(zookeeper_address: str, namespace: str) -> ZooKeeperNames | None:
    """Returns the ensemble of this namespace that serves TLS at `host:port,host:port`, or None for plain text.

    An ensemble of another namespace does not count: a resource must not make the operator, or a pod, present a certificate there.
    """
    first = _SECURE_MEMBER.match(zookeeper_address)
    if first is None:
        return None
    named = ZooKeeperNames(ObjectKey(namespace, first["name"]))
    return named if named.lists(zookeeper_address, (ZOOKEEPER_SECURE_PORT,)) else None


def plain_address(zookeeper_address: str) -> str:
    """Returns where the same members serve plain text."""
    return zookeeper_address.replace(f":{ZOOKEEPER_SECURE_PORT}", f":{ZOOKEEPER_CLIENT_PORT}")


def operator_identity(zookeeper_address: str, namespace: str) -> ObjectKey | None:
    """Returns the Secret with the certificate that the operator presents at this address for a resource of this namespace, or None."""
    ensemble = secure_ensemble(zookeeper_address, namespace)
    return None if ensemble is None else ObjectKey(namespace, ensemble.operator_secret)


@dataclass(frozen=True)
class BookKeeperNames(_ServerNames):
    """Names of a BookKeeperCluster's objects. Bookies are numbered from 0; numbers are never reused."""

    COMPONENT = BOOKIE_COMPONENT

    service = _Suffixed("")
    """Headless Service that gives each bookie its host name, ready or not."""

    @property
    def autorecovery(self) -> str:
        """Deployment, ConfigMap and NetworkPolicy of autorecovery."""
        return f"{self.key.name}-autorecovery"

    @property
    def racks_config_map(self) -> str:
        """ConfigMap with the rack of each bookie, for processes that choose ensembles."""
        return f"{self.key.name}-racks"

    def stateful_set(self, number: int) -> str:
        """StatefulSet (one replica) of bookie `number`."""
        return f"{self.servers}-{number}"

    def pod(self, number: int) -> str:
        return f"{self.stateful_set(number)}-0"

    def journal_claim(self, number: int) -> str:
        return f"{self.stateful_set(number)}-journal"

    identity_secret = _Suffixed("-identity")
    """Secret with the certificate of bookies, autorecovery, drains and repairs, if the ensemble requires one."""
    readers_secret = _Suffixed("-readers")
    """Secret with the certificate of all other jobs, if bookies require one."""
    token_secret = _Suffixed("-token")
    """Secret with the token of the bookies' admin port."""

    def ledgers_claim(self, number: int, volume: int = 0) -> str:
        """Claim of a ledger volume of bookie `number`. Volume 0 is the first."""
        return f"{self.stateful_set(number)}-{ledgers_volume(volume)}"

    def host(self, number: int) -> str:
        return f"{self.pod(number)}.{self.service}.{self.key.namespace}.svc"

    def drain_round(self, number: int, round_number: int) -> str:
        """Name of a drain round's ConfigMap (what bookie `number` held) and of the Job that moves it."""
        return f"{self.stateful_set(number)}-drain-{round_number}"

    def retire_job(self, number: int) -> str:
        """Job that removes the identity of bookie `number`."""
        return f"{self.stateful_set(number)}-retire"

    def number_of(self, name: str) -> int | None:
        """Returns the number in a bookie's StatefulSet name, claim name or identity, or None."""
        return self._number(_OF_A_BOOKIE, name)

    def number_of_claim(self, name: str) -> int | None:
        """Returns the number in a bookie's claim name, or None."""
        return self._number(_CLAIM_OF_A_BOOKIE, name)

    def _number(self, pattern: re.Pattern[str], name: str) -> int | None:
        match = pattern.fullmatch(name.removeprefix(self.servers)) if name.startswith(self.servers) else None
        return None if match is None else int(match[1])

    def bookie_id(self, number: int, token: str) -> str:
        """Returns the identity of bookie `number` on one set of claims.

        `token` (6 to 16 small letters and digits) is random per set of claims: an empty disk under an old identity lost an acknowledged
        entry (apache/bookkeeper#4812). Raises ValueError for an invalid token.
        """
        if not _TOKEN.fullmatch(token):
            raise ValueError(f"token is {token!r}: it must be 6 to 16 small letters and digits")
        return f"{self.stateful_set(number)}-{token}"

    @property
    def ledgers_root(self) -> str:
        """The cluster's root in ZooKeeper."""
        return ledgers_root(self.key)


@dataclass(frozen=True)
class HerdDBNames(_StatefulSetNames):
    """Names of a HerdDBCluster's objects. A node's id in HerdDB is its pod's name."""

    COMPONENT = HERDDB_COMPONENT

    nodes_service = _Suffixed("-nodes")
    """Headless Service that gives each node its host name, ready or not."""
    generated_secret = _Suffixed("-credentials")
    """Secret with generated credentials of the administrator, if the resource names none."""
    users_secret = _Suffixed("-users")
    """Secret with HerdDB's users file, derived from the Secrets that the resource names."""
    identity_secret = _Suffixed("-identity")
    """Secret with the certificate of SQL nodes, if the ensemble requires one."""

    def host(self, number: int) -> str:
        return self.host_of(self.pod(number))

    def host_of(self, pod: str) -> str:
        """Host name of a node, by its pod's name."""
        return f"{pod}.{self.nodes_service}.{self.key.namespace}.svc"

    @staticmethod
    def node_at(address: str) -> str:
        """Returns the node of a host name, with or without a port."""
        return address.partition(".")[0]

    @property
    def sql_address(self) -> str:
        """host:port of any ready node inside the cluster."""
        return f"{self.client_service}.{self.key.namespace}.svc:{HERDDB_SQL_PORT}"

    @property
    def herd_root(self) -> str:
        """The cluster's root in ZooKeeper."""
        return herd_root(self.key)

    def jdbc_url(self, zookeeper_address: str) -> str:
        """JDBC URL that finds leaders through ZooKeeper."""
        return f"jdbc:herddb:zookeeper:{zookeeper_address}{self.herd_root}?{JDBC_TIMEOUTS}"


@dataclass(frozen=True)
class TablespaceNames:
    key: ObjectKey

    @property
    def leader_service(self) -> str:
        """Service of the leader's SQL port."""
        return f"{self.key.name}-leader"

    @property
    def leader_host(self) -> str:
        return f"{self.leader_service}.{self.key.namespace}.svc"

    @property
    def connection_secret(self) -> str:
        """Secret with all that a client needs."""
        return f"{self.key.name}-connection"

    @property
    def archive(self) -> str:
        """Deployment that archives the log."""
        return f"{self.key.name}-{ARCHIVE_COMPONENT}"

    def leader_jdbc_url(self, *, encrypted: bool) -> str:
        """JDBC URL of the leader's Service. HerdDB's driver learns only from the URL whether to use TLS.

        Few retries: on an open connection the driver keeps asking a node that no longer leads, a hundred times by default
        (HDBConnection.handleRetryError, HerdDB 0.29).
        """
        tls = "&client.server.ssl=true" if encrypted else ""
        return f"jdbc:herddb:server:{self.leader_host}:{HERDDB_SQL_PORT}?{JDBC_TIMEOUTS}&client.max.operation.retry.count=3{tls}"


DRIVER_ROLE = "herdkeeper-system-herdkeeper-driver"
"""The chart's ClusterRole for Spark drivers with executors, unless the setting names another one: the release's name and namespace do."""


def job_name(key: ObjectKey, component: str) -> str:
    """Name of a resource's Job for a component, and of its ServiceAccount, Role and NetworkPolicy. Its RoleBindings begin with it."""
    return f"{key.name}-{component}"


def scheduled_run(schedule: str, due: datetime.datetime) -> str:
    """Name of the Checkpoint or ReplicationAudit that a schedule makes for one of its times (whole minutes). Deterministic."""
    return f"{schedule}-{due.astimezone(datetime.UTC):%Y%m%d%H%M}"


def drill_job(schedule: str, due: datetime.datetime) -> str:
    """Name of the Job of a restore drill at one of its times."""
    return f"{scheduled_run(schedule, due)}-drill"


def drill_checkpoint(schedule: str, due: datetime.datetime) -> str:
    """Name of the Checkpoint of a past moment that is made for one drill. It is short, since its own objects' names contain it."""
    return f"{scheduled_run(schedule, due)}-d"


def requested_run(schedule: str, requested: datetime.datetime) -> str:
    """Name of a run that was requested. It has seconds, so it never equals a scheduled one."""
    return f"{schedule}-{requested.astimezone(datetime.UTC):%Y%m%d%H%M%S}"
