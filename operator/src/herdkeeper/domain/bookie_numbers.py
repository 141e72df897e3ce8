"""Which bookies a cluster has, shall lose and shall get, by their numbers.

A bookie lives as long as it has a volume claim, a StatefulSet or a cookie: what is in the cluster says who is there, nothing else does. A
new one gets a number above all that live now or lived before (status.nextBookie): names and hosts of a drained bookie are never somebody
else's.
"""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.api import BookKeeperCluster
from herdkeeper.domain import names
from herdkeeper.domain.names import BookKeeperNames, ObjectKey
from herdkeeper.domain.observed.bookkeeper import LedgersMetadata
from herdkeeper.domain.observed.objects import Objects, annotation


@dataclass(frozen=True)
class BookieNumbers:
    """All ascending. `staying` and `leaving` live; `new` have yet to be made."""

    staying: tuple[int, ...]
    leaving: tuple[int, ...]
    new: tuple[int, ...]

    @property
    def living(self) -> tuple[int, ...]:
        """All that are there."""
        return tuple(sorted((*self.staying, *self.leaving)))

    @property
    def wanted(self) -> tuple[int, ...]:
        """All that shall be there in the end."""
        return (*self.staying, *self.new)


def bookie_numbers(cluster: BookKeeperCluster, objects: Objects, cookies: frozenset[str]) -> BookieNumbers:
    """Who stays and who leaves: those that spec.drain names, then the highest numbers beyond spec.bookies.

    One whose identity is being removed can't come back: it leaves whatever the spec says by now.
    """
    named = BookKeeperNames(ObjectKey(cluster.metadata.namespace, cluster.metadata.name))
    living = _living(named, objects, cookies)
    refused = set(cluster.spec.drain) | {number for number in living if is_retired(named, objects, cookies, number)}
    staying = [number for number in living if number not in refused][: cluster.spec.bookies]
    first = next_number(cluster, living)
    free = (number for number in range(first, first + cluster.spec.bookies + len(cluster.spec.drain)) if number not in cluster.spec.drain)
    new = [number for number, _ in zip(free, range(cluster.spec.bookies - len(staying)), strict=False)]
    return BookieNumbers(tuple(staying), tuple(number for number in living if number not in staying), tuple(new))


def next_number(cluster: BookKeeperCluster, living: tuple[int, ...]) -> int:
    """The number above all that were ever given."""
    remembered = cluster.status.next_bookie if cluster.status is not None else None
    return max(remembered or 0, max(living, default=-1) + 1)


def scaled_to_zero(named: BookKeeperNames, objects: Objects, number: int) -> bool:
    """Whether the operator itself stopped the bookie for good: somebody else's `kubectl scale` sets no annotation."""
    item = objects.get("StatefulSet", named.stateful_set(number))
    return item is not None and annotation(item, names.RETIRING_ANNOTATION) is not None and item["spec"].get("replicas") == 0


def is_retired(named: BookKeeperNames, objects: Objects, cookies: frozenset[str], number: int) -> bool:
    """Whether the bookie's identity is gone, or about to: with it, its volumes are of no use to anybody."""
    if not scaled_to_zero(named, objects, number):
        return False
    return objects.get("Job", named.retire_job(number)) is not None or not any(named.number_of(cookie) == number for cookie in cookies)


def bookie_ids(named: BookKeeperNames, objects: Objects, cookies: frozenset[str], number: int) -> frozenset[str]:
    """Every identity that a number is seen with: on its claims, in its StatefulSet, among the cookies. More than one is trouble."""
    claims = (claim for claim in objects.of_kind("PersistentVolumeClaim") if named.number_of(claim["metadata"]["name"]) == number)
    marked = {annotation(claim, names.BOOKIE_ID_ANNOTATION) for claim in claims}
    item = objects.get("StatefulSet", named.stateful_set(number))
    containers = item["spec"]["template"]["spec"]["containers"] if item is not None else []
    given = {entry.get("value") for container in containers for entry in container.get("env") or [] if entry["name"] == "BOOKIE_ID"}
    return frozenset(
        str(found) for found in {*marked, *given, *(cookie for cookie in cookies if named.number_of(cookie) == number)} if found
    )


def ids_that_served(named: BookKeeperNames, objects: Objects, metadata: LedgersMetadata) -> frozenset[str]:
    """The ids that no bookie may have on empty volumes: they have a cookie, serve, or had one (the ConfigMap tells) and have claims."""
    item = objects.get("ConfigMap", named.config_map) or {}
    before = ((item.get("data") or {}).get(names.KNOWN_BOOKIES_KEY) or "").split()
    claimed = {annotation(claim, names.BOOKIE_ID_ANNOTATION) for claim in objects.of_kind("PersistentVolumeClaim")}
    return metadata.cookies | metadata.writable | metadata.read_only | {bookie_id for bookie_id in before if bookie_id in claimed}


def _living(named: BookKeeperNames, objects: Objects, cookies: frozenset[str]) -> tuple[int, ...]:
    seen = [item["metadata"]["name"] for kind in ("StatefulSet", "PersistentVolumeClaim") for item in objects.of_kind(kind)]
    found = {named.number_of(name) for name in (*seen, *cookies)}
    return tuple(sorted(number for number in found if number is not None))
