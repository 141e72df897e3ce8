"""Observes a ZooKeeperCluster."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from herdkeeper.api import BookKeeperCluster, ZooKeeperCluster
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.clients.dependents import observe_dependents
from herdkeeper.clients.kubernetes import SECRETS, SHARED, WORKLOADS
from herdkeeper.clients.nodes import nodes_of_doubted
from herdkeeper.clients.stack import dependents_disruption
from herdkeeper.clients.zookeeper import EnsembleError
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.codecs.zookeeper.membership import CONFIG_PATH, Membership, decode_membership
from herdkeeper.shared import names
from herdkeeper.shared.names import ObjectKey, ZooKeeperNames
from herdkeeper.shared.objects import Objects, ip_address, why_gone
from herdkeeper.shared.unknown import Unknown
from herdkeeper.zookeeper.observe_security import observe_security
from herdkeeper.zookeeper.state import NOT_READ, ZooKeeperObserved

HEAD_START_SECONDS = 0.5
"""A serving leader answers within this time. Without its answer no member counts as behind."""
CLAIMS = (("v1", "PersistentVolumeClaim"),)


def observe_zookeeper(cluster: ZooKeeperCluster, reader: ClusterReader) -> ZooKeeperObserved:
    """Returns its objects, each member's own state (admin server, `/commands/srvr`, ZooKeeper 3.9), and the committed membership."""
    key = cluster.key
    named = ZooKeeperNames(key)
    objects = _objects(cluster, reader)
    ready = [number for number in range(names.ZOOKEEPER_MOST_MEMBERS) if objects.pod_ready(named.pod(number))]
    known_leader = cluster.status.leader if cluster.status is not None else None
    members = {number: objects.pod_of(named.stateful_set, named.pod(number)) for number in range(names.ZOOKEEPER_MOST_MEMBERS)}
    there = {number: pod for number, pod in members.items() if pod is not None}
    running = {number: ip_address(pod) or named.host(number) for number, pod in there.items() if why_gone(pod) is None}
    strangers = {number: Unknown(f"the StatefulSet did not make the pod {named.pod(number)}") for number in ready if number not in there}
    asked = {**_ask_members(reader, named, running, known_leader), **strangers}
    stats = {number: found for number, found in asked.items() if number in ready or not isinstance(found, Unknown)}
    address = _address(cluster, objects)
    secret = reader.kubernetes.secret(ObjectKey(key.namespace, named.reconfig_secret)) or {}
    return ZooKeeperObserved(
        objects=objects,
        modes={number: found if isinstance(found, Unknown) else found[0] for number, found in stats.items()},
        zxids={number: found[1] for number, found in stats.items() if not isinstance(found, Unknown)},
        address=address,
        membership=_membership(address, key.namespace, reader) if stats else NOT_READ,
        password=secret.get(names.PASSWORD_KEY) or None,
        fresh_password=secrets.token_urlsafe(32),
        disruption=dependents_disruption(key, reader),
        dependents=observe_dependents(cluster, BookKeeperCluster, reader),
        machines=nodes_of_doubted(objects, map(named.pod, range(names.ZOOKEEPER_MOST_MEMBERS)), reader),
        security=observe_security(cluster, objects) if cluster.asks_for_certificates else None,
    )


def _objects(cluster: ZooKeeperCluster, reader: ClusterReader) -> Objects:
    """Returns what the operator made, and claims that the StatefulSet made: it replaces a deleted claim before the operator can."""
    key = cluster.key
    made = reader.kubernetes.owned(cluster.KIND, key, (*WORKLOADS, *SHARED, *SECRETS))
    claims = reader.kubernetes.labelled(key.namespace, names.selector(names.ZOOKEEPER_COMPONENT, key.name), CLAIMS)
    return Objects({**claims.items, **made.items})


def _ask_members(
    reader: ClusterReader, named: ZooKeeperNames, ready: Mapping[int, str], leader: str | None
) -> dict[int, tuple[str, int] | Unknown]:
    """Returns the members' answers by number. All are asked concurrently, so that a lost machine costs one timeout for all.

    The leader is asked slightly earlier, so that no member seems behind because of transactions during the reads.
    """
    if not ready:
        return {}
    with ThreadPoolExecutor(max_workers=len(ready)) as askers:

        def ask(number: int) -> Future[tuple[str, int] | Unknown]:
            return askers.submit(_server_stats, reader, f"http://{ready[number]}:{names.ZOOKEEPER_ADMIN_PORT}/commands/srvr")

        first = [number for number in ready if named.pod(number) == leader]
        asked = {number: ask(number) for number in first}
        wait(asked.values(), HEAD_START_SECONDS)
        asked |= {number: ask(number) for number in ready if number not in asked}
        return {number: answer.result() for number, answer in asked.items()}


def _server_stats(reader: ClusterReader, url: str) -> tuple[str, int] | Unknown:
    """Returns mode and last applied transaction of one member."""
    answer = reader.http.get(url)
    if isinstance(answer, Unknown):
        return answer
    try:
        stats: dict[str, Any] = answer["server_stats"]
        return str(stats["server_state"]), int(stats["last_processed_zxid"])
    except (KeyError, TypeError, ValueError):
        return Unknown(f"{url} answered without server_stats.server_state and last_processed_zxid")


def _address(cluster: ZooKeeperCluster, objects: Objects) -> str:
    """Returns the published address, or that of all members before there is one."""
    named = cluster.names
    stateful_set = objects.get("StatefulSet", named.stateful_set)
    pods = cluster.spec.replicas if stateful_set is None else stateful_set["spec"]["replicas"]
    return (cluster.status.address if cluster.status is not None else None) or named.address(pods, cluster.client_port)


def _membership(address: str, namespace: str, reader: ClusterReader) -> Membership | Unknown:
    try:
        found = reader.ensemble(address, namespace).read(CONFIG_PATH, reader.wake)
        return Unknown(f"ZooKeeper at {address} has no {CONFIG_PATH}") if found is None else decode_membership(found[0])
    except (EnsembleError, MalformedDataError) as error:
        return Unknown(str(error))
