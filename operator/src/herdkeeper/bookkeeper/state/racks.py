"""The rack and region of each bookie, for BookKeeper's placement policies.

A rack is the value of the spec's rack label on the bookie's node, by default its zone. If nodes have no such label, it is the node itself:
two copies on one node are worse than two in one zone. BookKeeper looks racks up by address and caches them, so the map uses host names,
which a bookie keeps for life.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from herdkeeper.api import BookKeeperCluster
from herdkeeper.codecs.bookkeeper.placement import PlacementRule
from herdkeeper.shared import names
from herdkeeper.shared.node import Node, Nodes
from herdkeeper.shared.objects import Objects

REGION_LABEL = "topology.kubernetes.io/region"
NO_REGION = "-"
"""Stands for no region in the file."""


class PlacementPolicy(StrEnum):
    """How ensembles are chosen: over racks, or over regions first if bookies are in several."""

    RACK_AWARE = "RackAware"
    REGION_AWARE = "RegionAware"


@dataclass(frozen=True)
class Rack:
    """Location of a bookie. `region` is None if its node has none."""

    name: str
    region: str | None


@dataclass(frozen=True)
class Placement:
    """Placement settings for clients that choose ensembles. `config_map` holds the map and its script."""

    policy: PlacementPolicy
    min_racks: int
    enforced: bool
    config_map: str


def racks_of(cluster: BookKeeperCluster, objects: Objects, nodes: Nodes) -> dict[str, Rack]:
    """Returns host -> rack of every bookie with a known rack, sorted. One whose node is unknown keeps its rack in the map."""
    before = parse_racks(objects.data("ConfigMap", cluster.names.racks_config_map).get(names.RACKS_KEY, ""))
    found: dict[str, Rack] = {}
    for host, node in _nodes(cluster, objects, nodes).items():
        if node is not None:
            found[host] = Rack(node.labels.get(cluster.spec.placement.rack_label) or node.name, node.labels.get(REGION_LABEL) or None)
        elif host in before:
            found[host] = before[host]
    return dict(sorted(found.items()))


def unlabelled(cluster: BookKeeperCluster, objects: Objects, nodes: Nodes) -> frozenset[str]:
    """Returns the hosts of bookies whose nodes lack the rack's label while other bookies' nodes have it. Each counts as in a rack of its
    own, but may be in one of theirs: a node that registers anew has no label at first.
    """
    known = {host: node for host, node in _nodes(cluster, objects, nodes).items() if node is not None}
    without = frozenset(host for host, node in known.items() if not node.labels.get(cluster.spec.placement.rack_label))
    return without if len(without) < len(known) else frozenset()


def _nodes(cluster: BookKeeperCluster, objects: Objects, nodes: Nodes) -> dict[str, Node | None]:
    """Returns the node of each bookie by its host; None if it is unknown."""
    named, found = cluster.names, {}
    for stateful_set in objects.of_kind("StatefulSet"):
        number = named.number_of(stateful_set["metadata"]["name"])  # somebody may have changed its label
        if number is not None:
            pod = objects.get("Pod", named.pod(number)) or {}
            node = nodes.get(pod.get("spec", {}).get("nodeName") or "")
            found[named.host(number)] = node if isinstance(node, Node) else None
    return found


def placement_of(cluster: BookKeeperCluster, racks: Mapping[str, Rack]) -> Placement:
    named = cluster.names
    wanted = cluster.spec.placement
    return Placement(policy_for(racks), wanted.min_racks_per_write_quorum, wanted.enforced, named.racks_config_map)


def rule_of(cluster: BookKeeperCluster, racks: Mapping[str, Rack], bookie_ids: Iterable[str]) -> PlacementRule:
    """Returns the placement rule for ledgers. `bookie_ids` are all known ones, including those that are away: ledgers need a rack that is
    away no less. Equal zone names in two regions are two racks.
    """
    named = cluster.names
    numbers = {bookie_id: named.number_of(bookie_id) for bookie_id in bookie_ids}
    found = {bookie_id: racks.get(named.host(number)) for bookie_id, number in numbers.items() if number is not None}
    located = {bookie_id: f"{rack.region or NO_REGION}/{rack.name}" for bookie_id, rack in found.items() if rack is not None}
    return PlacementRule(located, cluster.spec.placement.min_racks_per_write_quorum, len(set(located.values())))


def policy_for(racks: Mapping[str, Rack]) -> PlacementPolicy:
    """Returns region-aware once bookies are in more than one region."""
    regions = {rack.region for rack in racks.values()}
    return PlacementPolicy.REGION_AWARE if len(regions - {None}) > 1 else PlacementPolicy.RACK_AWARE


def format_racks(racks: Mapping[str, Rack]) -> str:
    """Returns the map in the script's format: lines of `host /location region`.

    A location has one level under the rack-aware policy and two under the region-aware one, like BookKeeper's defaults: it refuses a
    topology with leaves of unequal depth.
    """
    by_region = policy_for(racks) is PlacementPolicy.REGION_AWARE
    above = {host: f"/{rack.region or 'default-region'}" if by_region else "" for host, rack in racks.items()}
    return "".join(f"{host} {above[host]}/{rack.name} {rack.region or NO_REGION}\n" for host, rack in sorted(racks.items()))


def parse_racks(text: str) -> dict[str, Rack]:
    """Parses what format_racks wrote; other lines are ignored."""
    rows = [line.split() for line in text.splitlines()]
    return {row[0]: Rack(row[1].rpartition("/")[2], None if row[2] == NO_REGION else row[2]) for row in rows if len(row) == 3}
