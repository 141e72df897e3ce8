"""Every name that the operator gives: objects, labels, annotations, ports, hosts, roots in ZooKeeper, bookie ids.

Names are made here and nowhere else, so that whoever builds an object, looks for it or connects to it agrees. A name is never changed
once released: claims, cookies and ledgers outlive the pods that made them. docs/objects.md lists them.

Hosts end with `.svc`, not with the cluster's domain: each pod's resolver appends that one, whatever it is.
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
"""On each namespace, by Kubernetes: its name."""
REVISION_LABEL = "controller-revision-hash"
"""On a pod of a StatefulSet, by Kubernetes: the revision of the template that it was made from."""
BOOKIE_LABEL = "herdkeeper.io/bookie"
"""Number of the bookie that a StatefulSet, pod or claim belongs to."""

INTENT_ANNOTATION = "herdkeeper.io/intent"
"""Hash of what the operator last applied."""
CONFIG_ANNOTATION = "herdkeeper.io/config"
"""On a pod template: hash of the mounted configuration, so that a changed configuration rolls the pods."""
USERS_ANNOTATION = "herdkeeper.io/users"
"""On the pod of a SQL node: the revision of the users file that the kubelet was asked to bring at once."""
FOUNDED_ANNOTATION = "herdkeeper.io/founded"
"""On a ZooKeeper member's claim: "false" while new, "true" once its member has voted, "left" since its member left the ensemble."""
NEW, FOUNDED, LEFT = "false", "true", "left"
"""Values of FOUNDED_ANNOTATION."""
ENSEMBLE_ANNOTATION = "herdkeeper.io/ensemble"
"""On a ZooKeeper member's claim: which ensemble's data it holds, by the uid of the resource that founded it."""
BOOKIE_ID_ANNOTATION = "herdkeeper.io/bookie-id"
"""On all claims of a bookie: the identity that is bound to them."""
KNOWN_BOOKIES_KEY = "known-bookies"
"""In the bookies' ConfigMap: the ids that served."""
INSTANCE_ID_KEY = "instance-id"
"""In the same ConfigMap: the id of the metadata that the volumes belong to."""
FOUNDING_KEY = "founding"
"""In the ConfigMap of an ensemble's members: "true" while it is being founded, "false" since."""
DRAINING_ANNOTATION = "herdkeeper.io/draining"
"""On the journal claim of a bookie, since when the operator keeps it read-only: it makes it writable again when the drain is taken back."""
RETIRING_ANNOTATION = "herdkeeper.io/retiring"
"""On the StatefulSet of a bookie that holds nothing any more: the operator scaled it to zero, and no failure did."""

PAUSED_ANNOTATION = "herdkeeper.io/paused"
"""On a resource, by the user: "true" stops every change by the operator; the status is still kept."""
PLAN_ANNOTATION = "herdkeeper.io/plan"
"""On a resource, by the user: "true" stops every change by the operator, and status.plan shows what it would do."""
SWITCHOVER_ANNOTATION = "herdkeeper.io/switchover"
"""On a Tablespace, by the user: the SQL node that shall lead it now. Answered once, then taken off."""
SWITCHOVER_ANSWER_ANNOTATION = "herdkeeper.io/switchover-answer"
"""On a Tablespace, by the operator: what became of the last request."""
FULL_CHECK_ANNOTATION = "herdkeeper.io/full-check"
"""On a Tablespace, by the user, with any value: have HerdDB check all tables now, for which writes stop. Answered once, then taken off."""
FULL_CHECK_ANSWER_ANNOTATION = "herdkeeper.io/full-check-answer"
"""On a Tablespace, by the operator: what became of the last request."""
SET_ASIDE_PREFIX = "set-aside.herdkeeper.io/"
"""Of a Tablespace, followed by a SQL node's name: the LSN of the verdict for which the node's copy was moved aside, see
herddb/tablespace/verdicts.py."""
MADE_ANNOTATION = "herdkeeper.io/made"
"""On a Tablespace, by the operator: which tablespace it made, and whether that is filled. See MadeMark in api/tablespace.py."""
DID_NOT_LEAD_PREFIX = "did-not-lead.herdkeeper.io/"
"""Of a HerdDBCluster, followed by a SQL node's name: which leadership the node was given last and did not take over, see
herddb/leadership/take_over.py."""
RUN_NOW_ANNOTATION = "herdkeeper.io/run-now"
"""On a schedule, by the user, with any value: make a run now. Answered once, then taken off."""
RUN_NOW_ANSWER_ANNOTATION = "herdkeeper.io/run-now-answer"
"""On a schedule, by the operator: what became of the last request."""
DUE_AT_ANNOTATION = "herdkeeper.io/due-at"
"""On a run that a schedule made: the time of the schedule that it is for."""
REQUESTED_AT_ANNOTATION = "herdkeeper.io/requested-at"
"""On a run that a schedule made since somebody asked for it: when."""
FINALIZER = "herdkeeper.io/delete-data"
"""On a resource with deletionPolicy Delete only."""

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
"""On the operator's own pods, by the chart: the NetworkPolicies let them in by it."""

ZOOKEEPER_MOST_MEMBERS = 7
LOOPBACK = "127.0.0.1"
ZOOKEEPER_CLIENT_PORT = 2181
ZOOKEEPER_SECURE_PORT = 2281
"""Of clients with certificates. Not 2181: an address tells by it what is spoken there (secure_ensemble)."""
ZOOKEEPER_LOOPBACK_PORT = 2182
"""Of a member's own readiness probe, in plain text, where clients need certificates. Not 2181: a running member (3.9.5) binds the new
address before it closes the old one, so it can't go from all addresses to the loopback address under one number."""
ZOOKEEPER_QUORUM_PORT = 2888
ZOOKEEPER_ELECTION_PORT = 3888
ZOOKEEPER_ADMIN_PORT = 8080
ZOOKEEPER_METRICS_PORT = 7070
"""ZooKeeper's own default is 7000, which is the SQL nodes' port here."""
BOOKIE_PORT = 3181
BOOKIE_ADMIN_PORT = 8080
HERDDB_SQL_PORT = 7000
HERDDB_HTTP_PORT = 9845
METRICS_PORT_NAME = "metrics"
"""Of the container port with `/metrics`, in the pods of all servers."""

USERNAME_KEY = "username"
PASSWORD_KEY = "password"  # noqa: S105 - the key in the Secret, not a password
USERS_KEY = "users"
"""Keys of the credentials Secret. `users` is HerdDB's users file, derived by the operator from the other two, and from the Secrets of
`spec.users`."""
TOKEN_KEY = "token"  # noqa: S105 - as above
"""Key of the same Secret: what a request that changes something must show to a SQL node's HTTP port."""
CONNECTION_HOST_KEY, CONNECTION_PORT_KEY = "host", "port"
CONNECTION_URL_KEY, CONNECTION_LEADER_URL_KEY = "url", "leaderUrl"
CONNECTION_USER_KEY, CONNECTION_DATABASE_KEY = "user", "database"
"""Keys of a Tablespace's connection Secret, beside `password`. Clients read them: never changed."""
CERTIFICATE_KEY, PRIVATE_KEY_KEY, AUTHORITIES_KEY = "tls.crt", "tls.key", "ca.crt"
"""Keys of a Secret of the type kubernetes.io/tls, as cert-manager writes it. The last is in a connection Secret, too, if there is TLS."""
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
"""Before the names of these variables in a job. obstore reads variables by itself, but none with this name: it would take the keys of one
store for another one that has none."""
IDENTITY_VARIABLE = "IDENTITY_FOLDER"
"""The variable of jobs, and of applications that read a log, that names the folder with the certificate by which servers know them."""
ARCHIVE_VARIABLES = "ARCHIVE_"
"""The same of the place with the log's archive, in a job that has another destination."""
SUPER_DIGEST_KEY = "super-digest"
"""Beside `password` in the Secret of a ZooKeeperCluster: what the members get of it."""

TLS_VOLUME = "tls"
"""In the pod of a SQL node that serves TLS: the volume with its certificate."""

DATA_CLAIM_PREFIX = "data-"
"""Before the name of a pod: its volume claim, by a StatefulSet's template `data`."""

JDBC_TIMEOUTS = "client.network.timeout=10000&client.timeout=30000&client.operation.retry.delay=200"
"""Milliseconds. HerdDB's defaults let a client hang: no network timeout at all, five minutes for a reply, a second between retries
(HerdDB 0.29)."""

ZONE_LABEL = "topology.kubernetes.io/zone"
"""On each Kubernetes node, by the provider: the zone that it stands in."""
POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
"""On each pod of a StatefulSet, by Kubernetes: its own name."""

RACKS_KEY = "racks"
"""The key of the map in the ConfigMap of racks."""

_TOKEN = re.compile(r"[a-z0-9]{6,16}")
_SECURE_MEMBER = re.compile(rf"(?P<name>[^.:]+)-{ZOOKEEPER_COMPONENT}-[0-9]\.[^:]+:{ZOOKEEPER_SECURE_PORT}")
_OF_A_BOOKIE = re.compile(r"-(\d+)(?:-ledgers-[1-9]|-[a-z0-9]{6,16})?")
"""Behind the name of all bookies: a StatefulSet, one of its claims, or an identity."""


@dataclass(frozen=True)
class ObjectKey:
    """A namespaced object. Which kind it is, its holder knows."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def selector(component: str, instance: str) -> dict[str, str]:
    """The labels that select the pods of one component of one resource. Immutable in StatefulSets, Deployments and Services."""
    return {COMPONENT_LABEL: component, INSTANCE_LABEL: instance}


def labels(component: str, owner_kind: str, owner_name: str) -> dict[str, str]:
    """The labels that every object of one component of one resource carries."""
    return {
        **selector(component, owner_name),
        MANAGED_BY_LABEL: MANAGER,
        OWNER_KIND_LABEL: owner_kind,
        OWNER_NAME_LABEL: owner_name,
    }


def addresses(hosts: tuple[str, ...], port: int) -> str:
    """A connection string: `host:port,host:port`."""
    return ",".join(f"{host}:{port}" for host in hosts)


def ledgers_root(bookkeeper: ObjectKey) -> str:
    """The BookKeeperCluster's own root in ZooKeeper. Part of the cookies and of every client's configuration: never changes."""
    return f"/{bookkeeper.namespace}/{bookkeeper.name}/ledgers"


def herd_root(herddb: ObjectKey) -> str:
    """The HerdDBCluster's own root in ZooKeeper."""
    return f"/{herddb.namespace}/{herddb.name}/herd"


def metadata_service_uri(zookeeper_address: str, root: str) -> str:
    """What BookKeeper 4.18 connects with. Its list of hosts is separated by semicolons, unlike ZooKeeper's own connection strings.

    `zookeeper_address` is `host:port,host:port`, `root` what ledgers_root() answers.
    """
    return f"zk+hierarchical://{zookeeper_address.replace(',', ';')}{root}"


@dataclass(frozen=True)
class _ServerNames:
    """The names of what the servers of one cluster share: ConfigMap, PodDisruptionBudget and NetworkPolicy all have the same."""

    key: ObjectKey
    COMPONENT: ClassVar[str]

    @property
    def servers(self) -> str:
        """What all names of the cluster's objects begin with."""
        return f"{self.key.name}-{self.COMPONENT}"

    @property
    def config_map(self) -> str:
        """ConfigMap with the servers' configuration files."""
        return self.servers

    @property
    def disruption_budget(self) -> str:
        """PodDisruptionBudget of all servers together."""
        return self.servers

    @property
    def network_policy(self) -> str:
        """NetworkPolicy of the servers."""
        return self.servers


@dataclass(frozen=True)
class _StatefulSetNames(_ServerNames):
    """The names of servers that are the replicas of one StatefulSet, numbered from 0."""

    @property
    def stateful_set(self) -> str:
        """StatefulSet."""
        return self.servers

    @property
    def client_service(self) -> str:
        """Service that clients inside the cluster connect to: ready servers only."""
        return self.servers

    def pod(self, number: int) -> str:
        """Pod of server `number`; of a SQL node also its id in HerdDB."""
        return f"{self.stateful_set}-{number}"

    def claim(self, number: int) -> str:
        """Volume claim of server `number`: the name that the StatefulSet's template `data` gives it, or adopts."""
        return f"{DATA_CLAIM_PREFIX}{self.pod(number)}"


@dataclass(frozen=True)
class ZooKeeperNames(_StatefulSetNames):
    """The names of a ZooKeeperCluster's objects. Members are numbered from 0, their server ids from 1."""

    COMPONENT = ZOOKEEPER_COMPONENT

    @property
    def members_service(self) -> str:
        """Headless Service that gives each member its host name, ready or not."""
        return f"{self.stateful_set}-members"

    @property
    def reconfig_secret(self) -> str:
        """Secret with the password that may change the membership."""
        return f"{self.stateful_set}-reconfig"

    @property
    def authority_secret(self) -> str:
        """Secret with the key that signs the certificates of servers and their clients. No pod mounts it."""
        return f"{self.stateful_set}-authority"

    @property
    def quorum_authority_secret(self) -> str:
        """Secret with the key that signs the certificate that members show each other. No pod mounts it."""
        return f"{self.stateful_set}-quorum-authority"

    @property
    def operator_secret(self) -> str:
        """Secret with the operator's own certificate. No pod mounts it."""
        return f"{self.stateful_set}-operator"

    @property
    def clients_secret(self) -> str:
        """Secret with the certificate of the members' client port."""
        return f"{self.stateful_set}-clients"

    @property
    def members_secret(self) -> str:
        """Secret with the certificate that members show each other."""
        return f"{self.stateful_set}-quorum"

    @property
    def served_hosts(self) -> frozenset[str]:
        """The host names under which members serve, in certificates: of each one, and of the Service."""
        namespace = f"{self.key.namespace}.svc"
        return frozenset({f"*.{self.members_service}.{namespace}", f"{self.client_service}.{namespace}"})

    def host(self, number: int) -> str:
        """Host name of member `number`."""
        return f"{self.pod(number)}.{self.members_service}.{self.key.namespace}.svc"

    def address(self, replicas: int, port: int = ZOOKEEPER_CLIENT_PORT) -> str:
        """Connection string for clients that know members one by one, as every ZooKeeper client should."""
        return addresses(tuple(self.host(number) for number in range(replicas)), port)


def ledgers_volume(volume: int) -> str:
    """Name of a bookie's ledger volume in its pod, and of the folder where it is mounted: of the first one as it was when there was one."""
    return "ledgers" if volume == 0 else f"ledgers-{volume}"


def secure_ensemble(zookeeper_address: str, namespace: str) -> ZooKeeperNames | None:
    """The ensemble of this namespace whose port for certificates `host:port,host:port` is; None where plain text is spoken.

    An ensemble of another namespace is none: a resource must not have the operator, or a pod, show a certificate there.
    """
    members = zookeeper_address.split(",")
    first = _SECURE_MEMBER.fullmatch(members[0])
    if first is None:
        return None
    named = ZooKeeperNames(ObjectKey(namespace, first["name"]))
    known = {f"{named.host(number)}:{ZOOKEEPER_SECURE_PORT}" for number in range(ZOOKEEPER_MOST_MEMBERS)}
    return named if known.issuperset(members) else None


def operator_identity(zookeeper_address: str, namespace: str) -> ObjectKey | None:
    """The Secret with the certificate that the operator shows at this address, on behalf of a resource in this namespace; None: none."""
    ensemble = secure_ensemble(zookeeper_address, namespace)
    return None if ensemble is None else ObjectKey(namespace, ensemble.operator_secret)


@dataclass(frozen=True)
class BookKeeperNames(_ServerNames):
    """The names of a BookKeeperCluster's objects. Bookies are numbered from 0, once, and numbers are never reused."""

    COMPONENT = BOOKIE_COMPONENT

    @property
    def service(self) -> str:
        """Headless Service that gives each bookie its host name, ready or not."""
        return self.servers

    @property
    def autorecovery(self) -> str:
        """Deployment, ConfigMap and NetworkPolicy of autorecovery."""
        return f"{self.key.name}-autorecovery"

    @property
    def racks_config_map(self) -> str:
        """ConfigMap with the rack of each bookie, for whoever chooses ensembles."""
        return f"{self.key.name}-racks"

    def stateful_set(self, number: int) -> str:
        """StatefulSet (one replica) of bookie `number`."""
        return f"{self.servers}-{number}"

    def pod(self, number: int) -> str:
        """Pod of bookie `number`."""
        return f"{self.stateful_set(number)}-0"

    def journal_claim(self, number: int) -> str:
        """Journal volume claim of bookie `number`."""
        return f"{self.stateful_set(number)}-journal"

    @property
    def identity_secret(self) -> str:
        """Secret with the certificate of bookies and autorecovery, where the ensemble asks for one."""
        return f"{self.servers}-identity"

    @property
    def readers_secret(self) -> str:
        """Secret with the certificate of jobs that read the log, where bookies ask for one."""
        return f"{self.servers}-readers"

    def ledgers_claim(self, number: int, volume: int = 0) -> str:
        """Claim of a ledger volume of bookie `number`: its first, or another one (from 1)."""
        return f"{self.stateful_set(number)}-{ledgers_volume(volume)}"

    def host(self, number: int) -> str:
        """Host name of bookie `number`."""
        return f"{self.pod(number)}.{self.service}.{self.key.namespace}.svc"

    def drain_round(self, number: int, round_number: int) -> str:
        """ConfigMap with what bookie `number` held before a round of its drain, and the Job that moves it."""
        return f"{self.stateful_set(number)}-drain-{round_number}"

    def retire_job(self, number: int) -> str:
        """Job that removes the identity of bookie `number`."""
        return f"{self.stateful_set(number)}-retire"

    def number_of(self, name: str) -> int | None:
        """The number in the name of a bookie's StatefulSet or claim, or in its identity; None when it is another name."""
        match = _OF_A_BOOKIE.fullmatch(name.removeprefix(self.servers)) if name.startswith(self.servers) else None
        return None if match is None else int(match[1])

    def bookie_id(self, number: int, token: str) -> str:
        """The identity of bookie `number` on one set of claims.

        `token` (6 to 16 small letters and digits) is random for each set of claims: a fresh disk under an old identity lost an
        acknowledged entry (apache/bookkeeper#4812). ValueError for another token.
        """
        if not _TOKEN.fullmatch(token):
            raise ValueError(f"token is {token!r}: it must be 6 to 16 small letters and digits")
        return f"{self.stateful_set(number)}-{token}"

    @property
    def ledgers_root(self) -> str:
        """The cluster's own root in ZooKeeper."""
        return ledgers_root(self.key)


@dataclass(frozen=True)
class HerdDBNames(_StatefulSetNames):
    """The names of a HerdDBCluster's objects. A node's id in HerdDB is its pod's name."""

    COMPONENT = HERDDB_COMPONENT

    @property
    def nodes_service(self) -> str:
        """Headless Service that gives each node its host name, ready or not."""
        return f"{self.stateful_set}-nodes"

    @property
    def generated_secret(self) -> str:
        """Secret with the administrator's credentials, when the resource names none."""
        return f"{self.stateful_set}-credentials"

    @property
    def users_secret(self) -> str:
        """Secret with HerdDB's users file, derived from the Secrets that the resource names."""
        return f"{self.stateful_set}-users"

    @property
    def identity_secret(self) -> str:
        """Secret with the certificate of SQL nodes, where the ensemble asks for one."""
        return f"{self.servers}-identity"

    def host(self, number: int) -> str:
        """Host name of node `number`."""
        return self.host_of(self.pod(number))

    def host_of(self, pod: str) -> str:
        """Host name of a node by its pod's name."""
        return f"{pod}.{self.nodes_service}.{self.key.namespace}.svc"

    @staticmethod
    def node_at(address: str) -> str:
        """The node whose host name, with or without a port, this is."""
        return address.partition(".")[0]

    @property
    def sql_address(self) -> str:
        """host:port of any ready node inside the cluster."""
        return f"{self.client_service}.{self.key.namespace}.svc:{HERDDB_SQL_PORT}"

    @property
    def herd_root(self) -> str:
        """The cluster's own root in ZooKeeper."""
        return herd_root(self.key)

    def jdbc_url(self, zookeeper_address: str) -> str:
        """JDBC URL that finds the leaders through ZooKeeper."""
        return f"jdbc:herddb:zookeeper:{zookeeper_address}{self.herd_root}?{JDBC_TIMEOUTS}"


@dataclass(frozen=True)
class TablespaceNames:
    """The names of a Tablespace's objects."""

    key: ObjectKey

    @property
    def leader_service(self) -> str:
        """Service of the SQL port of whoever leads."""
        return f"{self.key.name}-leader"

    @property
    def leader_host(self) -> str:
        """Host name of whoever leads."""
        return f"{self.leader_service}.{self.key.namespace}.svc"

    @property
    def connection_secret(self) -> str:
        """Secret with all that a client needs."""
        return f"{self.key.name}-connection"

    @property
    def archive(self) -> str:
        """Deployment that archives its log."""
        return f"{self.key.name}-{ARCHIVE_COMPONENT}"

    def leader_jdbc_url(self, *, encrypted: bool) -> str:
        """JDBC URL of the leader's Service; HerdDB's driver asks nobody but the URL whether that speaks TLS.

        Few retries: on a connection that is open already the driver asks a node that no longer leads again and again, a hundred times by
        its default (HDBConnection.handleRetryError, HerdDB 0.29).
        """
        tls = "&client.server.ssl=true" if encrypted else ""
        return f"jdbc:herddb:server:{self.leader_host}:{HERDDB_SQL_PORT}?{JDBC_TIMEOUTS}&client.max.operation.retry.count=3{tls}"


def job_name(key: ObjectKey, component: str) -> str:
    """The Job that a resource has for a component; also its ServiceAccount, Role, RoleBinding and NetworkPolicy."""
    return f"{key.name}-{component}"


def scheduled_run(schedule: str, due: datetime.datetime) -> str:
    """The Checkpoint or ReplicationAudit that a schedule makes for one of its times, which are whole minutes: the same one each time."""
    return f"{schedule}-{due.astimezone(datetime.UTC):%Y%m%d%H%M}"


def drill_job(schedule: str, due: datetime.datetime) -> str:
    """The Job of a restore drill of one of its times."""
    return f"{scheduled_run(schedule, due)}-drill"


def drill_checkpoint(schedule: str, due: datetime.datetime) -> str:
    """The Checkpoint of a past moment that is made for this drill alone. As short as its own objects' names need it."""
    return f"{scheduled_run(schedule, due)}-d"


def requested_run(schedule: str, requested: datetime.datetime) -> str:
    """The one that it makes when it is asked for: with seconds, so that it is never one of its times."""
    return f"{schedule}-{requested.astimezone(datetime.UTC):%Y%m%d%H%M%S}"
