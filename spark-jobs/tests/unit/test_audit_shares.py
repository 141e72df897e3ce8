"""Shares of bookies, column by column: what the metadata expects against what was read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from played_bookie import ledger

from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata, Segment
from herdkeeper_jobs.audit.schema import HOLDINGS_ARROW, holdings_from_table, holdings_to_batch
from herdkeeper_jobs.audit.shares import CopiesLostError, Matched, match, segments_of
from herdkeeper_jobs.copies.holding import CopyState, Holding
from herdkeeper_jobs.copies.plan import AuditedLedger, HoldingCheck, holding_checks

NAMES = ("b0", "b1", "b2")


def audited(metadata: LedgerMetadata, last: int) -> AuditedLedger:
    return AuditedLedger(metadata, last)


def good(check: HoldingCheck) -> Holding:
    first, last = check.entries.first, check.entries.last
    return Holding(check.ledger_id, check.segment, check.bookie_id, check.position, CopyState.VERIFIED, first, last, check.copies, 5)


def matched(ledgers: Iterable[AuditedLedger], holdings: Iterable[Holding]) -> Matched:
    return match(segments_of(ledgers), pa.Table.from_batches([holdings_to_batch(holdings)], HOLDINGS_ARROW))


@st.composite
def ledgers(draw: st.DrawFn) -> list[AuditedLedger]:
    found = []
    for ledger_id in draw(st.lists(st.integers(0, 2**62), unique=True, max_size=5)):
        size = draw(st.integers(1, 6))
        bookies = tuple(f"b{number}" for number in draw(st.permutations(range(7)))[:size])
        starts = [0, *sorted(draw(st.sets(st.integers(1, 60), max_size=3)))]
        quorum = draw(st.integers(1, size))
        whole = replace(ledger(ledger_id, 80, bookies, (quorum, 1)), segments=tuple(Segment(start, bookies) for start in starts))
        found.append(audited(whole, draw(st.integers(-1, 80))))
    return found


@settings(deadline=None)
@given(ledgers())
def test_each_share_has_as_many_copies_as_the_checks_of_the_plan_say(wanted: list[AuditedLedger]) -> None:
    checks = [check for each in wanted for check in holding_checks(each)]
    found = matched(wanted, reversed([good(check) for check in checks]))
    assert {name: tally.in_state(*CopyState) for name, tally in found.tallies.items() if tally.ledgers} == {
        name: sum(check.copies for check in checks if check.bookie_id == name) for name in {check.bookie_id for check in checks}
    }
    assert {name: tally.ledgers for name, tally in found.tallies.items() if tally.ledgers} == {
        name: len({check.ledger_id for check in checks if check.bookie_id == name}) for name in {check.bookie_id for check in checks}
    }
    assert found.suspects.num_rows == 0


def test_a_ledger_with_a_bad_copy_yields_all_holdings_and_counts_only_its_bytes() -> None:
    wanted = [audited(ledger(number, 9, NAMES), 9) for number in (1, 2)]
    holdings = [good(check) for each in wanted for check in holding_checks(each)]
    bad = replace(holdings[4], state=CopyState.CORRUPT)
    found = matched(wanted, [*holdings[:4], bad, holdings[5]])
    assert set(holdings_from_table(found.suspects)) == {holdings[3], bad, holdings[5]}
    assert {(tally.ledgers, tally.bytes_read, tally.in_state(*CopyState)) for tally in found.tallies.values()} == {(1, 10, 10)}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"copies": 9}, "30 copies were to be read, 29 came back; 1 shares are wrong, the first in ledger 1 on bookie b0: 10 and 9"),
        ({"copies": 11}, "30 copies were to be read, 31 came back; .* 10 and 11"),
        ({"position": 1}, "ledger 1: copies came back from a bookie that got no request for them"),
        ({"bookie_id": "b9"}, "ledger 1: copies came back from a bookie"),
        ({"segment": 1}, "a segment that was not requested"),
        ({"ledger_id": 7}, "a segment that was not requested"),
    ],
    ids=["too few", "too many", "another position", "another bookie", "another segment", "another ledger"],
)
def test_anything_but_exactly_the_requested_copies_is_refused(change: dict[str, object], words: str) -> None:
    wanted = [audited(ledger(1, 9, NAMES), 9)]
    first, *others = (good(check) for check in holding_checks(wanted[0]))
    with pytest.raises(CopiesLostError, match=words):
        matched(wanted, [replace(first, **change), *others])


def test_a_loss_on_one_bookie_is_not_made_up_for_by_a_surplus_on_another() -> None:
    wanted = [audited(ledger(1, 9, NAMES), 9)]
    first, second, third = (good(check) for check in holding_checks(wanted[0]))
    with pytest.raises(CopiesLostError, match="30 came back; 2 shares are wrong"):
        matched(wanted, [replace(first, copies=9), replace(second, copies=11), third])
