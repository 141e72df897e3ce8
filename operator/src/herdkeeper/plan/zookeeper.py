"""The next steps of a ZooKeeper ensemble: claims, objects, and the mark that it was founded.

An empty member may vote only while the whole ensemble is new ("ZooKeeper members" in docs/architecture.md): claims are made with
founded="false", and marked "true" once all members have served. A claim that is replaced later is unfounded among founded ones, so its
member joins without a vote.
"""

from __future__ import annotations

from herdkeeper.api import ZooKeeperCluster
from herdkeeper.build.zookeeper import build_zookeeper, build_zookeeper_claim
from herdkeeper.domain import names
from herdkeeper.domain.names import ObjectKey, ZooKeeperNames
from herdkeeper.domain.observed.objects import annotation
from herdkeeper.domain.observed.zookeeper import ZooKeeperObserved
from herdkeeper.domain.reason import Reason
from herdkeeper.plan.action import Action, Annotate, Create, Plan, Wait
from herdkeeper.plan.intent import settle
from herdkeeper.plan.rolling import Gate, roll

CLAIM = "PersistentVolumeClaim"


def plan_zookeeper(cluster: ZooKeeperCluster, seen: ZooKeeperObserved) -> Plan:
    """What to do now for an ensemble that shall live."""
    named = ZooKeeperNames(ObjectKey(cluster.metadata.namespace, cluster.metadata.name))
    members = range(cluster.spec.replicas)
    claims = {number: seen.objects.get(CLAIM, named.claim(number)) for number in members}
    marks = {annotation(claim, names.FOUNDED_ANNOTATION) for claim in claims.values() if claim is not None}
    founded_before = cluster.status is not None and bool(cluster.status.founded)
    if founded_before and "true" not in marks:
        return Plan.waiting(
            Reason.DATA_LOST,
            "no volume claim of the founded ensemble is left: an empty one would make BookKeeper delete every ledger. "
            "Bring the claims back from a backup, or delete this resource and create a new one",
            60,
        )
    founding = marks <= {"false"}
    actions: list[Action] = [Create(build_zookeeper_claim(cluster, number)) for number, claim in claims.items() if claim is None]
    *others, stateful_set = build_zookeeper(cluster, founding=founding)
    actions += settle(others, seen.objects)
    pods = [named.pod(number) for number in members]
    step = roll(stateful_set, seen.objects, pods, Gate(None))
    if isinstance(step, Wait):
        return Plan(tuple(actions), step)
    if step is not None:
        actions.append(step)
    all_serve = all(seen.objects.pod_ready(pod) for pod in pods)
    if all_serve and not actions:
        actions += [
            Annotate(CLAIM, named.claim(number), claim["metadata"]["uid"], {names.FOUNDED_ANNOTATION: "true"}, Reason.FOUNDED)
            for number, claim in claims.items()
            if claim is not None and annotation(claim, names.FOUNDED_ANNOTATION) != "true"
        ]
    return Plan(tuple(actions), look_again_seconds=None if all_serve else 5)
