"""A query that lags behind the log's retention: HerdDB drops an unread ledger. The query ends, says so, and skips nothing."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from real_database import Database, running_database
from spark_of_tests import STARTS, has_not_begun
from test_changes_on_real_bookies import PATIENCE_SECONDS, SlowSink, ledgers_of, options, started
from waits import wait_until

from herdkeeper_jobs.datasource import register
from herdkeeper_jobs.datasource.stream import StreamOffset
from herdkeeper_jobs.log_source import open_log
from herdkeeper_jobs.wal.lsn import Lsn

_RETENTION_MILLIS = 10_000
_SETTINGS = {
    "server.bookkeeper.ledgers.retention.period": _RETENTION_MILLIS,
    # The log behind the node's own checkpoint is kept, however old.
    "server.checkpoint.period": _RETENTION_MILLIS // 2,
    "server.bookkeeper.max.idle.time": 1000,
}


def is_dropped(database: Database, tablespace: str, ledger_id: int) -> bool:
    with database.catalog() as catalog:
        left = open_log(catalog, database.herd_root, tablespace).first_left()
    return left is not None and left.ledger_id > ledger_id


def stands_at(progress: Path) -> Lsn:
    """The position after the query's committed batches, from which it continues."""
    newest = max((progress / "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
    position = StreamOffset.of(json.loads(newest.read_text().splitlines()[-1])).position
    assert position is not None
    return position


@dataclass(frozen=True)
class Query:
    """A restartable query. Spark gives up starting its Python process after ten seconds, which a busy machine may exceed: that does not end
    the query."""

    session: SparkSession
    read: dict[str, str]
    sink: SlowSink
    progress: Path

    def run_until_it_works(self) -> StreamingQuery:
        """Runs it to the batch that its sink works on."""
        working = self.sink.working.is_set
        for _ in range(STARTS):
            running = started(self.session, self.read, self.sink, self.progress)
            wait_until("a batch is worked on", partial(_either, working, running), PATIENCE_SECONDS)
            if working():
                return running
        raise AssertionError(failure_of(running))

    def run_until_it_fails(self) -> str:
        """Runs it; returns why it failed."""
        failures = (failure_of(started(self.session, self.read, self.sink, self.progress)) for _ in range(STARTS))
        return next((failure for failure in failures if not has_not_begun(failure)), "no query has begun")


def failure_of(query: StreamingQuery) -> str:
    """Waits for its end; returns the failure."""
    wait_until("the query has failed", lambda: query.exception() is not None, PATIENCE_SECONDS)
    return str(query.exception())


def _either(working: Callable[[], bool], query: StreamingQuery) -> bool:
    return working() or query.exception() is not None


def test_a_query_whose_ledger_is_dropped_meanwhile_ends_where_it_stands_and_names_that_and_where_the_log_begins(
    spark: SparkSession, tmp_path: Path
) -> None:
    assert "JAVA_HOME" in os.environ, "run this through e2e/bootstrap/run.sh"
    register(spark)
    with running_database(_SETTINGS) as database, database.tablespace("late") as tablespace, database.connect(tablespace) as connection:
        connection.execute("CREATE TABLE t (k int primary key, note string)")
        for key in range(20):
            connection.execute("INSERT INTO t (k, note) VALUES (?, ?)", (key, f"row {key}"))
        sink = SlowSink()
        late = Query(spark, options(database, tablespace), sink, tmp_path)
        running = late.run_until_it_works()
        position, given = stands_at(tmp_path), list(sink.followed.changes)
        assert 0 < len(given) < 20, "there is more in this ledger"

        closed = database.close_ledger(tablespace)
        assert position.ledger_id == closed
        connection.execute("INSERT INTO t (k, note) VALUES (?, ?)", (20, "row 20"))
        wait_until("the ledger that is read is dropped", lambda: is_dropped(database, tablespace, closed), PATIENCE_SECONDS)
        there = ledgers_of(database, tablespace).active[0]
        message = f"LogTruncatedError.*'late' was read from LSN {position} on, but it begins with ledger {there} now"

        sink.ends.set()
        assert re.search(message, failure_of(running))
        assert re.search(message, late.run_until_it_fails()), "nor does it begin elsewhere when it is started again"
        assert (sink.followed.changes, stands_at(tmp_path)) == (given, position), "nothing of what follows was given"
