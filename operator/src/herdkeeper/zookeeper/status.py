"""Derives the status of a ZooKeeper ensemble."""

from __future__ import annotations

from herdkeeper.api import ZooKeeperCluster
from herdkeeper.planning.lost_node import nodes_reachable
from herdkeeper.planning.summary import Health, Summary
from herdkeeper.shared import names
from herdkeeper.shared.lost_node import trouble_of
from herdkeeper.shared.quorum import address_of, majority
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.time import text_of
from herdkeeper.shared.unknown import Unknown
from herdkeeper.zookeeper.membership import leader_of, voters_of
from herdkeeper.zookeeper.plan import founded_before, last_read
from herdkeeper.zookeeper.state import ZooKeeperObserved


def summarize_zookeeper(cluster: ZooKeeperCluster, seen: ZooKeeperObserved) -> Summary:
    """Returns Ready if each declared member votes and serves."""
    named = cluster.names
    members = range(cluster.spec.replicas)
    ready = [number for number in members if seen.objects.pod_ready(named.pod(number))]
    leader = leader_of(seen)
    voters = None if isinstance(seen.membership, Unknown) else voters_of(seen.membership)
    fields = {
        "address": _address(cluster, voters),
        "readyMembers": len(ready),
        "voters": None if voters is None else len(voters),
        "leader": None if leader is None else named.pod(leader),
        "authorityExpires": text_of(seen.security.expires) if seen.security is not None and seen.security.expires is not None else None,
        "founded": founded_before(cluster, seen) or _founded(cluster, seen),
    }
    health = _health(cluster, seen, ready, voters)
    if health.status == "True" and not fields["founded"]:
        # clients write into a Ready ensemble: from then on an empty member must not vote
        health = Health("False", Reason.STARTING, "all members serve; their volumes are being marked as founded")
    meanwhile = f"{len(ready)} of {len(members)} members serve. Restarts and membership changes wait."
    pods = map(named.pod, range(names.ZOOKEEPER_MOST_MEMBERS))
    return Summary(health, fields, nodes_reachable(seen.objects, pods, seen.machines, meanwhile))


def _address(cluster: ZooKeeperCluster, voters: tuple[int, ...] | None) -> str:
    """The address changes only once the membership is the declared one. Otherwise clients would restart at each step."""
    named = cluster.names
    known = cluster.status.address if cluster.status is not None else None
    declared = tuple(range(cluster.spec.replicas))
    if known and voters != declared:
        return known
    return address_of(known, tuple(named.host(number) for number in declared), cluster.client_port)


def _founded(cluster: ZooKeeperCluster, seen: ZooKeeperObserved) -> bool:
    claims = [seen.objects.claims.get(cluster.names.claim(number)) for number in range(cluster.spec.replicas)]
    return all(claim is not None and claim.annotations.get(names.FOUNDED_ANNOTATION) == names.FOUNDED for claim in claims)


def _health(cluster: ZooKeeperCluster, seen: ZooKeeperObserved, ready: list[int], voters: tuple[int, ...] | None) -> Health:
    named, declared = cluster.names, tuple(range(cluster.spec.replicas))
    away = [number for number in declared if number not in ready]
    if founded_before(cluster, seen) and (lost := _why_no_quorum(cluster, seen)) is not None:
        return Health("False", Reason.QUORUM_LOST, lost)
    if away:
        return Health(
            "False", Reason.MEMBERS_NOT_READY, f"{len(ready)} of {len(declared)} members serve ({_troubles(cluster, seen, away)})"
        )
    if voters is not None and (missing := [named.pod(number) for number in declared if number not in voters]):
        return Health("False", Reason.MEMBERS_NOT_READY, f"{', '.join(missing)} has no vote yet")
    leader = leader_of(seen)
    if leader is None:
        return Health("False", Reason.NO_LEADER, "no member reports that it leads")
    return Health("True", Reason.READY, f"{len(ready)} members serve, {named.pod(leader)} leads")


def _why_no_quorum(cluster: ZooKeeperCluster, seen: ZooKeeperObserved) -> str | None:
    """Returns what a person must know if too few voters serve. None if a quorum serves, or the voters are unknown."""
    named = cluster.names
    config_map = seen.objects.get("ConfigMap", named.config_map)
    membership = last_read(config_map) if isinstance(seen.membership, Unknown) else seen.membership
    if membership is None:
        return None
    voters = voters_of(membership)
    away = [number for number in voters if not seen.objects.pod_ready(named.pod(number))]
    if len(voters) - len(away) >= majority(len(voters)):
        return None
    return (
        f"{len(voters) - len(away)} of {len(voters)} voters serve and {majority(len(voters))} are needed, so nothing can be written "
        f"({_troubles(cluster, seen, away)}). {_way_out(cluster, seen, voters)} (docs/how-to.md, 'When a quorum is lost')"
    )


def _way_out(cluster: ZooKeeperCluster, seen: ZooKeeperObserved, voters: tuple[int, ...]) -> str:
    """Returns advice for a lost quorum: an empty volume has no vote, and can't restore one."""
    wanted = [cluster.names.claim(number) for number in voters]
    marks = {name: claim.annotations.get(names.FOUNDED_ANNOTATION) for name, claim in seen.objects.claims.items()}
    empty = [name for name in wanted if marks.get(name) in (None, names.NEW)]
    if len(voters) - len(empty) >= majority(len(voters)):
        return "They serve again once a majority runs: find out why their pods don't start"
    return (
        f"Only {len(voters) - len(empty)} of {len(voters)} volumes hold data. {' and '.join(empty)} are empty and have no vote: "
        "restore volumes from snapshots, or accept the data of one of the others"
    )


def _troubles(cluster: ZooKeeperCluster, seen: ZooKeeperObserved, away: list[int]) -> str:
    named = cluster.names
    return "; ".join(f"{named.pod(number)}: {trouble_of(seen.objects.get('Pod', named.pod(number)), seen.machines)}" for number in away)
