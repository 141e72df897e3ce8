"""The SQL nodes of a HerdDBCluster: what is declared, what was observed, and what follows from both."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from herdkeeper.api import BookKeeperCluster, Checkpoint, HerdDBCluster, Tablespace
from herdkeeper.certificates.holders import NOTHING_DUE, DueSecrets
from herdkeeper.herddb.state.cluster import (
    NOT_LOOKED_AT,
    NOT_TOLD,
    NodeTablespace,
    NodeView,
    UserCredentials,
    VersionedRecord,
    ZooKeeperTimes,
)
from herdkeeper.herddb.state.log_store import LogStore, log_store
from herdkeeper.herddb.state.nodes import mounted_secret, present_nodes, running_nodes, staying_nodes
from herdkeeper.herddb.state.tls import TlsUsable, serves_tls
from herdkeeper.herddb.state.users import SqlUsers, users_of
from herdkeeper.herddb.tablespace.judged_nodes import Declared, judged_nodes
from herdkeeper.protocol.self_report import SelfReport
from herdkeeper.shared import names
from herdkeeper.shared.conditions import is_refused
from herdkeeper.shared.counted import counted
from herdkeeper.shared.dependents import NO_DEPENDENTS, Dependents
from herdkeeper.shared.names import HerdDBNames
from herdkeeper.shared.node import Nodes
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.unknown import Unknown

ADMINISTRATOR = "herdkeeper"
"""User name in a generated Secret."""


@dataclass(frozen=True)
class SqlFleet:
    """A HerdDBCluster as declared and as observed. Each derived value is computed once.

    `credentials` is the content of the named Secret; None if none is named or the generated one does not exist yet. `bookkeeper` is the
    BookKeeperCluster that it refers to, or None. `root_parent` and `root` tell whether the parent znode and the cluster's root exist.
    `fresh_password` and `fresh_token` are random, for a new Secret. `nodes` are the views as the nodes report them. `records` are HerdDB's
    records by tablespace, `declared` the Tablespaces that refer to it; `checkpoints` are the namespace's. `now` is Unix seconds.
    `registered` are the nodes with a record in HerdDB. `taken_services` are names of leaders' Services that another owner uses.
    `dependents` are the Tablespaces that refer to it. `disruption` is which bookie or ensemble member is being disrupted, or None.
    `silent_seconds` is for how long each known node has been silent; `reports` the connection reports of the others. `heartbeats` are those
    of all replicas by tablespace and node, `zookeeper` the current time, both by ZooKeeper's clock in Unix seconds. `machines` are the
    Kubernetes nodes of SQL nodes that are not Ready. `tls` is the verdict on the Secret of the SQL port, or None if it is not encrypted.
    `user_secrets` are the contents of the Secrets of `spec.users`, by name. `ownerless_pins` are the log pins (path and version) of
    tablespaces that no resource declares any more, so nothing would move them. `foreign_ledger` is, before there are nodes, which listed
    ledger is of another log, or None. `identities` are the due Secrets with certificates.
    """

    cluster: HerdDBCluster
    objects: Objects
    bookkeeper: BookKeeperCluster | None
    nodes: Mapping[str, NodeView | Unknown] = field(default_factory=dict)
    root_parent: bool | Unknown = NOT_LOOKED_AT
    root: bool | Unknown = NOT_LOOKED_AT
    credentials: UserCredentials | Problem | None = None
    fresh_password: str = field(default="", repr=False)
    fresh_token: str = field(default="", repr=False)
    records: Mapping[str, VersionedRecord] | Unknown = field(default_factory=dict)
    registered: tuple[str, ...] | Unknown = ()
    declared: tuple[Declared, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()
    taken_services: frozenset[str] = frozenset()
    now: float = 0.0
    dependents: Dependents = NO_DEPENDENTS
    disruption: str | None = None
    silent_seconds: Mapping[str, float] = field(default_factory=dict)
    reports: Mapping[str, SelfReport] = field(default_factory=dict)
    heartbeats: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    zookeeper: ZooKeeperTimes = NOT_TOLD
    machines: Nodes = field(default_factory=dict)
    tls: TlsUsable | Problem | None = None
    user_secrets: Mapping[str, UserCredentials | Problem] = field(default_factory=dict)
    ownerless_pins: tuple[tuple[str, int], ...] = ()
    foreign_ledger: str | Unknown | None = None
    identities: DueSecrets = NOTHING_DUE

    @property
    def named(self) -> HerdDBNames:
        return self.cluster.names

    @cached_property
    def log(self) -> LogStore | None:
        """The location of the log, once the BookKeeperCluster's status reports it."""
        return log_store(self.bookkeeper)

    @cached_property
    def staying(self) -> tuple[str, ...]:
        """The declared nodes, by number."""
        return staying_nodes(self.cluster)

    @cached_property
    def present(self) -> tuple[str, ...]:
        """The declared nodes, and those above that are in the StatefulSet or still have a pod, by number."""
        return present_nodes(self.cluster, self.objects)

    @cached_property
    def running(self) -> int:
        """The StatefulSet's number of nodes, 0 without one."""
        return running_nodes(self.cluster, self.objects) or 0

    @property
    def are_taken_down(self) -> bool:
        """Whether nothing makes the nodes any more: their StatefulSet is gone, or being deleted."""
        stateful_set = self.objects.get("StatefulSet", self.named.stateful_set)
        return stateful_set is None or "deletionTimestamp" in stateful_set["metadata"]

    @cached_property
    def why_no_ledger_can_open(self) -> str | Unknown | None:
        """Without enough bookies, a SQL node would only fail and restart. Unknown while their number is."""
        status, name = self.bookkeeper.status if self.bookkeeper is not None else None, self.cluster.spec.book_keeper_ref.name
        if self.bookkeeper is None or status is None or status.ready_bookies is None:
            return Unknown(f"how many bookies of the BookKeeperCluster {name} are writable is not known")
        ready, wanted = status.ready_bookies, self.cluster.spec.ledgers.ensemble_size
        if ready >= wanted:
            return None
        if is_refused(self.bookkeeper):
            return Unknown(f"how many bookies are writable is not known while the spec of the BookKeeperCluster {name} is refused")
        return f"the BookKeeperCluster {name} has {counted(ready, 'writable bookie')} of the {wanted} that a ledger needs"

    @cached_property
    def tablespaces(self) -> tuple[Tablespace, ...]:
        """The declared tablespaces that can be read."""
        return tuple(each.tablespace for each in self.declared if each.readable)

    @cached_property
    def unread(self) -> tuple[str, ...]:
        """The names of the others."""
        return tuple(each.tablespace.metadata.name for each in self.declared if not each.readable)

    @cached_property
    def _judged(self) -> Mapping[str, NodeView | Unknown]:
        return judged_nodes(self.nodes, self.declared, self.checkpoints)

    def view_of(self, node: str) -> NodeView | Unknown:
        """A node's view of its tablespaces, with the known verdicts on their rows."""
        return self._judged.get(node, Unknown("it was not asked"))

    def replica_on(self, node: str, name: str) -> NodeTablespace | Unknown | None:
        """A node's view of a tablespace, or None."""
        view = self.view_of(node)
        return view if isinstance(view, Unknown) else next((copy for copy in view if copy.name == name), None)

    @cached_property
    def secret(self) -> str:
        """The Secret that the nodes mount."""
        return mounted_secret(self.cluster)

    @cached_property
    def token(self) -> str | None:
        return self._stored(names.TOKEN_KEY)

    @cached_property
    def users_file(self) -> str:
        """HerdDB's users file in that Secret, or ""."""
        return self._stored(names.USERS_KEY) or ""

    @cached_property
    def sql_users(self) -> SqlUsers | Problem:
        """The users that may log in. Without credentials, the administrator is the one of a Secret that is yet to be generated."""
        administrator = self.credentials or UserCredentials(ADMINISTRATOR, self.fresh_password)
        if isinstance(administrator, Problem):
            return administrator
        return users_of(self.cluster, administrator, self.user_secrets, self.users_file)

    @cached_property
    def encrypted(self) -> bool:
        """Whether all nodes serve TLS, by the pods: a declaration takes effect when they restart. A missing pod counts as its template."""
        stateful_set = self.objects.get("StatefulSet", self.named.stateful_set)
        pods = [pod for node in self.present if (pod := self.objects.get("Pod", node)) is not None]
        return stateful_set is not None and all(map(serves_tls, (stateful_set["spec"]["template"], *pods)))

    def _stored(self, key: str) -> str | None:
        encoded = self.objects.data("Secret", self.secret).get(key)
        return base64.b64decode(encoded).decode(errors="replace") or None if encoded else None
