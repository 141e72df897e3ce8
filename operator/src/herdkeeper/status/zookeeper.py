"""What is true of a ZooKeeper ensemble."""

from __future__ import annotations

from herdkeeper.api import ZooKeeperCluster
from herdkeeper.domain import names
from herdkeeper.domain.names import ObjectKey, ZooKeeperNames
from herdkeeper.domain.observed.objects import annotation, pod_trouble
from herdkeeper.domain.observed.zookeeper import ZooKeeperObserved
from herdkeeper.domain.reason import Reason
from herdkeeper.status.summary import Health, Summary

SERVING = ("leader", "follower", "observer", "standalone")


def summarize_zookeeper(cluster: ZooKeeperCluster, seen: ZooKeeperObserved) -> Summary:
    """Ready when each member serves in the quorum."""
    named = ZooKeeperNames(ObjectKey(cluster.metadata.namespace, cluster.metadata.name))
    members = range(cluster.spec.replicas)
    ready = [number for number in members if seen.objects.pod_ready(named.pod(number))]
    leader = next((number for number in ready if seen.modes.get(number) in ("leader", "standalone")), None)
    claims = [seen.objects.get("PersistentVolumeClaim", named.claim(number)) for number in members]
    founded_before = cluster.status is not None and bool(cluster.status.founded)
    founded = all(claim is not None and annotation(claim, names.FOUNDED_ANNOTATION) == "true" for claim in claims)
    fields = {
        "address": named.address(cluster.spec.replicas),
        "readyMembers": len(ready),
        "leader": None if leader is None else named.pod(leader),
        "founded": founded_before or founded,
    }
    health = _health(cluster, seen, ready, leader)
    if health.status == "True" and not fields["founded"]:
        # who sees it Ready writes into it: from then on an empty member must not vote
        health = Health("False", Reason.STARTING, "all members serve; their volumes are being marked as founded")
    return Summary(health, fields)


def _health(cluster: ZooKeeperCluster, seen: ZooKeeperObserved, ready: list[int], leader: int | None) -> Health:
    named = ZooKeeperNames(ObjectKey(cluster.metadata.namespace, cluster.metadata.name))
    away = [number for number in range(cluster.spec.replicas) if number not in ready]
    if away:
        shown = "; ".join(f"{named.pod(number)}: {pod_trouble(seen.objects.get('Pod', named.pod(number)))}" for number in away)
        return Health("False", Reason.MEMBERS_NOT_READY, f"{len(ready)} of {cluster.spec.replicas} members serve ({shown})")
    if leader is None:
        return Health("False", Reason.NO_LEADER, "no member says that it leads")
    return Health("True", Reason.READY, f"{len(ready)} members serve, {named.pod(leader)} leads")
