"""The NetworkPolicies of a resource, from planning/network_access.py: applied, kept as intended, removed where unwanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from herdkeeper.api import BookKeeperCluster, HerdDBCluster, ZooKeeperCluster
from herdkeeper.api.network import NetworkPeer
from herdkeeper.api.resource import Resource
from herdkeeper.planning import pods as pod
from herdkeeper.planning.actions import Action, Apply, Plan, deletions
from herdkeeper.planning.intent import difference, needed_apply, with_intent
from herdkeeper.planning.network_access import Declared, Entrance, Operator, Ours, Reach, entrances_of
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json, Objects
from herdkeeper.shared.reason import Reason

KIND = "NetworkPolicy"
Servers = ZooKeeperCluster | BookKeeperCluster | HerdDBCluster
Peers = tuple[NetworkPeer, ...] | None
"""None means everybody."""
_OPERATOR = {"matchLabels": {names.COMPONENT_LABEL: names.OPERATOR_COMPONENT}}


@dataclass(frozen=True)
class _Guarded:
    """A resource whose pods are guarded: the operator's namespace, the peers that it names, and the ports that its pods don't listen on."""

    owner: Resource
    operator_namespace: str = ""
    declared: Mapping[Declared, Peers] = field(default_factory=dict)
    silent_ports: frozenset[int] = frozenset()


def with_network_policies(plan: Plan, cluster: Servers, objects: Objects, operator_namespace: str) -> Plan:
    """Returns the plan with the resource's policies, once there are servers. They come last: nothing waits for them."""
    made = (action.manifest["kind"] for action in plan.actions if isinstance(action, Apply))
    if "StatefulSet" not in made and not objects.of_kind("StatefulSet"):
        return plan
    return replace(plan, actions=(*plan.actions, *plan_network_policies(cluster, objects, operator_namespace)))


def plan_network_policies(cluster: Servers, objects: Objects, operator_namespace: str) -> tuple[Action, ...]:
    """Returns the actions that bring the policies of a resource with servers to their intent."""
    wanted = build_server_policies(cluster, operator_namespace)
    kept = {manifest["metadata"]["name"] for manifest in wanted}
    surplus = (item for item in objects.of_kind(KIND) if item["metadata"]["name"] not in kept)
    changes = (needed_apply(manifest, objects) or _added_to(manifest, objects) for manifest in wanted)
    return (*(change for change in changes if change is not None), *deletions(surplus, Reason.REMOVED))


def _added_to(manifest: Json, objects: Objects) -> Apply | None:
    """Returns an apply for a live policy with more in it than intended.

    One more label in a selector would guard, or admit, other pods. Kubernetes replaces these fields as a whole, so an apply removes the
    additions.
    """
    live = objects.get(KIND, manifest["metadata"]["name"])
    spec = live["spec"] if live is not None else {}
    added = any(difference(spec[field], intended) is not None for field, intended in manifest["spec"].items() if field in spec)
    return Apply(with_intent(manifest), new=False, reason=Reason.UPDATING) if added else None


def admit_moved_operator(objects: Objects, operator_namespace: str) -> tuple[Action, ...]:
    """Returns the actions by which live policies of a refused resource admit the operator from its present namespace, and no more."""
    actions = list[Action]()
    for live in objects.of_kind(KIND):
        spec = {**live["spec"], "ingress": [_admitting(rule, operator_namespace) for rule in live["spec"].get("ingress") or []]}
        if difference(spec, live["spec"]) is not None:
            metadata = {key: value for key, value in live["metadata"].items() if key in ("name", "namespace", "labels", "ownerReferences")}
            manifest = {"apiVersion": live["apiVersion"], "kind": KIND, "metadata": metadata, "spec": spec}
            actions.append(Apply(with_intent(manifest), new=False, reason=Reason.UPDATING))
    return tuple(actions)


def _admitting(rule: Json, operator_namespace: str) -> Json:
    """Returns a rule with the operator's peer in this namespace, if it has one."""
    here = _named(operator_namespace)
    peers = [{**peer, "namespaceSelector": here} if peer.get("podSelector") == _OPERATOR else peer for peer in rule.get("from") or []]
    return {**rule, "from": peers} if peers else rule


def build_server_policies(cluster: Servers, operator_namespace: str) -> tuple[Json, ...]:
    """Returns a policy for each component of a resource with servers, none if policies are disabled."""
    spec, named = cluster.spec, cluster.names
    if spec.network_policy == "Disabled":
        return ()
    declared: dict[Declared, Peers] = {Declared.CLIENTS: spec.clients, Declared.SCRAPERS: spec.scrapers}
    policies = {named.COMPONENT: named.network_policy}
    if isinstance(cluster, BookKeeperCluster) and cluster.spec.auto_recovery.enabled:
        policies[names.AUTORECOVERY_COMPONENT] = cluster.names.autorecovery
    guarded = _Guarded(cluster, operator_namespace, declared, _unused_ports(cluster))
    return tuple(_policy(guarded, component, name) for component, name in policies.items())


def _unused_ports(cluster: Servers) -> frozenset[int]:
    """The client ports without a listener. An ensemble without an authority may have been founded in plain text, whatever its spec says."""
    if not isinstance(cluster, ZooKeeperCluster):
        return frozenset()
    if not cluster.has_certificates:
        return frozenset({names.ZOOKEEPER_SECURE_PORT})
    has_authority = cluster.status is not None and cluster.status.authority_expires is not None
    return frozenset({names.ZOOKEEPER_CLIENT_PORT} if has_authority and not cluster.accepts_plaintext else ())


def build_job_policy(owner: Resource, component: str, name: str) -> Json:
    """Returns the policy of a Spark driver and its executors."""
    return _policy(_Guarded(owner), component, name)


def _policy(guarded: _Guarded, component: str, name: str) -> Json:
    """A port without a rule is closed to everybody."""
    entrances = entrances_of(component)
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": KIND,
        "metadata": pod.metadata(guarded.owner, component, name),
        "spec": {
            "podSelector": _selector(Ours(Reach.SAME_RESOURCE, entrances[0].components), guarded.owner),
            "policyTypes": ["Ingress"],
            "ingress": [rule for entrance in entrances if (rule := _rule(entrance, guarded)) is not None],
        },
    }


def _rule(entrance: Entrance, guarded: _Guarded) -> Json | None:
    """Returns None if nobody may connect: in a rule, an empty list of peers means everybody."""
    peers = _peers(entrance, guarded)
    if peers == []:
        return None
    ports = [port for port in entrance.ports if port not in guarded.silent_ports]
    return {"ports": [{"port": port, "protocol": "TCP"} for port in ports], "from": peers or []}


def _peers(entrance: Entrance, guarded: _Guarded) -> list[Json] | None:
    """Returns who may connect, or None for everybody."""
    here, peers = _named(guarded.owner.metadata.namespace), list[Json]()
    for admitted in entrance.admitted:
        match admitted:
            case Operator():
                peers.append(_peer(_named(guarded.operator_namespace), _OPERATOR))
            case Ours():
                peers.append(_peer(here, _selector(admitted, guarded.owner)))
            case Declared():
                declared = guarded.declared[admitted]
                if declared is None:
                    return None
                for each in declared:
                    namespaces = here if each.namespace_labels is None else {"matchLabels": each.namespace_labels}
                    peers.append(_peer(namespaces, {"matchLabels": each.pod_labels}))
            case _:
                assert_never(admitted)
    return peers


def _peer(namespaces: Json, pods: Json) -> Json:
    """Always names a namespace, so that a selector of all namespaces, added by hand, shows up as drift."""
    return {"namespaceSelector": namespaces, "podSelector": pods}


def _named(namespace: str) -> Json:
    return {"matchLabels": {names.NAMESPACE_NAME_LABEL: namespace}}


def _selector(ours: Ours, owner: Resource) -> Json:
    labels = {names.MANAGED_BY_LABEL: names.MANAGER}
    match ours.reach:
        case Reach.SAME_RESOURCE:
            labels |= {names.OWNER_KIND_LABEL: owner.KIND, names.OWNER_NAME_LABEL: owner.metadata.name}
        case Reach.NAMESPACE:
            pass
        case _:
            assert_never(ours.reach)
    chosen = {"key": names.COMPONENT_LABEL, "operator": "In", "values": list(ours.components)}
    return {"matchLabels": labels, "matchExpressions": [chosen]}
