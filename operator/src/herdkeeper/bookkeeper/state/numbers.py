"""Which bookies a cluster has, drains and gets, by number.

A bookie lives as long as it has a volume claim, a StatefulSet or a cookie: what is in the cluster says who is there, nothing else does. A
new one gets a number above all that live now or lived before (status.nextBookie): names and hosts of a drained bookie are never somebody
else's. One that lost a disk counts for none of those that are declared: a new one starts beside it, before it is retired.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from herdkeeper.api import BookKeeperCluster
from herdkeeper.bookkeeper.state.bookies import LedgersMetadata
from herdkeeper.bookkeeper.state.lost_bookie import LostBookie, lost_bookie
from herdkeeper.shared import names
from herdkeeper.shared.names import BookKeeperNames
from herdkeeper.shared.objects import Objects, annotation


@dataclass(frozen=True)
class BookieNumbers:
    """All ascending. `staying` and `leaving` live; `new` have yet to be made; `lost` are there still, and serve no more."""

    staying: tuple[int, ...]
    leaving: tuple[int, ...]
    new: tuple[int, ...]
    lost: tuple[LostBookie, ...] = ()

    @property
    def existing(self) -> tuple[int, ...]:
        """All that exist."""
        return tuple(sorted((*self.staying, *self.leaving, *(lost.number for lost in self.lost))))

    @property
    def wanted(self) -> tuple[int, ...]:
        """All that remain in the end."""
        return (*self.staying, *self.new)


def bookie_numbers(cluster: BookKeeperCluster, objects: Objects, metadata: LedgersMetadata | None) -> BookieNumbers:
    """Which bookies stay and which drain: those in spec.drain, then the highest numbers beyond spec.bookies. Without metadata no bookie
    counts as lost.

    One whose identity is being removed can't come back: it is drained whatever the spec says now.
    """
    named = cluster.names
    cookies = metadata.cookies if metadata is not None else frozenset()
    existing = _existing(named, objects, cookies)
    retired = {number for number in existing if is_retired(named, objects, cookies, number)}
    lost = _lost(cluster, [number for number in existing if number not in retired], objects, metadata)
    refused = retired | set(cluster.spec.drain) | {each.number for each in lost}
    staying = [number for number in existing if number not in refused][: cluster.spec.bookies]
    leaving = (number for number in existing if number not in staying and number not in {each.number for each in lost})
    # one that is still registered may still serve: it is replaced once its session has ended
    missing = cluster.spec.bookies - len(staying) - sum(bool(each.registered) for each in lost)
    first = next_number(cluster, existing)
    free = (number for number in range(first, first + cluster.spec.bookies + len(cluster.spec.drain)) if number not in cluster.spec.drain)
    new = [number for number, _ in zip(free, range(missing), strict=False)]
    return BookieNumbers(tuple(staying), tuple(leaving), tuple(new), lost)


def next_number(cluster: BookKeeperCluster, existing: tuple[int, ...]) -> int:
    """The next unused number."""
    remembered = cluster.status.next_bookie if cluster.status is not None else None
    return max(remembered or 0, max(existing, default=-1) + 1)


def scaled_to_zero(named: BookKeeperNames, objects: Objects, number: int) -> bool:
    """Whether the operator itself stopped the bookie for good: somebody else's `kubectl scale` sets no annotation."""
    item = objects.get("StatefulSet", named.stateful_set(number))
    return item is not None and annotation(item, names.RETIRING_ANNOTATION) is not None and item["spec"].get("replicas") == 0


def is_retired(named: BookKeeperNames, objects: Objects, cookies: frozenset[str], number: int) -> bool:
    """Whether the bookie's identity is gone, or about to: with it, its volumes are of no use to anybody."""
    if not scaled_to_zero(named, objects, number):
        return False
    return objects.get("Job", named.retire_job(number)) is not None or not any(named.number_of(cookie) == number for cookie in cookies)


def ids_that_served(named: BookKeeperNames, objects: Objects, metadata: LedgersMetadata) -> frozenset[str]:
    """The ids that no bookie may have on empty volumes: they have a cookie, serve, or had one (the ConfigMap tells) and have claims."""
    item = objects.get("ConfigMap", named.config_map) or {}
    before = ((item.get("data") or {}).get(names.KNOWN_BOOKIES_KEY) or "").split()
    claimed = {annotation(claim, names.BOOKIE_ID_ANNOTATION) for claim in objects.of_kind("PersistentVolumeClaim")}
    return metadata.cookies | metadata.writable | metadata.read_only | {bookie_id for bookie_id in before if bookie_id in claimed}


def _lost(cluster: BookKeeperCluster, numbers: Iterable[int], objects: Objects, metadata: LedgersMetadata | None) -> tuple[LostBookie, ...]:
    if metadata is None:
        return ()
    return tuple(lost for number in numbers if (lost := lost_bookie(cluster, number, objects, metadata)) is not None)


def _existing(named: BookKeeperNames, objects: Objects, cookies: frozenset[str]) -> tuple[int, ...]:
    seen = [item["metadata"]["name"] for kind in ("StatefulSet", "PersistentVolumeClaim") for item in objects.of_kind(kind)]
    found = {named.number_of(name) for name in (*seen, *cookies)}
    return tuple(sorted(number for number in found if number is not None))
