"""The cut of a log for a time, against the definition, entry by entry."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

import pytest
from pyspark.sql import SparkSession

from herdkeeper_jobs.wal.cut import TimeCut, cut_at_time
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.task_log import TaskLog

STAMPS: list[tuple[Lsn, int]] = [
    (Lsn(3, 0), 100),
    (Lsn(3, 1), 120),
    (Lsn(3, 2), 110),  # two threads of a leader
    (Lsn(3, 3), 500),
    (Lsn(7, 0), 300),  # the next leader's clock is behind
    (Lsn(7, 1), 310),
    (Lsn(9, 0), 600),
    (Lsn(9, 1), 600),
]


@pytest.fixture(scope="module")
def log(spark: SparkSession) -> TaskLog:
    rows = [(lsn.ledger_id, lsn.entry_id, stamp) for lsn, stamp in reversed(STAMPS)]
    entries = spark.createDataFrame(rows, "ledger_id long, entry_id long, timestamp long").repartition(3).cache()
    return TaskLog(entries, lambda batches, _: iter(batches))


def expected(millis: int) -> TimeCut:
    """The longest prefix without a later stamp, and what follows it."""
    prefix = list(takewhile(lambda entry: entry[1] <= millis, STAMPS))
    rest = STAMPS[len(prefix) :]
    ends = (STAMPS[0][1], STAMPS[-1][1])
    if not rest:
        return TimeCut(None, None, 0, *ends)
    return TimeCut(prefix[-1][0] if prefix else None, rest[0][0], sum(stamp <= millis for _, stamp in rest), *ends)


@pytest.mark.parametrize("millis", [99, 110, 119, 499, 600])
def test_a_log_is_cut_before_the_first_entry_that_is_stamped_later(log: TaskLog, millis: int) -> None:
    assert cut_at_time(log, millis) == expected(millis)


def test_an_entry_that_is_added_later_never_moves_a_cut(log: TaskLog, spark: SparkSession) -> None:
    before = cut_at_time(log, 320)
    longer = log.tasks.union(spark.createDataFrame([(11, 0, 320)], log.tasks.schema))
    after = cut_at_time(replace(log, tasks=longer), 320)
    assert (before.lsn, before.left_out) == (Lsn(3, 2), 2)
    assert (after.lsn, after.later, after.left_out) == (before.lsn, before.later, 3)


def test_an_empty_log_has_no_time(log: TaskLog) -> None:
    assert cut_at_time(replace(log, tasks=log.tasks.limit(0)), 300) == TimeCut(None, None, 0, None, None)


@pytest.mark.parametrize("lsn", [Lsn(3, 2), Lsn(8, 5)])
def test_a_part_of_a_log_ends_with_its_lsn(log: TaskLog, lsn: Lsn) -> None:
    kept = sorted(Lsn(row[0], row[1]) for row in log.up_to(lsn).rows("ledger_id", "entry_id").collect())
    assert kept == [position for position, _ in STAMPS if position <= lsn]
