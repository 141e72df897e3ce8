"""Observes a ZooKeeperCluster."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from herdkeeper.api import BookKeeperCluster, HerdDBCluster, ZooKeeperCluster
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
from herdkeeper.shared.objects import Json, Objects, ip_address, why_gone
from herdkeeper.shared.unknown import Unknown
from herdkeeper.zookeeper.observe_authority_roll import observe_authority_rolls
from herdkeeper.zookeeper.observe_given_authorities import observe_given_authorities
from herdkeeper.zookeeper.observe_security import kept_authorities, observe_security
from herdkeeper.zookeeper.plaintext_users import plaintext_users
from herdkeeper.zookeeper.state import NOT_READ, NUMBERS, Ensemble

HEAD_START_SECONDS = 0.5
"""A serving leader answers within this time. Without its answer no member counts as behind."""
CLAIMS = (("v1", "PersistentVolumeClaim"),)
PODS_AND_JOBS = (("v1", "Pod"), ("batch/v1", "Job"))


def observe_zookeeper(cluster: ZooKeeperCluster, reader: ClusterReader) -> Ensemble:
    """Returns its objects, each member's own state (admin server, `/commands/srvr`, ZooKeeper 3.9), and the committed membership."""
    key, named = cluster.key, cluster.names
    found = Ensemble(cluster, _objects(cluster, reader))
    stats = _stats(found, reader)
    secret = reader.kubernetes.secret(ObjectKey(key.namespace, named.reconfig_secret)) or {}
    seen = replace(
        found,
        modes={number: answer if isinstance(answer, Unknown) else answer[0] for number, answer in stats.items()},
        zxids={number: answer[1] for number, answer in stats.items() if not isinstance(answer, Unknown)},
        membership=_membership(found.address, key.namespace, reader) if stats else NOT_READ,
        password=secret.get(names.PASSWORD_KEY) or None,
        fresh_password=secrets.token_urlsafe(32),
        disruption=dependents_disruption(key, reader),
        dependents=observe_dependents(cluster, BookKeeperCluster, reader),
        machines=nodes_of_doubted(found.objects, map(named.pod, NUMBERS), reader),
    )
    if cluster.has_certificates:
        kept, now = kept_authorities(cluster, found.objects), datetime.now(UTC)
        given = observe_given_authorities(cluster, kept, reader.kubernetes, now)
        seen = replace(seen, given=given, security=observe_security(cluster, found.objects, kept, given, now))
        seen = replace(seen, rolls=observe_authority_rolls(seen, kept, reader.kubernetes, now))
    return replace(seen, plaintext_users=_plaintext_users(cluster, reader)) if seen.accepts_both else seen


def _plaintext_users(cluster: ZooKeeperCluster, reader: ClusterReader) -> tuple[str, ...]:
    namespace = cluster.metadata.namespace
    found = reader.kubernetes.labelled(namespace, {names.MANAGED_BY_LABEL: names.MANAGER}, PODS_AND_JOBS)
    bookkeepers, databases = (reader.kubernetes.documents(kind, namespace) for kind in (BookKeeperCluster, HerdDBCluster))
    return plaintext_users(cluster, found, bookkeepers, databases)


def _objects(cluster: ZooKeeperCluster, reader: ClusterReader) -> Objects:
    """Returns what the operator made, and claims without its labels: those that the StatefulSet made, which replaces a deleted claim before
    the operator can, and those that lost their labels. So may Secrets of authorities. A deletion takes only what has labels.
    """
    key, named = cluster.key, cluster.names
    made = reader.kubernetes.owned(cluster.KIND, key, (*WORKLOADS, *SHARED, *SECRETS))
    labels = names.selector(names.ZOOKEEPER_COMPONENT, key.name)
    claims, stateful_set = reader.kubernetes.labelled(key.namespace, labels, CLAIMS), made.get("StatefulSet", named.stateful_set)
    found = Objects({**{of: item for of, item in claims.items.items() if _is_own(item, labels, stateful_set)}, **made.items})
    if cluster.metadata.deletion_timestamp is not None:
        return found
    running = (found.get("StatefulSet", named.stateful_set) or {"spec": {}})["spec"].get("replicas", 0)
    members = range(max(cluster.spec.replicas, running))
    found = reader.kubernetes.with_claims(found, key.namespace, map(named.claim, members), names.FOUNDED_ANNOTATION)
    authorities = (named.authority_secret, named.quorum_authority_secret) if cluster.has_certificates else ()
    return reader.kubernetes.with_secrets(found, key.namespace, authorities)


def _is_own(claim: Json, labels: Mapping[str, str], stateful_set: Json | None) -> bool:
    """Returns whether a claim with the StatefulSet's labels is the ensemble's. Those of other programs may have them, and its name, too,
    such as a Helm chart's for ZooKeeper. The StatefulSet makes one with these labels alone, after itself; others may add some.
    """
    made, ours = claim["metadata"], {} if stateful_set is None else stateful_set["metadata"]
    is_later = bool(ours) and made["creationTimestamp"] >= ours["creationTimestamp"]
    return is_later or made.get("labels") == labels or names.FOUNDED_ANNOTATION in (made.get("annotations") or {})


def _stats(ensemble: Ensemble, reader: ClusterReader) -> dict[int, tuple[str, int] | Unknown]:
    """Returns what each running member answers, and why a Ready pod does not count. A pod that is not Ready may be silent."""
    named = ensemble.named
    pods = {number: ensemble.objects.pod_of(named.stateful_set, named.pod(number)) for number in NUMBERS}
    there = {number: pod for number, pod in pods.items() if pod is not None}
    running = {number: ip_address(pod) or named.host(number) for number, pod in there.items() if why_gone(pod) is None}
    asked = _ask_members(reader, named, running, ensemble.cluster.status.leader if ensemble.cluster.status is not None else None)
    ready = [number for number in NUMBERS if ensemble.is_ready(number)]
    asked |= {number: Unknown(f"the StatefulSet did not make the pod {named.pod(number)}") for number in ready if number not in there}
    return {number: answer for number, answer in asked.items() if number in ready or not isinstance(answer, Unknown)}


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


def _membership(address: str, namespace: str, reader: ClusterReader) -> Membership | Unknown:
    try:
        found = reader.znodes(address, namespace).read(CONFIG_PATH, reader.wake)
        return Unknown(f"ZooKeeper at {address} has no {CONFIG_PATH}") if found is None else decode_membership(found[0])
    except (EnsembleError, MalformedDataError) as error:
        return Unknown(str(error))
