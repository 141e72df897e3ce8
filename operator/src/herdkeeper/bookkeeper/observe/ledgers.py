"""Reads the metadata of all ledgers of a cluster, for drains, restarts and lost disks (docs/decisions/0013).

A scan takes a while, and ledgers change behind it. It is acted by only if what was observed before it still holds after it
(`BookieFleet.seen_before_a_scan`): a bookie that took no new ledger meanwhile can't come to be named by one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from herdkeeper.api import HerdDBCluster
from herdkeeper.bookkeeper.state.bookies import BeingScanned, LedgerScan, Naming, good_for_seconds
from herdkeeper.clients.paged_reads import PagedAnswer, PagedReads, Question
from herdkeeper.clients.zookeeper import Znodes
from herdkeeper.clients.zookeeper_member import Wake
from herdkeeper.codecs.bookkeeper.layout import LedgerLayout, decode_layout, inner_levels, ledger_id_of
from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata, decode_ledger_metadata
from herdkeeper.codecs.bookkeeper.placement import PlacementBreaches, PlacementRule, breaks_placement
from herdkeeper.codecs.bookkeeper.share import Share, share_of
from herdkeeper.codecs.bookkeeper.striping import has_entries_only_on
from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.shared.unknown import Unknown

MOST_LEDGERS = 200_000
"""The operator's memory is made for so many."""
MOST_KEPT = 600_000
"""Bookies that ledgers name, and places of the bookies that are looked for, in all ledgers together. For these, too."""
MOST_FOLDERS = 4
"""In the path of a ledger, in any layout."""
PAGE = 1000
"""Ledgers read at once: a tenth of a second."""


@dataclass(frozen=True)
class ScanRequest:
    """What a scan looks for: shares of these bookies, ensembles of these databases, ledgers that break the placement rule, and those with
    entries only on `lost` bookies. `seen` is what was observed before it.
    """

    bookies: tuple[str, ...]
    databases: tuple[HerdDBCluster, ...]
    rule: PlacementRule
    seen: Any = None
    lost: frozenset[str] = frozenset()

    @property
    def question(self) -> Question:
        """Returns what the result of a scan depends on."""
        sizes = frozenset(database.spec.ledgers.ensemble_size for database in self.databases)
        return Question((frozenset(self.bookies), self.lost, sizes, self.rule), self.seen)


@dataclass(frozen=True)
class LedgerScans:
    """The scans of one cluster, `root` in the ensemble that `znodes` reaches. `wake` is called once one ended that was not waited for."""

    reads: PagedReads
    place: str
    root: str
    znodes: Callable[[], Znodes]
    wake: Wake | None = None

    def recent(self, request: ScanRequest, *, needed: bool) -> LedgerScan | Unknown | None:
        """Returns the last scan, which is good enough to wait by. If it is too old, another one begins if `needed`; else it is None."""
        found = self._last(request)
        if found is not None and found.age_seconds < good_for_seconds(found.seconds):
            return _told(found, request, to_act_by=False)
        if not needed:
            return None
        progress = self._ask(request)
        found = self._last(request)
        return BeingScanned.after(progress or "") if found is None else _told(found, request, to_act_by=False)

    def current(self, request: ScanRequest) -> LedgerScan | Unknown:
        """Returns a scan to act by, or how far it is."""
        found = self.reads.take(self.place, request.question)
        progress = self._ask(request) if found is None else None
        found = found or self.reads.take(self.place, request.question)
        return BeingScanned.after(progress or "") if found is None else _told(found, request, to_act_by=True)

    def _last(self, request: ScanRequest) -> PagedAnswer | None:
        found = self.reads.last(self.place)
        return found if found is not None and found.question.what == request.question.what else None

    def _ask(self, request: ScanRequest) -> str | None:
        return self.reads.ask(self.place, request.question, lambda: LedgersRead(self.znodes, self.root, request), self.wake)


def _told(found: PagedAnswer, request: ScanRequest, *, to_act_by: bool) -> LedgerScan | Unknown:
    scan: LedgerScan | Unknown = found.answer
    if isinstance(scan, Unknown):
        return scan
    return replace(scan, databases=request.databases, seconds=found.seconds, age_seconds=found.age_seconds, to_act_by=to_act_by)


class LedgersRead:
    """A scan in pages: first the paths of all ledgers, folder by folder, then their metadata. See PagedRead.

    Each page asks for Znodes anew. So it goes on by another session after the loss of one, and none is older than the scan's begin.
    Unreadable metadata makes the whole scan Unknown: that ledger could name any bookie.
    """

    def __init__(self, znodes: Callable[[], Znodes], root: str, request: ScanRequest) -> None:
        self._znodes = znodes
        self._root = root
        self._tally = _Tally(request)
        self._layout: LedgerLayout | None = None
        self._folders: list[str] = []
        self._paths: list[str] = []
        self._found = 0

    @property
    def progress(self) -> str:
        return f"{self._found - len(self._paths)} of {self._found}"

    def read_page(self) -> LedgerScan | Unknown | None:
        znodes = self._znodes()
        try:
            if self._layout is None:
                return self._begin(znodes)
            if self._folders:
                return self._list(znodes, self._folders[-1])
            return self._read(znodes)
        except MalformedDataError as error:
            return Unknown(str(error))

    def _begin(self, znodes: Znodes) -> Unknown | None:
        found = znodes.read(f"{self._root}/LAYOUT")
        if found is None:
            return Unknown(f"{self._root} in ZooKeeper has no LAYOUT")
        layout = decode_layout(found[0])
        self._sort([f"/{name}" for name in znodes.children(self._root) or () if inner_levels(layout, name) is not None])
        self._layout = layout
        return None

    def _list(self, znodes: Znodes, folder: str) -> Unknown | None:
        below = [f"{folder}/{name}" for name in znodes.children(self._root + folder) or ()]
        self._folders.pop()
        self._sort(below)
        if max(self._found, len(self._folders)) > MOST_LEDGERS:
            return Unknown(f"there are more than {MOST_LEDGERS} ledgers, the most that this version reads")
        return None

    def _sort(self, paths: list[str]) -> None:
        """A node is a ledger, or has ledgers below it. Deeper than MOST_FOLDERS there are none, whatever a strange server answers."""
        ledgers = [path for path in paths if ledger_id_of(path) is not None]
        self._folders += [path for path in paths if ledger_id_of(path) is None and path.count("/") <= MOST_FOLDERS]
        self._paths += ledgers
        self._found += len(ledgers)

    def _read(self, znodes: Znodes) -> LedgerScan | None:
        page = self._paths[-PAGE:]
        for path, data in zip(page, znodes.read_many([self._root + path for path in page]), strict=True):
            ledger_id = ledger_id_of(path)
            if data is not None and ledger_id is not None:  # else deleted since its folder was listed
                self._tally.add(decode_ledger_metadata(ledger_id, data))
        del self._paths[-PAGE:]
        return None if self._paths else self._tally.scan()


@dataclass
class _Tally:
    """What was found so far. `counts` are of the ledgers that name a bookie: closed ones, others, the largest ensemble."""

    request: ScanRequest
    ledgers: int = 0
    shares: dict[str, list[Share]] = field(default_factory=dict)
    counts: dict[str, list[int]] = field(default_factory=dict)
    breaking: list[int] = field(default_factory=list)
    uncopied: list[int] = field(default_factory=list)
    places: int = 0

    def __post_init__(self) -> None:
        self.shares = {bookie_id: [] for bookie_id in self.request.bookies}
        self.largest = max((database.spec.ledgers.ensemble_size for database in self.request.databases), default=0)
        self.still_open = self.largest

    def add(self, metadata: LedgerMetadata) -> None:
        """Count a ledger. Raises MalformedDataError if there is more to keep than fits."""
        self.ledgers, lost = self.ledgers + 1, self.request.lost
        self.largest = max(self.largest, metadata.ensemble_size)
        self.still_open = self.still_open if metadata.closed else max(self.still_open, metadata.ensemble_size)
        self.uncopied += [metadata.ledger_id] if lost and has_entries_only_on(metadata, lost) else []
        self.breaking += [metadata.ledger_id] if breaks_placement(metadata, self.request.rule) else []
        for bookie_id in {bookie_id for segment in metadata.segments for bookie_id in segment.bookies}:
            count = self.counts.setdefault(bookie_id, [0, 0, 0])
            count[0 if metadata.closed else 1] += 1
            count[2] = max(count[2], metadata.ensemble_size)
        for bookie_id, own in self.shares.items():
            share = share_of(metadata, bookie_id)
            if share is not None:
                own.append(share)
                self.places += len(share.places)
        if len(self.counts) + self.places > MOST_KEPT:
            raise MalformedDataError(f"ledgers name bookies, and places of them, more than {MOST_KEPT} in all: this version reads no more")

    def scan(self) -> LedgerScan:
        ordered = {bookie_id: tuple(sorted(own, key=lambda share: share.ledger_id)) for bookie_id, own in self.shares.items()}
        naming = {bookie_id: Naming(*count) for bookie_id, count in sorted(self.counts.items())}
        breaches, uncopied = PlacementBreaches.of(self.breaking), tuple(sorted(self.uncopied))
        return LedgerScan(self.ledgers, self.largest, self.still_open, ordered, naming, breaches=breaches, uncopied=uncopied)
