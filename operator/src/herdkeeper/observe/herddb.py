"""Looks at a HerdDBCluster."""

from __future__ import annotations

import secrets
from typing import Any

from herdkeeper.api import BookKeeperCluster, HerdDBCluster, Tablespace
from herdkeeper.build.log_store import LogStore, log_store
from herdkeeper.domain import names
from herdkeeper.domain.names import HerdDBNames, ObjectKey
from herdkeeper.domain.observed.herddb import CredentialsMissing, HerdDBObserved, NodeTablespace, NodeView, UserCredentials
from herdkeeper.domain.observed.objects import Objects
from herdkeeper.domain.reason import Reason
from herdkeeper.domain.unknown import Unknown
from herdkeeper.observe.dependents import observe_dependents
from herdkeeper.observe.ensembles import EnsembleError
from herdkeeper.observe.kubernetes import SECRETS, SHARED, WORKLOADS
from herdkeeper.observe.world import World

BOOKIES = (WORKLOADS[0], ("v1", "Pod"))


def observe_herddb(cluster: HerdDBCluster, world: World) -> HerdDBObserved:
    """Its objects, credentials, root in ZooKeeper, and what each Ready node says of its tablespaces."""
    key = ObjectKey(cluster.metadata.namespace, cluster.metadata.name)
    named = HerdDBNames(key)
    objects = world.kubernetes.owned(cluster.KIND, key, (*WORKLOADS, *SHARED, *SECRETS))
    bookkeeper = world.kubernetes.readable(BookKeeperCluster, ObjectKey(key.namespace, cluster.spec.book_keeper_ref.name))
    log = log_store(bookkeeper)
    return HerdDBObserved(
        objects=objects,
        bookkeeper=bookkeeper,
        root_parent=_exists(world, log, named.herd_root.rpartition("/")[0]),
        root=_exists(world, log, named.herd_root),
        credentials=read_credentials(cluster, world),
        nodes=read_nodes(cluster, objects, world),
        fresh_password=secrets.token_urlsafe(24),
        fresh_token=secrets.token_urlsafe(32),
        dependents=observe_dependents(cluster, Tablespace, world),
        bookies=world.kubernetes.owned(BookKeeperCluster.KIND, ObjectKey(key.namespace, cluster.spec.book_keeper_ref.name), BOOKIES),
    )


def read_credentials(cluster: HerdDBCluster, world: World) -> UserCredentials | CredentialsMissing | None:
    """The administrator's credentials; None when they shall be generated and are not yet."""
    namespace = cluster.metadata.namespace
    reference = cluster.spec.credentials_secret_ref
    named = HerdDBNames(ObjectKey(namespace, cluster.metadata.name))
    name = reference.name if reference else named.generated_secret
    values = world.kubernetes.secret(ObjectKey(namespace, name))
    if values is None:
        return CredentialsMissing(Reason.WAITING_FOR_SECRET, f"there is no Secret {name}") if reference else None
    missing = [entry for entry in (names.USERNAME_KEY, names.PASSWORD_KEY) if not values.get(entry)]
    if missing:
        return CredentialsMissing(Reason.WAITING_FOR_SECRET, f"the Secret {name} lacks {' and '.join(missing)}: add it")
    username, password = values[names.USERNAME_KEY], values[names.PASSWORD_KEY]
    for entry, value in ((names.USERNAME_KEY, username), (names.PASSWORD_KEY, password)):
        if any(character in value for character in ",\r\n") or value != value.strip():
            why = f"the Secret {name} has a {entry} that HerdDB's users file can't hold: use one line without commas and spaces around it"
            return CredentialsMissing(Reason.INVALID_SPEC, why)
    return UserCredentials(username, password)


def read_nodes(cluster: HerdDBCluster, objects: Objects, world: World) -> dict[str, NodeView | Unknown]:
    """What each Ready node says of its tablespaces (images/herddb, GET /tablespaces), by pod name."""
    named = HerdDBNames(ObjectKey(cluster.metadata.namespace, cluster.metadata.name))
    return {
        named.pod(number): read_node(world, f"http://{named.host(number)}:{names.HERDDB_HTTP_PORT}/tablespaces")
        for number in range(cluster.spec.replicas)
        if objects.pod_ready(named.pod(number))
    }


def read_node(world: World, url: str) -> NodeView | Unknown:
    """One node's view."""
    answer = world.http.get(url)
    if isinstance(answer, Unknown):
        return answer
    try:
        return tuple(_tablespace(entry) for entry in answer)
    except (KeyError, TypeError) as error:
        return Unknown(f"{url} answered something else than tablespaces: {error!r}")


def _tablespace(entry: dict[str, Any]) -> NodeTablespace:
    applied = entry.get("applied")
    return NodeTablespace(
        name=str(entry["name"]),
        uuid=str(entry["uuid"]),
        role=str(entry["role"]),
        ready=bool(entry["ready"]),
        lsn=(int(applied["ledgerId"]), int(applied["entryId"])) if applied else None,
        last_error=entry.get("lastError"),
    )


def _exists(world: World, log: LogStore | None, path: str) -> bool | Unknown:
    if log is None:
        return Unknown("the BookKeeperCluster does not name its ZooKeeper yet")
    try:
        return world.ensembles.at(log.zookeeper_address).read(path) is not None
    except EnsembleError as error:
        return Unknown(str(error))
