"""Locates disagreements between good copies: reads these segments again, and the entries of doubtful blocks one by one.

It is hardly ever needed. So the first pass keeps only a sum per share. The price is paid here: all copies of a doubtful segment are read
again, and those of single blocks once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import structlog

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper.codecs.bookkeeper.striping import EntryRange
from herdkeeper.protocol.audit_finding import AuditDepth, Finding
from herdkeeper_jobs.audit.bookie_health import BookieTally, added
from herdkeeper_jobs.audit.comparison import blocks_in_doubt, contradicted, findings_of_lengths, segments_in_doubt
from herdkeeper_jobs.audit.copy_reader import CopyReader
from herdkeeper_jobs.copies.holding import Holding
from herdkeeper_jobs.copies.plan import AuditedLedger, HoldingCheck, Reading, holding_checks, restricted

BLOCK = 1_024
"""Entries."""
_MOST_BLOCKS = 64
"""So many blocks, over some thousands of ledgers, are compared by entry; further ones are reported as a whole."""
_Blocks = Sequence[tuple[int, EntryRange]]
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ThirdPass:
    """The result for ledgers with copies that disagreed, or could not be compared."""

    untrusted: Mapping[int, Sequence[Holding]] = field(default_factory=dict)
    """By ledger: copies that others contradict."""
    newest: Mapping[int, Sequence[Holding]] = field(default_factory=dict)
    """By ledger: all holdings of places with a copy that is not intact, without bytes. They replace intact ones of the earlier passes:
    what could be read then, but not when it was to be compared, must not count as good."""
    findings: tuple[Finding, ...] = ()
    """About lengths."""
    tallies: Mapping[str, BookieTally] = field(default_factory=dict)
    """By bookie: only the bytes read again."""


def third_pass(
    seen: Mapping[int, tuple[AuditedLedger, Sequence[Holding]]],
    depth: AuditDepth,
    reader: CopyReader,
    addresses: Mapping[str, BookieAddress],
) -> ThirdPass:
    """Runs the third pass. `seen`: current ledgers with all holdings of both earlier passes. Raises CopiesLostError."""
    partly_read = depth is AuditDepth.DEEP
    doubted = {ledger_id: segments_in_doubt(ledger, holdings, partly_read) for ledger_id, (ledger, holdings) in seen.items()}
    checks = [
        replace(check, block=BLOCK, reading=Reading.SUSPECTS)
        for ledger_id, segments in doubted.items()
        if segments
        for check in _with_content(*seen[ledger_id])
        if check.segment in segments
    ]
    if not checks:
        return ThirdPass()
    _log.info("third pass", ledgers=sum(1 for segments in doubted.values() if segments), copies=sum(check.copies for check in checks))
    in_blocks = reader.holdings(checks, addresses)
    blocks = {ledger_id: blocks_in_doubt(seen[ledger_id][0], own, BLOCK) for ledger_id, own in in_blocks.items()}
    narrowed = _first_of(blocks, _MOST_BLOCKS)
    single = reader.holdings([part for check in checks for part in _parts(check, narrowed.get(check.ledger_id, ()))], addresses)
    untrusted: dict[int, list[Holding]] = {}
    newest: dict[int, list[Holding]] = {}
    findings: list[Finding] = []
    for ledger_id, own in in_blocks.items():
        ledger, entries = seen[ledger_id][0], single.get(ledger_id, [])
        others = [each for each in own if not _lies_in(each, narrowed.get(ledger_id, ()))]
        untrusted[ledger_id] = [*contradicted(ledger, entries, 1), *contradicted(ledger, others, BLOCK)]
        newest[ledger_id] = _of_places_with_trouble([*others, *entries])
        findings.extend(findings_of_lengths(ledger, [*others, *entries], untrusted[ledger_id]))
    return ThirdPass(untrusted, newest, tuple(findings), bytes_read([*in_blocks.values(), *single.values()]))


def _with_content(ledger: AuditedLedger, holdings: Sequence[Holding]) -> list[HoldingCheck]:
    """The checks of places with an intact holding: the others offer nothing to compare."""
    intact = {holding.share for holding in holdings if holding.state.is_intact}
    return [check for check in holding_checks(ledger) if check.share in intact]


def _first_of(blocks: Mapping[int, _Blocks], most: int) -> dict[int, _Blocks]:
    taken: dict[int, _Blocks] = {}
    for ledger_id, own in blocks.items():
        taken[ledger_id] = own[: max(0, most)]
        most -= len(own)
    return taken


def _parts(check: HoldingCheck, blocks: _Blocks) -> Iterable[HoldingCheck]:
    """Splits a check into the blocks of its segment, to be read entry by entry."""
    parts = (restricted(check, entries) for segment, entries in blocks if segment == check.segment)
    return (replace(part, block=1, reading=Reading.EVERY_COPY) for part in parts if part is not None)


def _of_places_with_trouble(holdings: Sequence[Holding]) -> list[Holding]:
    troubled = {(each.segment, each.position) for each in holdings if not each.state.is_intact}
    return [replace(each, bytes_read=0) for each in holdings if (each.segment, each.position) in troubled]


def _lies_in(holding: Holding, blocks: _Blocks) -> bool:
    return any(segment == holding.segment and entries.first <= holding.first <= entries.last for segment, entries in blocks)


def bytes_read(passes: Iterable[Sequence[Holding]]) -> dict[str, BookieTally]:
    """Tallies of nothing but the bytes read, by bookie."""
    tallies: dict[str, BookieTally] = {}
    for own in passes:
        for holding in own:
            tallies = added(tallies, {holding.bookie_id: BookieTally(bytes_read=holding.bytes_read)})
    return tallies
