"""A tablespace's log as a stream of changes (`spark.readStream`), compared with one Python process that reads the same changes without
Spark.

Starts ZooKeeper, three bookies and a SQL node as plain processes. Writes rows through SQL over several ledgers: autocommit and
transactions, inserts and updates. Both contenders read the whole log with this project's reader and decoder. The stream also goes through
Spark, in micro-batches of 100,000 entries into a counting sink. Prints changes per second, and the client's CPU seconds per million
changes, with and without Spark's start. `--full` writes 1,000,000 changes instead of 200,000.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable

import pyarrow.compute as pc
from class_archive import use_class_archive
from pyspark.sql import DataFrame
from spent import MEBIBYTE, Meter, Spent, largest_child, report, run_contender

from herdkeeper.sql.connection import Address, Connection
from herdkeeper_e2e.server_processes import CREDENTIALS, HERD_ROOT, LEDGERS_ROOT, servers
from herdkeeper_jobs.bookkeeper.metadata import open_catalog
from herdkeeper_jobs.datasource import register
from herdkeeper_jobs.datasource.log_range import changes_in, log_range
from herdkeeper_jobs.datasource.options import Range, parse_options
from herdkeeper_jobs.log_source import open_log
from herdkeeper_jobs.spark_session import SparkSettings, start_spark

TABLESPACE, BOOKIES, CORES, TURNS = "herd", 3, 2, 3
ROWS_IN_TRANSACTION, ALONE_OF = 1000, 10
"""One change of so many is in autocommit, and one of as many an update."""
LEDGER_BYTES = 8 * MEBIBYTE
BYTES_IN_TRANSACTION = 4 * MEBIBYTE
SAMPLED_SECONDS = 0.2


def options(zookeeper: str) -> dict[str, str]:
    """The data source's options."""
    uri = f"zk+hierarchical://{zookeeper}{LEDGERS_ROOT}"
    return {"metadataServiceUri": uri, "herdRoot": HERD_ROOT, "tablespace": TABLESPACE}


def read_as_stream(zookeeper: str, changes: int) -> None:
    """A query that ends with what is confirmed at its start."""
    meter = Meter()
    spark = start_spark("bench", SparkSettings(master=f"local[{CORES}]"))
    register(spark)
    spark.range(1).collect()
    start = meter.read()
    counted: dict[int, int] = {}

    def count(batch: DataFrame, number: int) -> None:
        counted[number] = batch.where("table_name = 't'").count()

    with tempfile.TemporaryDirectory() as progress:
        stream = spark.readStream.format("bookkeeper").options(**options(zookeeper), pin="bench").load()
        query = stream.writeStream.foreachBatch(count).option("checkpointLocation", progress).trigger(availableNow=True).start()
        planner = 0
        while query.isActive:
            planner = max(planner, largest_child("python"))
            time.sleep(SAMPLED_SECONDS)
        query.awaitTermination()
    _report(meter.read(), sum(counted.values()), changes, start, planner)
    spark.stop()


def read_in_one_process(zookeeper: str, changes: int) -> None:
    """The peer: the same reader and decoder, without Spark."""
    meter = Meter()
    parsed = parse_options(options(zookeeper))
    with open_catalog(zookeeper, LEDGERS_ROOT) as catalog:
        log = open_log(catalog, HERD_ROOT, TABLESPACE)
        part = log_range(log, Range(), parsed, None)
        found = sum(pc.sum(pc.equal(batch.column("table_name"), "t")).as_py() for batch in changes_in(part))
    _report(meter.read(), found, changes, None, 0)


def _report(spent: Spent, found: int, changes: int, start: Spent | None, planner: int) -> None:
    """The table's own definition counts as a change."""
    if found != changes + 1:
        raise SystemExit(f"there are {changes + 1} changes of the table, and {found} were read")
    report(
        spent,
        start_cpu=0.0 if start is None else start.cpu_seconds,
        start_wall=0.0 if start is None else start.wall_seconds,
        planner=planner,
    )


CONTENDERS: dict[str, Callable[[str, int], None]] = {"one process": read_in_one_process, "readStream": read_as_stream}


def write(address: Address, changes: int, row_bytes: int | None) -> None:
    """Writes the changes into a new table, with so many bytes per row; None: some hundred."""
    chance = random.Random(7)  # noqa: S311 - the same rows each time
    with Connection.connect(address, CREDENTIALS, TABLESPACE, timeout_seconds=120) as connection:
        connection.execute("CREATE TABLE t (id long primary key, carrier string, delay int, note string)")
        insert, update = "INSERT INTO t (id, carrier, delay, note) VALUES (?, ?, ?, ?)", "UPDATE t SET delay = ? WHERE id = ?"
        most = ROWS_IN_TRANSACTION if row_bytes is None else max(1, min(ROWS_IN_TRANSACTION, BYTES_IN_TRANSACTION // row_bytes))
        written = 0
        while written < changes:
            count = min(most, changes - written)
            updated = alone = count // ALONE_OF
            notes = ["x" * (row_bytes or chance.randrange(20, 120)) for _ in range(count - updated)]
            rows = [(written + number, "AA", chance.randrange(600), note) for number, note in enumerate(notes)]
            with connection.transaction() as transaction:
                transaction.execute_batch(insert, rows[alone:])
            for row in rows[:alone]:
                connection.execute(insert, row)
            with connection.transaction() as transaction:
                transaction.execute_batch(update, [(chance.randrange(600), row[0]) for row in rows[:updated]])
            written += count
        # Bookies learn that an entry is confirmed from the next one.
        connection.execute("CREATE TABLE behind_the_last (id long primary key)")


def main() -> None:
    """Starts the servers, writes, reads by both in turns, prints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true", help="1,000,000 changes instead of 200,000")
    parser.add_argument("--contender", choices=tuple(CONTENDERS))
    parser.add_argument("--zookeeper")
    parser.add_argument("--changes", type=int)
    parser.add_argument("--row-bytes", type=int, help="of each row (default: some hundred)")
    arguments = parser.parse_args()
    if arguments.contender:
        CONTENDERS[arguments.contender](arguments.zookeeper, arguments.changes)
        return
    use_class_archive()
    changes = arguments.changes or (1_000_000 if arguments.full else 200_000)
    with servers(java_options=()) as running:
        zookeeper = running.start_zookeeper()
        running.start_bookies(BOOKIES)
        settings = {"server.bookkeeper.ledgers.max.size": LEDGER_BYTES, "server.bookkeeper.max.idle.time": 1000}
        write(running.start_sql_node(settings), changes, arguments.row_bytes)
        with open_catalog(zookeeper, LEDGERS_ROOT) as catalog:
            ledgers = len(open_log(catalog, HERD_ROOT, TABLESPACE).readable_from(None))
        where = ("--zookeeper", zookeeper, "--changes", str(changes))
        turns = {name: [run_contender(__file__, "--contender", name, *where) for _ in range(TURNS)] for name in CONTENDERS}
    print(f"{changes:,} changes in {ledgers} ledgers of {BOOKIES} bookies, from the log's beginning, {TURNS} turns each")
    for name, taken in turns.items():
        _print(name, changes, taken)


def _print(name: str, changes: int, turns: list[tuple[Spent, dict[str, object]]]) -> None:
    starts = [float(str(more["start_cpu"])) for _, more in turns]
    rates = " ".join(f"{changes / (spent.wall_seconds - float(str(more['start_wall']))):8,.0f}" for spent, more in turns)
    cheapest = min(spent.cpu_seconds - start for (spent, _), start in zip(turns, starts, strict=True)) * 1e6 / changes
    peak = max(spent.peak_bytes for spent, _ in turns) / MEBIBYTE
    planner = max(int(str(more["planner"])) for _, more in turns) / MEBIBYTE
    print(f"{name:14}{rates} changes/s; CPU s a million, at least: {cheapest:6.1f}; {peak:,.0f} MiB at most", end="")
    print(f", {planner:,.0f} of it in the planner; before that {min(starts):.1f} CPU s for Spark's start" if planner else "")


if __name__ == "__main__":
    main()
