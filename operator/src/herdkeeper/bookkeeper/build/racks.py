"""The map of racks for BookKeeper's clients: its ConfigMap, its mount, and the configuration lines.

Clients that choose ensembles need it: SQL nodes (new ledgers) and autorecovery (replacements). Bookies don't. Keys: BookKeeper's
ScriptBasedMapping and TopologyAwareEnsemblePlacementPolicy, 4.16 and 4.18.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from herdkeeper.api import BookKeeperCluster
from herdkeeper.bookkeeper.state.racks import Placement, PlacementPolicy, Rack, format_racks
from herdkeeper.planning import pods as pod
from herdkeeper.shared import names
from herdkeeper.shared.objects import Json

FOLDER = "/racks"
MOUNT: Json = {"name": "racks", "mountPath": FOLDER, "readOnly": True}
_SCRIPT_KEY = "rack.sh"

SCRIPT = """\
#!/bin/sh
# Prints the network location of each address that BookKeeper asks for. It asks by IP address, which a bookie's pod changes at each
# restart; the reverse record of the headless Service names the host that stays. Fails for an address that is no bookie's: BookKeeper then
# takes its default rack and, unlike an answer, does not remember it.
set -eu
racks="$(dirname "$0")/racks"

locate() {
    # shellcheck disable=SC2046 # words: the address, then its names
    set -- $(getent hosts "$1")
    [ $# -ge 2 ] || return 1
    host="${2%%.svc.*}.svc"
    while read -r name location _; do
        if [ "$name" = "$host" ]; then
            echo "$location"
            return 0
        fi
    done <"$racks"
    return 1
}

for address in "$@"; do
    locate "$address" || exit 1
done
"""


def build_racks(cluster: BookKeeperCluster, racks: Mapping[str, Rack]) -> Json:
    """Returns the ConfigMap with the map and the script."""
    named = cluster.names
    files = {names.RACKS_KEY: format_racks(racks), _SCRIPT_KEY: SCRIPT}
    return pod.config_map(cluster, names.BOOKIE_COMPONENT, named.racks_config_map, files)


def racks_volume(config_map: str) -> Json:
    """Returns the volume with the map. A pod starts without it, too; BookKeeper then assumes a single rack."""
    return {"name": "racks", "configMap": {"name": config_map, "defaultMode": 0o555, "optional": True}}


def placement_lines(placement: Placement) -> dict[str, object]:
    match placement.policy:
        case PlacementPolicy.RACK_AWARE:
            policy = "org.apache.bookkeeper.client.RackawareEnsemblePlacementPolicy"
        case PlacementPolicy.REGION_AWARE:
            policy = "org.apache.bookkeeper.client.RegionAwareEnsemblePlacementPolicy"
        case _:
            assert_never(placement.policy)
    return {
        "ensemblePlacementPolicy": policy,
        "reppDnsResolverClass": "org.apache.bookkeeper.net.ScriptBasedMapping",
        "networkTopologyScriptFileName": f"{FOLDER}/{_SCRIPT_KEY}",
        "minNumRacksPerWriteQuorum": placement.min_racks,
        "enforceMinNumRacksPerWriteQuorum": str(placement.enforced).lower(),
        # Otherwise the first copy of every ledger would go to the writer's rack, and fill its bookies first.
        "ignoreLocalNodeInPlacementPolicy": "true",
    }
