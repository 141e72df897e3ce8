"""The volume claims of a bookie: the journal's and one per ledger directory. None is of use without the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from herdkeeper.api import BookKeeperCluster
from herdkeeper.api.resource import VolumeClaim
from herdkeeper.shared import names
from herdkeeper.shared.names import BookKeeperNames
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.volumes import Claim

MOST_LEDGER_VOLUMES = 8


def ledgers_claims(cluster: BookKeeperCluster, number: int) -> tuple[str, ...]:
    named = cluster.names
    return tuple(named.ledgers_claim(number, volume) for volume in range(cluster.spec.ledgers.volumes))


def claim_names(cluster: BookKeeperCluster, number: int) -> tuple[str, ...]:
    """Returns the names of all claims of bookie `number`, the journal's first."""
    named = cluster.names
    return (named.journal_claim(number), *ledgers_claims(cluster, number))


def volumes_found(cluster: BookKeeperCluster, objects: Objects, cookies: frozenset[str]) -> int | None:
    """Returns the number of ledger volumes of bookies that have served; None if no such bookie has one.

    Their StatefulSets know of lost claims; if none is left, existing claims count.
    """
    bound = {
        volume.get("persistentVolumeClaim", {}).get("claimName")
        for item in objects.of_kind("StatefulSet")
        for volume in item["spec"]["template"]["spec"].get("volumes") or []
    }
    named = cluster.names
    served = sorted({number for cookie in cookies if (number := named.number_of(cookie)) is not None})
    volumes = {named.ledgers_claim(number, volume): volume for number in served for volume in range(MOST_LEDGER_VOLUMES)}
    there = [name for name in volumes if name in bound] or [name for name in volumes if name in objects.claims]
    return max((volumes[name] + 1 for name in there), default=None)


def known_instance_id(cluster: BookKeeperCluster, objects: Objects) -> str | None:
    """Returns the id of the metadata to which the volumes belong, by the status or else the bookies' ConfigMap. None for a new cluster."""
    if cluster.status is not None and cluster.status.instance_id:
        return cluster.status.instance_id
    return objects.data("ConfigMap", cluster.names.config_map).get(names.INSTANCE_ID_KEY, "").strip() or None


def claims_of(cluster: BookKeeperCluster, number: int, objects: Objects) -> dict[str, Claim | None]:
    """Returns all claims of bookie `number` by name; None for a missing one."""
    return {name: objects.claims.get(name) for name in claim_names(cluster, number)}


def known_claims(cluster: BookKeeperCluster, objects: Objects, cookies: frozenset[str]) -> tuple[str, ...]:
    """Returns the names of the claims of all bookies that have a StatefulSet or a cookie, whether the claims exist or not."""
    known = (*(item["metadata"]["name"] for item in objects.of_kind("StatefulSet")), *cookies)
    numbers = sorted({number for name in known if (number := cluster.names.number_of(name)) is not None})
    return tuple(name for number in numbers for name in claim_names(cluster, number))


def bookie_ids(named: BookKeeperNames, objects: Objects, cookies: frozenset[str], number: int) -> tuple[str, ...]:
    """Returns every identity of a number: on its claims, in its StatefulSet, among the cookies. More than one is an error."""
    marked = {
        claim.annotations.get(names.BOOKIE_ID_ANNOTATION) for name, claim in objects.claims.items() if named.number_of_claim(name) == number
    }
    item = objects.get("StatefulSet", named.stateful_set(number))
    containers = item["spec"]["template"]["spec"]["containers"] if item is not None else []
    given = {entry.get("value") for container in containers for entry in container.get("env") or [] if entry["name"] == "BOOKIE_ID"}
    return tuple(sorted(filter(None, {*marked, *given, *(cookie for cookie in cookies if named.number_of(cookie) == number)})))


def with_claimed_sizes(cluster: BookKeeperCluster, numbers: Sequence[int], objects: Objects) -> BookKeeperCluster:
    """Returns the cluster with the sizes of its volumes: the smallest of all that claims request and that volumes have. Files must fit
    before a volume has grown, too, and where it can't have the spec's size. Sizes without a claim are the spec's.
    """
    named = cluster.names
    journals = [named.journal_claim(number) for number in numbers]
    ledgers = [name for number in numbers for name in ledgers_claims(cluster, number)]
    spec = cluster.spec
    sized = {
        "journal": _with_size(spec.journal, _smallest(journals, objects)),
        "ledgers": _with_size(spec.ledgers, _smallest(ledgers, objects)),
    }
    return cluster.model_copy(update={"spec": spec.model_copy(update=sized)})


def _smallest(claims: Iterable[str], objects: Objects) -> int | None:
    known = [objects.claims[name] for name in claims if name in objects.claims]
    sizes = (size for claim in known for size in (claim.requested_bytes, claim.capacity_bytes))
    return min((size for size in sizes if size is not None), default=None)


def _with_size(volume: VolumeClaim, size: int | None) -> VolumeClaim:
    return volume if size is None else volume.model_copy(update={"size": f"{size // 1024}Ki"})
