"""Reads the metadata of all ledgers of a cluster, for drains, restarts and lost disks. See codecs/bookkeeper/layout.py."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

from herdkeeper.api import HerdDBCluster
from herdkeeper.bookkeeper.state.bookies import LedgerScan, Naming
from herdkeeper.clients.answer_cache import AnswerCache
from herdkeeper.clients.zookeeper import EnsembleError, Znodes
from herdkeeper.codecs.bookkeeper.layout import LedgerLayout, decode_layout, inner_levels, ledger_id_of
from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata, decode_ledger_metadata
from herdkeeper.codecs.bookkeeper.placement import PlacementBreaches, PlacementRule, breaks_placement
from herdkeeper.codecs.bookkeeper.share import Share, share_of
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.shared.unknown import Unknown

MOST_LEDGERS = 200_000
"""A scan reads some ten thousand ledgers a second. Beyond this number it would take too long for a reconcile."""


@dataclass(frozen=True)
class ScanRequest:
    """What a scan looks for: shares of these bookies, ensembles of these databases, and ledgers that break the placement rule."""

    bookies: tuple[str, ...]
    databases: tuple[HerdDBCluster, ...]
    rule: PlacementRule

    @property
    def of_ledgers(self) -> tuple[frozenset[str], frozenset[int], PlacementRule]:
        """Returns what the result of a scan depends on."""
        return frozenset(self.bookies), frozenset(database.spec.ledgers.ensemble_size for database in self.databases), self.rule


def cache_scan(scans: AnswerCache, place: str, request: ScanRequest, scan: LedgerScan | Unknown) -> LedgerScan | Unknown:
    """Returns the scan and caches it. A failed scan clears the cache."""
    if isinstance(scan, LedgerScan):
        scans.keep(place, request, scan)
    else:
        scans.forget(place)
    return scan


def recent_scan(scans: AnswerCache, place: str, request: ScanRequest) -> LedgerScan | None:
    """Returns the last scan, with its age and the current databases. None if it is too old or was for another request."""
    kept = scans.of(place)
    if kept is None or kept.request.of_ledgers != request.of_ledgers or kept.age_seconds >= kept.answer.good_for_seconds:
        return None
    scan: LedgerScan = replace(kept.answer, databases=request.databases, age_seconds=kept.age_seconds)
    return scan


def scan_ledgers(znodes: Znodes, root: str, request: ScanRequest) -> LedgerScan | Unknown:
    """Returns the requested facts from the metadata of all ledgers, and how many name each bookie.

    Unreadable metadata makes the whole scan Unknown: that ledger could name any bookie.
    """
    begun = time.monotonic()
    try:
        layout = znodes.read(f"{root}/LAYOUT")
        if layout is None:
            return Unknown(f"{root} in ZooKeeper has no LAYOUT")
        paths = _ledger_paths(znodes, root, decode_layout(layout[0]))
        if len(paths) > MOST_LEDGERS:
            return Unknown(f"there are {len(paths)} ledgers; this version reads at most {MOST_LEDGERS}")
        scan = _scan(root, paths, znodes.read_many(paths), request)
        return replace(scan, seconds=time.monotonic() - begun)
    except (EnsembleError, MalformedDataError) as error:
        return Unknown(str(error))


def _scan(root: str, paths: list[str], found: Iterable[bytes | None], request: ScanRequest) -> LedgerScan:
    largest = max((database.spec.ledgers.ensemble_size for database in request.databases), default=0)
    shares: dict[str, list[Share]] = {bookie_id: [] for bookie_id in request.bookies}
    counts: dict[str, list[int]] = {}
    breaking: list[int] = []
    ledgers, still_open = 0, largest
    for path, data in zip(paths, found, strict=True):
        ledger_id = ledger_id_of(path.removeprefix(root))
        if data is None or ledger_id is None:
            continue  # deleted since its parent was read
        metadata = decode_ledger_metadata(ledger_id, data)
        ledgers += 1
        largest = max(largest, metadata.ensemble_size)
        still_open = still_open if metadata.closed else max(still_open, metadata.ensemble_size)
        _count(metadata, counts)
        breaking += [ledger_id] if breaks_placement(metadata, request.rule) else []
        for bookie_id in request.bookies:
            share = share_of(metadata, bookie_id)
            if share is not None:
                shares[bookie_id].append(share)
    ordered = {bookie_id: tuple(sorted(own, key=lambda share: share.ledger_id)) for bookie_id, own in shares.items()}
    naming = {bookie_id: Naming(*count) for bookie_id, count in sorted(counts.items())}
    return LedgerScan(ledgers, largest, still_open, ordered, naming, request.databases, breaches=PlacementBreaches.of(breaking))


def _count(metadata: LedgerMetadata, counts: dict[str, list[int]]) -> None:
    """Add a ledger to the bookies that it names: closed ones, others, the largest ensemble."""
    for bookie_id in {bookie_id for segment in metadata.segments for bookie_id in segment.bookies}:
        count = counts.setdefault(bookie_id, [0, 0, 0])
        count[0 if metadata.closed else 1] += 1
        count[2] = max(count[2], metadata.ensemble_size)


def _ledger_paths(znodes: Znodes, root: str, layout: LedgerLayout) -> list[str]:
    """Walk the tree: a node is a ledger, or has ledgers below it."""
    found: list[str] = []
    level = [f"/{name}" for name in znodes.children(root) or () if inner_levels(layout, name) is not None]
    while level:
        found += [root + path for path in level if ledger_id_of(path) is not None]
        inner = [path for path in level if ledger_id_of(path) is None]
        level = [f"{path}/{name}" for path in inner for name in znodes.children(root + path) or ()]
    return found
