"""The audit's plan: every copy in exactly one task, bounded tasks, rates within a bookie's budget."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from played_bookie import ledger

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper.codecs.bookkeeper.metadata import LedgerMetadata, Segment
from herdkeeper_jobs.copies.plan import AuditBudget, AuditedLedger, holding_checks, plan_tasks

ADDRESSES = {f"b{number}": BookieAddress("h", 3181) for number in range(6)}


@st.composite
def ledgers(draw: st.DrawFn) -> list[AuditedLedger]:
    made = []
    for number in range(draw(st.integers(0, 5))):
        size = draw(st.integers(1, 4))
        write_quorum = draw(st.integers(1, size))
        last = draw(st.integers(-1, 80))
        firsts = [0, *sorted(draw(st.sets(st.integers(1, 90), max_size=3)))]
        segments = tuple(Segment(first, tuple(draw(st.permutations(sorted(ADDRESSES)))[:size])) for first in firsts)
        metadata: LedgerMetadata = replace(
            ledger(number, last, ("b",) * size, (write_quorum, 1)), length=(last + 1) * draw(st.integers(1, 3_000_000)), segments=segments
        )
        made.append(AuditedLedger(metadata, last))
    return made


def expected_copies(audited: list[AuditedLedger]) -> Counter[tuple[int, int, str]]:
    """All (ledger, entry, bookie), by iterating over every entry."""
    copies: Counter[tuple[int, int, str]] = Counter()
    for one in audited:
        metadata = one.metadata
        for entry_id in range(one.last_entry_id + 1):
            segment = [part for part in metadata.segments if part.first_entry_id <= entry_id][-1]
            for copy in range(metadata.write_quorum):
                copies[metadata.ledger_id, entry_id, segment.bookies[(entry_id + copy) % metadata.ensemble_size]] += 1
    return copies


@given(ledgers(), st.integers(1, 4))
def test_every_copy_is_planned_exactly_once_and_on_the_bookie_that_should_hold_it(audited: list[AuditedLedger], cores: int) -> None:
    tasks = plan_tasks([check for one in audited for check in holding_checks(one)], ADDRESSES, AuditBudget(cores))
    planned: Counter[tuple[int, int, str]] = Counter()
    for task in tasks:
        for check in task.checks:
            assert check.bookie_id == task.bookie_id
            own = list(check.striping.entries_at(check.position, check.entries))
            assert len(own) == check.copies > 0
            planned.update((check.ledger_id, entry_id, task.bookie_id) for entry_id in own)
    assert planned == expected_copies(audited)


@given(ledgers(), st.integers(1, 4), st.floats(1, 1e9))
def test_tasks_of_one_bookie_that_run_at_once_stay_within_its_budget(audited: list[AuditedLedger], cores: int, rate: float) -> None:
    tasks = plan_tasks([check for one in audited for check in holding_checks(one)], ADDRESSES, AuditBudget(cores, rate))
    for bookie_id in {task.bookie_id for task in tasks}:
        own = sorted((task.bytes_per_second for task in tasks if task.bookie_id == bookie_id), reverse=True)
        assert sum(own[:cores]) == pytest.approx(rate)


def test_a_large_ledger_is_cut_into_a_few_tasks_per_core_and_a_small_one_is_not() -> None:
    large = AuditedLedger(replace(ledger(1, 99_999, ("b0", "b1", "b2")), length=10**9), 99_999)
    small = AuditedLedger(ledger(2, 99, ("b0", "b1", "b2")), 99)
    assert 6 <= len(plan_tasks(holding_checks(large), ADDRESSES, AuditBudget(2))) <= 12
    assert len(plan_tasks(holding_checks(small), ADDRESSES, AuditBudget(2))) == 3


def test_tasks_that_run_at_the_same_time_read_from_different_bookies() -> None:
    large = AuditedLedger(replace(ledger(1, 99_999, ("b0", "b1", "b2")), length=10**9), 99_999)
    tasks = plan_tasks(holding_checks(large), ADDRESSES, AuditBudget(2))
    assert len({task.bookie_id for task in tasks[:3]}) == 3


def test_a_bookie_that_is_not_registered_gets_tasks_without_an_address() -> None:
    tasks = plan_tasks(holding_checks(AuditedLedger(ledger(1, 5, ("b0", "b9", "b1")), 5)), ADDRESSES, AuditBudget(2))
    assert {task.bookie_id: task.address is None for task in tasks} == {"b0": False, "b1": False, "b9": True}


def test_a_task_travels_to_an_executor() -> None:
    tasks = plan_tasks(holding_checks(AuditedLedger(ledger(1, 5, ("b0", "b1", "b2")), 5)), ADDRESSES, AuditBudget(2))
    assert pickle.loads(pickle.dumps(tasks)) == tasks
