"""Which bookies a cluster has, drains and gets, by number (docs/decisions/0205).

A bookie that lost a disk does not count as a declared one: a new one starts before it is retired.
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
    """All ascending. `staying` and `leaving` exist; `new` have yet to be created; `lost` still exist, but no longer serve."""

    staying: tuple[int, ...]
    leaving: tuple[int, ...]
    new: tuple[int, ...]
    lost: tuple[LostBookie, ...] = ()

    @property
    def existing(self) -> tuple[int, ...]:
        return tuple(sorted((*self.staying, *self.leaving, *(lost.number for lost in self.lost))))

    @property
    def wanted(self) -> tuple[int, ...]:
        """All that should remain."""
        return (*self.staying, *self.new)


def bookie_numbers(cluster: BookKeeperCluster, objects: Objects, metadata: LedgersMetadata | None) -> BookieNumbers:
    """Returns which bookies stay and which drain: those in spec.drain, then the highest numbers beyond spec.bookies. Without metadata no
    bookie counts as lost.

    A bookie whose identity is being removed is drained whatever the spec says: it can't come back.
    """
    named = cluster.names
    cookies = metadata.cookies if metadata is not None else frozenset()
    existing = _existing(named, objects, cookies)
    retired = {number for number in existing if is_retired(named, objects, cookies, number)}
    lost = _lost(cluster, [number for number in existing if number not in retired], objects, metadata)
    gone = {each.number for each in lost}
    refused = retired | set(cluster.spec.drain) | gone
    staying = [number for number in existing if number not in refused][: cluster.spec.bookies]
    leaving = (number for number in existing if number not in staying and number not in gone)
    # one that is still registered may still serve: it is replaced after its session has ended
    missing = cluster.spec.bookies - len(staying) - sum(bool(each.registered) for each in lost)
    first = next_number(cluster, existing)
    free = (number for number in range(first, first + cluster.spec.bookies + len(cluster.spec.drain)) if number not in cluster.spec.drain)
    new = [number for number, _ in zip(free, range(missing), strict=False)]
    return BookieNumbers(tuple(staying), tuple(leaving), tuple(new), lost)


def next_number(cluster: BookKeeperCluster, existing: tuple[int, ...]) -> int:
    remembered = cluster.status.next_bookie if cluster.status is not None else None
    return max(remembered or 0, max(existing, default=-1) + 1)


def scaled_to_zero(named: BookKeeperNames, objects: Objects, number: int) -> bool:
    """Returns whether the operator stopped the bookie for good. A manual `kubectl scale` sets no annotation."""
    item = objects.get("StatefulSet", named.stateful_set(number))
    return item is not None and annotation(item, names.RETIRING_ANNOTATION) is not None and item["spec"].get("replicas") == 0


def is_retired(named: BookKeeperNames, objects: Objects, cookies: frozenset[str], number: int) -> bool:
    """Returns whether the bookie's identity is removed or being removed. Its volumes are then of no use."""
    if not scaled_to_zero(named, objects, number):
        return False
    return objects.get("Job", named.retire_job(number)) is not None or not any(named.number_of(cookie) == number for cookie in cookies)


def ids_that_served(named: BookKeeperNames, objects: Objects, metadata: LedgersMetadata) -> frozenset[str]:
    """Returns the ids that must not start on empty volumes: they have a cookie, serve, or had one (by the ConfigMap) and have claims."""
    before = objects.data("ConfigMap", named.config_map).get(names.KNOWN_BOOKIES_KEY, "").split()
    claimed = {claim.annotations.get(names.BOOKIE_ID_ANNOTATION) for claim in objects.claims.values()}
    return metadata.cookies | metadata.registered | {bookie_id for bookie_id in before if bookie_id in claimed}


def _lost(cluster: BookKeeperCluster, numbers: Iterable[int], objects: Objects, metadata: LedgersMetadata | None) -> tuple[LostBookie, ...]:
    if metadata is None:
        return ()
    return tuple(lost for number in numbers if (lost := lost_bookie(cluster, number, objects, metadata)) is not None)


def _existing(named: BookKeeperNames, objects: Objects, cookies: frozenset[str]) -> tuple[int, ...]:
    stateful_sets = (item["metadata"]["name"] for item in objects.of_kind("StatefulSet"))
    found = {*map(named.number_of, (*stateful_sets, *cookies)), *map(named.number_of_claim, objects.claims)}
    return tuple(sorted(number for number in found if number is not None))
