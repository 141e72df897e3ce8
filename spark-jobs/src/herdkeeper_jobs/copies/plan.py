"""Divides the expected copies into tasks: grouped by bookie, cut by size, with a rate per task. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import assert_never

from xxhash import xxh3_64_intdigest

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper.codecs.bookkeeper.entry import EntryDigest
from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata
from herdkeeper.codecs.bookkeeper.striping import EntryRange, Striping, segment_ranges, striping
from herdkeeper.protocol.audit_finding import AuditDepth
from herdkeeper_jobs.bookkeeper.reader import digest_of
from herdkeeper_jobs.copies.holding import Share

_TASKS_PER_CORE = 3
"""A task costs tens of milliseconds; a few per core balance bookies of different speed."""
_LEAST_TASK_BYTES = 4 * 1024 * 1024
"""Less is not worth a task."""
_ASSUMED_ENTRY_BYTES = 1024
"""For open ledgers, whose length is unknown."""
_ENTRY_OVERHEAD_BYTES = 64
_SAMPLE = 8
"""Entries that a light audit reads of a bookie's share of a segment: both ends, where losses on the way show, and six more."""
_INNER_PARTS = _SAMPLE - 2
_NO_BOUND = 2**63 - 1


class Reading(Enum):
    """Which of a check's copies are read."""

    EVERY_COPY = "EveryCopy"
    SAMPLE = "Sample"
    """Those of `HoldingCheck.sample`; every copy if one of these is bad."""
    SUSPECTS = "Suspects"
    """Every copy, but the first one alone before: a bookie without the ledger has none of its entries."""


@dataclass(frozen=True, slots=True)
class AuditedLedger:
    """A ledger as the audit read it."""

    metadata: LedgerMetadata
    last_entry_id: int
    """The last audited entry: a closed ledger's last one, else the last one known to be confirmed; -1 for none."""


@dataclass(frozen=True, slots=True)
class HoldingCheck:
    """The entries of one segment that one bookie should hold: those of `entries` that `striping` gives to `position`."""

    ledger_id: int
    segment: int
    bookie_id: str
    position: int
    entries: EntryRange
    striping: Striping
    digest: EntryDigest
    entry_bytes: int
    """Estimated size of an entry on the wire."""
    highest_lac: int | None
    """The highest possible LAC of an entry; None: below its own id (copies/inspection.py)."""
    reading: Reading = Reading.EVERY_COPY
    sample: tuple[int, ...] = ()
    block: int | None = None
    """No holding may cross a multiple of so many entries; None: no limit."""

    @property
    def share(self) -> Share:
        return self.segment, self.position, self.bookie_id

    @property
    def copies(self) -> int:
        """The number of these entries."""
        return self.striping.count_at(self.position, self.entries)

    @property
    def estimated_bytes(self) -> int:
        return (len(self.sample) if self.reading is Reading.SAMPLE else self.copies) * self.entry_bytes


@dataclass(frozen=True, slots=True)
class AuditTask:
    """What one Spark task checks, over one connection. Picklable."""

    bookie_id: str
    address: BookieAddress | None
    """None: the bookie is not registered."""
    checks: tuple[HoldingCheck, ...]
    bytes_per_second: float
    timeout_seconds: float


@dataclass(frozen=True, slots=True)
class AuditBudget:
    cores: int
    """Tasks that run at the same time."""
    bytes_per_second_per_bookie: float = float("inf")
    timeout_seconds: float = 15.0
    portion_bytes: int = 1024**3
    """Approximate bytes to read before progress is made durable (audit/portion.py)."""


def holding_checks(ledger: AuditedLedger) -> tuple[HoldingCheck, ...]:
    """Returns one check per segment and position that holds anything."""
    metadata = ledger.metadata
    spread = striping(metadata)
    checks = (
        HoldingCheck(
            ledger_id=metadata.ledger_id,
            segment=segment.segment,
            bookie_id=bookie_id,
            position=position,
            entries=segment.entries,
            striping=spread,
            digest=digest_of(metadata),
            entry_bytes=_entry_bytes(metadata),
            highest_lac=_highest_lac(metadata, segment.segment),
        )
        for segment in segment_ranges(metadata, ledger.last_entry_id)
        for position, bookie_id in enumerate(segment.bookies)
    )
    return tuple(check for check in checks if check.copies > 0)


def estimated_ledger_bytes(metadata: LedgerMetadata, depth: AuditDepth) -> int:
    """Estimates the bytes to read all copies of a ledger, or a sample; of an open ledger without its last segment."""
    last = metadata.segments[-1].first_entry_id - 1 if metadata.last_entry_id is None else metadata.last_entry_id
    copies = (last + 1) * metadata.write_quorum
    match depth:
        case AuditDepth.DEEP:
            read = copies
        case AuditDepth.LIGHT:
            read = min(copies, len(metadata.segments) * metadata.ensemble_size * _SAMPLE)
        case _:
            assert_never(depth)
    return read * _entry_bytes(metadata)


def sampled(check: HoldingCheck, seed: str) -> HoldingCheck:
    """Returns the check with a sample of its copies: both ends and, at random, one from each of equal parts between them.

    The same seed gives the same sample. A share no larger than a sample is read in full.
    """
    copies = check.copies
    if copies <= _SAMPLE:
        return check
    share, inner = f"{seed}/{check.ledger_id}/{check.segment}/{check.position}", copies - 2
    bounds = [1 + inner * part // _INNER_PARTS for part in range(_INNER_PARTS + 1)]
    # One hash per draw: seeding a generator costs as much as the rest of the plan, and a cluster has tens of millions of shares.
    drawn = (first + xxh3_64_intdigest(share, first) % (after - first) for first, after in itertools.pairwise(bounds))
    entries = tuple(check.striping.nth_at(check.position, check.entries, index) for index in (0, *drawn, copies - 1))
    return replace(check, reading=Reading.SAMPLE, sample=entries)


def restricted(check: HoldingCheck, entries: EntryRange) -> HoldingCheck | None:
    """Returns the part of a check within `entries`, without its sample; None if nothing is left."""
    first, last = max(check.entries.first, entries.first), min(check.entries.last, entries.last)
    if first > last:
        return None
    reading = Reading.EVERY_COPY if check.reading is Reading.SAMPLE else check.reading
    part = replace(check, entries=EntryRange(first, last), reading=reading, sample=())
    return part if part.copies > 0 else None


def plan_tasks(checks: Iterable[HoldingCheck], addresses: Mapping[str, BookieAddress], budget: AuditBudget) -> tuple[AuditTask, ...]:
    """Returns tasks of about equal size, each for one bookie. A bookie's rate is divided among its tasks that can run at once.

    Tasks of different bookies alternate, so that parallel tasks read from different ones.
    """
    by_bookie: dict[str, list[HoldingCheck]] = {}
    for check in checks:
        by_bookie.setdefault(check.bookie_id, []).append(check)
    total = sum(check.estimated_bytes for own in by_bookie.values() for check in own)
    share = max(_LEAST_TASK_BYTES, -(-total // (budget.cores * _TASKS_PER_CORE)))
    queues = []
    for bookie_id, own in sorted(by_bookie.items()):
        groups = _cut(own, share)
        rate = budget.bytes_per_second_per_bookie / min(len(groups), budget.cores)
        queues.append([AuditTask(bookie_id, addresses.get(bookie_id), tuple(group), rate, budget.timeout_seconds) for group in groups])
    return tuple(task for turn in itertools.zip_longest(*queues) for task in turn if task is not None)


def _cut(checks: Sequence[HoldingCheck], share: int) -> list[list[HoldingCheck]]:
    """Fills groups of `share` bytes in order; cuts a check between entries if it is too large."""
    groups: list[list[HoldingCheck]] = [[]]
    room = share
    for check in checks:
        rest: HoldingCheck | None = check
        while rest is not None:
            if room <= 0:
                groups.append([])
                room = share
            part, rest = _split(rest, room)
            groups[-1].append(part)
            room -= part.estimated_bytes
    return groups


def _split(check: HoldingCheck, room: int) -> tuple[HoldingCheck, HoldingCheck | None]:
    """Returns a first part of about `room` bytes with at least one copy, and the rest. A sample is never cut."""
    if check.estimated_bytes <= room or check.reading is Reading.SAMPLE:
        return check, None
    turns = max(1, room // (check.entry_bytes * check.striping.write_quorum))
    middle = check.entries.first + turns * check.striping.ensemble_size - 1
    first = restricted(check, EntryRange(check.entries.first, min(middle, check.entries.last)))
    rest = restricted(check, EntryRange(middle + 1, check.entries.last)) if middle < check.entries.last else None
    # A whole turn holds Wq copies, so the first part is never empty.
    assert first is not None
    return first, rest


def _highest_lac(metadata: LedgerMetadata, segment: int) -> int | None:
    if metadata.closed and metadata.last_entry_id is not None:
        return metadata.last_entry_id
    # Only the writer of an open ledger knows its current LAC.
    return None if segment == len(metadata.segments) - 1 else _NO_BOUND


def _entry_bytes(metadata: LedgerMetadata) -> int:
    if metadata.length is None or metadata.last_entry_id is None or metadata.last_entry_id < 0:
        return _ASSUMED_ENTRY_BYTES
    return metadata.length // (metadata.last_entry_id + 1) + _ENTRY_OVERHEAD_BYTES
