"""Decides who can't do without plain text yet: the resources on an ensemble, and the operator's pods that connect to it.

What counts are the pods themselves: a pod that mounts no certificate shows none. Applications are not seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from herdkeeper.api import BookKeeperCluster, HerdDBCluster, ZooKeeperCluster
from herdkeeper.shared import names
from herdkeeper.shared.names import BookKeeperNames, HerdDBNames, ObjectKey
from herdkeeper.shared.objects import Json, Objects, is_made_for, job_ended, mounts
from herdkeeper.shared.references import referred_name


def plaintext_users(cluster: ZooKeeperCluster, found: Objects, bookkeepers: Iterable[Json], databases: Sequence[Json]) -> tuple[str, ...]:
    """Returns who needs plain text besides the members, as phrases. `found` are the operator's pods and Jobs in the namespace,
    `bookkeepers` and `databases` the BookKeeperClusters and HerdDBClusters there.
    """
    pods = [pod for pod in found.of_kind("Pod") if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")]
    jobs = [job for job in found.of_kind("Job") if job_ended(job) is None]  # its next pod may be yet to come
    return tuple(dict.fromkeys((*_of_resources(cluster, pods, bookkeepers, databases), *_told_the_plain_port(cluster, (*pods, *jobs)))))


def _of_resources(cluster: ZooKeeperCluster, pods: Iterable[Json], bookkeepers: Iterable[Json], databases: Sequence[Json]) -> Iterator[str]:
    namespace = cluster.metadata.namespace
    for bookkeeper in bookkeepers:
        name, spec = bookkeeper["metadata"]["name"], bookkeeper.get("spec") or {}
        if _plain_members(cluster) in (spec.get("zooKeeperAddress") or ""):
            yield f"the BookKeeperCluster {name} (its spec.zooKeeperAddress is the port for plain text)"
        if referred_name(BookKeeperCluster.KIND, spec) != cluster.metadata.name:
            continue
        address = (bookkeeper.get("status") or {}).get("zooKeeperAddress") or ""
        if names.secure_ensemble(address, namespace) is None:
            yield f"the BookKeeperCluster {name} (not all its bookies have certificates)"
        yield from _without(BookKeeperNames(ObjectKey(namespace, name)).identity_secret, BookKeeperCluster.KIND, name, pods)
        for database in databases:
            if referred_name(HerdDBCluster.KIND, database.get("spec") or {}) == name:
                yield from _of_database(HerdDBNames(ObjectKey(namespace, database["metadata"]["name"])), database, pods)


def _of_database(named: HerdDBNames, database: Json, pods: Iterable[Json]) -> Iterator[str]:
    if not database["spec"].get("tls"):
        fix = f"set spec.tls.secretName to {named.identity_secret} and spec.tls.plaintext to Accepted"
        yield f"the HerdDBCluster {named.key.name} (it has no spec.tls: {fix})"
    yield from _without(named.identity_secret, HerdDBCluster.KIND, named.key.name, pods)


def _without(secret: str, kind: str, name: str, pods: Iterable[Json]) -> Iterator[str]:
    """The pods of a resource that don't mount this Secret."""
    for pod in pods:
        if is_made_for(pod, kind, name) and not mounts(pod, secret):
            yield f"the pod {pod['metadata']['name']}"


def _told_the_plain_port(cluster: ZooKeeperCluster, pods_and_jobs: Iterable[Json]) -> Iterator[str]:
    for item in pods_and_jobs:
        if _plain_members(cluster) in json.dumps(item.get("spec", {})):
            yield f"the {'Job' if item['kind'] == 'Job' else 'pod'} {item['metadata']['name']}"


def _plain_members(cluster: ZooKeeperCluster) -> str:
    """What each connection string to the port for plain text contains."""
    return f"{cluster.names.members_service}.{cluster.metadata.namespace}.svc:{names.ZOOKEEPER_CLIENT_PORT}"
