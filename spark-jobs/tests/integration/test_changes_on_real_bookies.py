"""`spark.readStream` and `spark.read.format("bookkeeper")` on a real log: rows written through SQL come as changes, each once. That holds
over ledger changes and leader changes, and writers never notice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from real_database import Database
from waits import wait_until

from herdkeeper.codecs.herddb.ledgers import LedgerList, decode_ledgers, ledgers_path
from herdkeeper.codecs.herddb.log_entry import decode_log_entry
from herdkeeper.codecs.herddb.record import RowDecoder
from herdkeeper.codecs.herddb.table import decode_table
from herdkeeper.codecs.herddb.tablespace import heartbeat_path
from herdkeeper.protocol.log_pin import decode_stream_pin, log_pin_path, stream_pin
from herdkeeper_e2e.server_processes import LEDGERS_ROOT, NODE_ID
from herdkeeper_jobs.bookkeeper.metadata import VersionedMetadata
from herdkeeper_jobs.datasource import register, remove_pin
from herdkeeper_jobs.datasource.stream import StreamOffset
from herdkeeper_jobs.log_source import open_log

PATIENCE_SECONDS = 120
AGE_HOURS = str(6 / 3600)
"""So short that a test sees a pin expire."""
ORDER = ("commit_ledger_id", "commit_entry_id", "ledger_id", "entry_id")


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    register(spark)
    return spark


@dataclass
class Followed:
    """A stream's changes by batch: a repeated batch replaces itself. `decoders` by table."""

    batches: dict[int, list[tuple[str, Any]]] = field(default_factory=dict)
    decoders: dict[str, RowDecoder] = field(default_factory=dict)

    def take(self, batch: DataFrame, number: int) -> None:
        self.batches[number] = [self._change(row) for row in batch.orderBy(*ORDER).collect()]

    @property
    def changes(self) -> list[tuple[str, Any]]:
        return [change for number in sorted(self.batches) for change in self.batches[number]]

    def _change(self, row: Any) -> tuple[str, Any]:
        if row["operation"] == "CREATE_TABLE":
            self.decoders[row["table_name"]] = RowDecoder(decode_table(bytes(row["row_value"])))
            return row["operation"], row["table_name"]
        return row["operation"], tuple(self.decoders[row["table_name"]].decode(bytes(row["row_key"]), bytes(row["row_value"])))


def options(database: Database, tablespace: str, **more: str) -> dict[str, str]:
    uri = f"zk+hierarchical://{database.servers.zookeeper}{LEDGERS_ROOT}"
    return {"metadataServiceUri": uri, "herdRoot": database.herd_root, "tablespace": tablespace, **more}


def started(session: SparkSession, read: dict[str, str], sink: Followed | SlowSink, progress: Path) -> StreamingQuery:
    stream = session.readStream.format("bookkeeper").options(**read, pollSeconds="0.2", maxEntriesPerBatch="7").load()
    return stream.writeStream.foreachBatch(sink.take).option("checkpointLocation", str(progress)).start()


def wait_for(query: StreamingQuery, what: str, true: Callable[[], bool]) -> None:
    """Fails at once if the query has failed."""

    def holds() -> bool:
        if true():
            return True
        if (failure := query.exception()) is not None:
            raise failure
        return False

    wait_until(what, holds, PATIENCE_SECONDS)


def ledgers_of(database: Database, tablespace: str) -> LedgerList:
    """The log's current ledgers; the last one is being written."""
    with database.catalog() as catalog:
        log = open_log(catalog, database.herd_root, tablespace)
        data, stat = catalog.client.get(ledgers_path(database.herd_root, log.tablespace.uuid))
    return decode_ledgers(data, stat.version)


def require_written(database: Database, ledger_id: int) -> None:
    """Checks that it is open: neither closed nor in the recovery that a fencing reader starts."""
    with database.catalog() as catalog:
        read = catalog.read_ledger_metadata(ledger_id)
    assert isinstance(read, VersionedMetadata)
    assert read.metadata.state.name == "OPEN"


def pinned(database: Database, tablespace: str, stream: str) -> tuple[int, int]:
    with database.catalog() as catalog:
        log = open_log(catalog, database.herd_root, tablespace)
        data, _ = catalog.client.get(log_pin_path(database.herd_root, log.tablespace.uuid, stream_pin(stream)))
    return decode_stream_pin(data).lsn


@dataclass(frozen=True)
class WrittenPin:
    """A stream's pin, and the time of its last write by ZooKeeper's clock, in ms. `now`: the newest heartbeat by that clock, which the node
    program uses, too."""

    lsn: tuple[int, int]
    max_age_ms: int
    written: int
    now: int

    @property
    def counts(self) -> bool:
        return self.now - self.written <= self.max_age_ms


def written_pin(database: Database, tablespace: str, stream: str) -> WrittenPin:
    with database.catalog() as catalog:
        uuid = open_log(catalog, database.herd_root, tablespace).tablespace.uuid
        data, stat = catalog.client.get(log_pin_path(database.herd_root, uuid, stream_pin(stream)))
        beat = catalog.client.exists(heartbeat_path(database.herd_root, uuid, NODE_ID))
    pin = decode_stream_pin(data)
    return WrittenPin(pin.lsn, pin.max_age_seconds * 1000, stat.mtime, beat.mtime)


@dataclass
class SlowSink:
    """Takes a batch, then works on it until a test ends that."""

    followed: Followed = field(default_factory=Followed)
    slow_from: int = 1
    working: threading.Event = field(default_factory=threading.Event)
    ends: threading.Event = field(default_factory=threading.Event)
    failure: str = ""

    def take(self, batch: DataFrame, number: int) -> None:
        self.followed.take(batch, number)
        if number >= self.slow_from:
            self.working.set()
            assert self.ends.wait(2 * PATIENCE_SECONDS)
            if self.failure:
                raise RuntimeError(self.failure)


def require_outlives_its_age(database: Database, tablespace: str, stream: str) -> WrittenPin:
    """Checks that the pin is rewritten in place until a pin written only once would have expired."""
    first = written_pin(database, tablespace, stream)

    def renewed() -> bool:
        return written_pin(database, tablespace, stream).written > first.written + first.max_age_ms

    wait_until("the pin is renewed for longer than it counts", renewed, PATIENCE_SECONDS)
    last = written_pin(database, tablespace, stream)
    assert last.lsn == first.lsn, "nothing was committed meanwhile"
    return last


def require_falls_silent(database: Database, tablespace: str, stream: str) -> None:
    """Checks that a pin without renewals expires soon, and stays so."""
    wait_until("nobody renews the pin", lambda: not written_pin(database, tablespace, stream).counts, PATIENCE_SECONDS)
    silent = written_pin(database, tablespace, stream)
    later = silent.written + 2 * silent.max_age_ms
    wait_until("as long again is over", lambda: written_pin(database, tablespace, stream).now > later, PATIENCE_SECONDS)
    assert written_pin(database, tablespace, stream).written == silent.written


def test_a_pin_outlives_its_age_while_a_batch_is_worked_on_or_repeated_and_no_query_that_has_ended(
    database: Database, session: SparkSession, tmp_path: Path
) -> None:
    with database.tablespace("slow") as tablespace, database.connect(tablespace) as connection:
        read = options(database, tablespace, pin="slow", pinMaxAgeHours=AGE_HOURS)
        connection.execute("CREATE TABLE t (k int primary key, note string)")
        for key in range(20):
            connection.execute("INSERT INTO t (k, note) VALUES (?, ?)", (key, f"row {key}"))
        expected: list[tuple[str, Any]] = [("CREATE_TABLE", "t"), *(("INSERT", (key, f"row {key}")) for key in range(20))]

        failing = SlowSink(failure="the sink is full")
        query = started(session, read, failing, tmp_path)
        wait_for(query, "the second batch is worked on", failing.working.is_set)
        committed = StreamOffset.of(json.loads((tmp_path / "offsets" / "0").read_text().splitlines()[-1])).needed
        held = require_outlives_its_age(database, tablespace, "slow")
        assert held.lsn == (committed.ledger_id, committed.entry_id), "no further than what Spark has committed"
        failing.ends.set()
        wait_until("the query failed", lambda: query.exception() is not None, PATIENCE_SECONDS)
        require_falls_silent(database, tablespace, "slow")

        repeating = SlowSink(failing.followed)
        query = started(session, read, repeating, tmp_path)
        wait_for(query, "the second batch is repeated", repeating.working.is_set)
        again = require_outlives_its_age(database, tablespace, "slow")
        assert again.lsn == held.lsn
        repeating.ends.set()
        wait_for(query, "all of it came", lambda: len(failing.followed.changes) >= len(expected))
        assert failing.followed.changes == expected
        query.stop()
        require_falls_silent(database, tablespace, "slow")
        assert remove_pin(read)


def test_a_pin_falls_silent_when_spark_s_driver_is_killed(database: Database, tmp_path: Path) -> None:
    with database.tablespace("killed") as tablespace, database.connect(tablespace) as connection:
        connection.execute("CREATE TABLE t (k int primary key)")
        connection.execute("INSERT INTO t (k) VALUES (?)", (1,))
        read = options(database, tablespace, pin="killed", pinMaxAgeHours=AGE_HOURS, pollSeconds="0.2")
        script, pid_file = Path(__file__).with_name("slow_query.py"), tmp_path / "pid"
        begun = tmp_path / "progress" / "offsets" / "0"
        with subprocess.Popen([sys.executable, script, json.dumps(read), tmp_path / "progress", pid_file]) as driver:
            try:
                wait_until("the first batch has begun", lambda: begun.exists() or driver.poll() is not None, PATIENCE_SECONDS)
                assert driver.poll() is None
                require_outlives_its_age(database, tablespace, "killed")
                os.kill(int(pid_file.read_text()), signal.SIGKILL)
                require_falls_silent(database, tablespace, "killed")
            finally:
                driver.kill()
        assert remove_pin(read)


def test_a_stream_gives_each_change_once_over_ledgers_leaders_and_its_own_restart_and_the_writer_never_notices(
    database: Database, session: SparkSession, tmp_path: Path
) -> None:
    with database.tablespace("streamed") as tablespace:
        followed = Followed()
        expected: list[tuple[str, Any]] = [("CREATE_TABLE", "t")]
        read = options(database, tablespace, pin="audit")

        def insert(target: Any, key: int) -> None:
            target.execute("INSERT INTO t (k, note) VALUES (?, ?)", (key, f"row {key}"))

        with database.connect(tablespace) as connection:
            connection.execute("CREATE TABLE t (k int primary key, note string)")
            for key in range(10):
                insert(connection, key)
            expected += [("INSERT", (key, f"row {key}")) for key in range(10)]
            query = started(session, read, followed, tmp_path)
            with connection.transaction() as transaction:
                insert(transaction, 100)
                database.close_ledger(tablespace)
                insert(transaction, 101)
                insert(connection, 10)
                committed = [("INSERT", (10, "row 10"))]
                wait_for(query, "what is committed came, and what is open did not", lambda: followed.changes[-1:] == committed)
            expected += [("INSERT", (key, f"row {key}")) for key in (10, 100, 101)]
            connection.execute("UPDATE t SET note = ? WHERE k = ?", ("changed", 3))
            connection.execute("DELETE FROM t WHERE k = ?", (4,))
            expected += [("UPDATE", (3, "changed")), ("DELETE", (4, None))]
            wait_for(query, "all of it came", lambda: len(followed.changes) >= len(expected))
            assert followed.changes == expected
            written = ledgers_of(database, tablespace).active
            require_written(database, written[-1])
            assert pinned(database, tablespace, "audit")[0] <= written[-1]
            query.stop()
            read_so_far = len(followed.batches)
            for key in range(11, 20):
                insert(connection, key)
            assert ledgers_of(database, tablespace).active == written, "the writer goes on in the ledger that was read"
            database.close_ledger(tablespace)
            insert(connection, 20)

        database.kill_leader(tablespace)
        with database.connect(tablespace) as connection:
            insert(connection, 21)
            expected += [("INSERT", (key, f"row {key}")) for key in range(11, 22)]
            held = pinned(database, tablespace, "audit")
            query = started(session, read, followed, tmp_path)
            wait_for(query, "it went on where it stopped", lambda: len(followed.changes) >= len(expected))
            assert followed.changes == expected
            assert min(number for number in followed.batches if followed.batches[number] and number >= read_so_far) >= read_so_far
            written = ledgers_of(database, tablespace).active
            assert len(written) >= 4, "two were closed, and the new leader began another one"
            wait_for(query, "the log before is needed no more", lambda: pinned(database, tablespace, "audit")[0] == written[-1])
            assert held < pinned(database, tablespace, "audit")
            insert(connection, 22)
            wait_for(query, "it follows the writer", lambda: followed.changes[-1] == ("INSERT", (22, "row 22")))
            assert ledgers_of(database, tablespace).active == written
            require_written(database, written[-1])
            query.stop()
        assert remove_pin(read)
        assert not remove_pin(read)


def test_ledgers_are_read_as_they_are_and_the_one_that_is_written_up_to_what_is_confirmed(
    database: Database, session: SparkSession
) -> None:
    with database.tablespace("raw") as tablespace, database.connect(tablespace) as connection:
        connection.execute("CREATE TABLE t (k int primary key)")
        closed = database.close_ledger(tablespace)
        for key in range(50):
            connection.execute("INSERT INTO t (k) VALUES (?)", (key,))
        before = ledgers_of(database, tablespace)
        read = {"metadataServiceUri": options(database, tablespace)["metadataServiceUri"], "ledgers": f"{closed},{before.active[-1]}"}
        rows = session.read.format("bookkeeper").options(**read).load().collect()
        by_ledger = {ledger: [row for row in rows if row["ledger_id"] == ledger] for ledger in (closed, before.active[-1])}
        for found in by_ledger.values():
            assert sorted(row["entry_id"] for row in found) == list(range(len(found)))
        types = {ledger: [decode_log_entry(bytes(row["payload"])).type.name for row in found] for ledger, found in by_ledger.items()}
        assert types[closed].count("CREATE_TABLE") == 1
        assert 49 <= types[before.active[-1]].count("INSERT") <= 50, "the last one may be confirmed by the entry that follows only"
        connection.execute("INSERT INTO t (k) VALUES (?)", (50,))
        assert ledgers_of(database, tablespace).active == before.active
        require_written(database, before.active[-1])
