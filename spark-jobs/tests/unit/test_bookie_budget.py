"""A bookie's budget, measured at the bookie: what it sends while several Spark tasks in separate processes read from it.

Only an upper bound is tested, which a slow machine can't break: it makes all of them send later.
"""

from __future__ import annotations

import itertools
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from played_bookie import CRC32C, PATIENCE_SECONDS, PlayedBookie, ledger, served
from played_log import PlayedLog, PlayedSource
from pyspark.sql import SparkSession

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper.codecs.bookkeeper.entry import Entry
from herdkeeper_jobs.audit.on_spark import run_on_spark
from herdkeeper_jobs.audit.schema import holdings_from_table
from herdkeeper_jobs.copies.holding import CopyState
from herdkeeper_jobs.copies.plan import AuditBudget, AuditedLedger, holding_checks, plan_tasks
from herdkeeper_jobs.datasource.data_source import knowing, most_tasks_at_once

ENTRIES = 4096
ENTRY_BYTES = 2048
BUDGET = 4 * 1024 * 1024.0
"""Half of what is read: two seconds of reading, in which tasks with unshared budgets would send twice as much."""
BATCH_ENTRIES = 128
READS_IN_FLIGHT = 256
"""With which a task reads a bookie's part of a striped ledger."""


def holding_all(*entry_ids: int) -> PlayedBookie:
    """A bookie that answers nobody before two have asked, so that two tasks read from it at once."""
    entries = {
        (1, entry_id): CRC32C.pack(Entry(1, entry_id, entry_id - 1, payload_up_to(entry_id), b"x" * ENTRY_BYTES)) for entry_id in entry_ids
    }
    meeting, known, numbers = threading.Barrier(2), threading.local(), itertools.count()

    def meet() -> None:
        if not hasattr(known, "number"):  # each connection has a thread
            known.number = next(numbers)
            if known.number < meeting.parties:
                meeting.wait(PATIENCE_SECONDS)

    return PlayedBookie(entries, on_request=meet, most_in_batch=BATCH_ENTRIES)


def payload_up_to(entry_id: int) -> int:
    return (entry_id + 1) * ENTRY_BYTES


def most_above(sent: list[tuple[float, int]], rate: float) -> float:
    """The maximum number of bytes beyond the rate, over any window of time."""
    above = most = 0.0
    for (before, _), (now, count) in itertools.pairwise([(0.0, 0), *sorted(sent)]):
        above = max(0.0, above - (now - before) * rate) + count
        most = max(most, above)
    return most


def audited(spark: SparkSession, addresses: dict[str, BookieAddress], bookies: tuple[str, ...]) -> int:
    """Audits the first bookie's part of a ledger with one copy per entry; returns the number of good copies."""
    last = ENTRIES * len(bookies) - 1
    metadata = replace(ledger(1, last, bookies, (1, 1)), length=payload_up_to(last))
    checks = [check for check in holding_checks(AuditedLedger(metadata, last)) if check.bookie_id == bookies[0]]
    cores = spark.sparkContext.defaultParallelism
    tasks = plan_tasks(checks, addresses, AuditBudget(cores, BUDGET, timeout_seconds=PATIENCE_SECONDS))
    assert len(tasks) >= cores >= 2
    holdings = holdings_from_table(run_on_spark(spark, tasks))
    return sum(holding.copies for holding in holdings if holding.state is CopyState.VERIFIED)


@pytest.mark.parametrize(
    ("bookies", "asked_at_once"),
    [(("b0",), BATCH_ENTRIES), (("b0", "b1"), READS_IN_FLIGHT)],
    ids=["in batches", "a striped ledger, entry by entry"],
)
def test_a_bookie_sends_an_audits_tasks_no_more_than_its_budget_in_any_time(
    bookies: tuple[str, ...], asked_at_once: int, spark: SparkSession
) -> None:
    bookie = holding_all(*range(0, ENTRIES * len(bookies), len(bookies)))
    with served(bookie) as addresses:
        assert audited(spark, addresses, bookies) == ENTRIES
    assert_within_budget(bookie, asked_at_once, spark)


def test_a_bookie_sends_the_tasks_that_read_its_ledgers_no_more_than_its_budget_in_any_time(spark: SparkSession, tmp_path: Path) -> None:
    bookie = holding_all(*range(ENTRIES))
    spark.dataSource.register(knowing(PlayedSource, most_tasks_at_once(spark)))
    with served(bookie) as addresses:
        log = PlayedLog([bookie], addresses, tmp_path)
        log.metadata.ledgers[1] = replace(ledger(1, ENTRIES - 1, ("b0",), (1, 1)), length=payload_up_to(ENTRIES - 1))
        log.save()
        options = {**log.options, "timeoutSeconds": str(PATIENCE_SECONDS), "speculativeReadSeconds": str(PATIENCE_SECONDS)}
        frame = spark.read.format("played").options(**options, ledgers="1", bytesPerSecondPerBookie=str(BUDGET)).load()
        assert frame.rdd.getNumPartitions() > spark.sparkContext.defaultParallelism >= 2, "some of them begin when others have ended"
        assert frame.count() == ENTRIES
    assert_within_budget(bookie, BATCH_ENTRIES, spark)


def assert_within_budget(bookie: PlayedBookie, asked_at_once: int, spark: SparkSession) -> None:
    """Allows what each parallel task has requested before it waits."""
    sent = sum(count for _, count in bookie.sent)
    burst = spark.sparkContext.defaultParallelism * asked_at_once * (max(map(len, bookie.entries.values())) + 64)
    assert sent > ENTRIES * ENTRY_BYTES > 3 * burst, "more than a burst"
    most = most_above(bookie.sent, BUDGET)
    assert most <= burst
