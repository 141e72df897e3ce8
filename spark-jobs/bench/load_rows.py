"""Loads rows by SQL: a restore's own loader (restore/load.py), compared with HerdDB's JDBC driver with batches.

Starts ZooKeeper, a bookie and a SQL node as plain processes. Both load the same rows into a table of their own, with equal connections and
transaction sizes. The loader reads a checkpoint's Parquet files, JDBC text. They alternate; a small first turn of each warms the node up.
Prints rows per second, and CPU seconds of the client and of the servers, without the start of Spark or of the JVM. `--full` loads 400,000
rows per turn instead of 100,000.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from spent import Meter, cpu_seconds_of, report, run_contender

from herdkeeper.codecs.herddb.row_digest import RowDigest
from herdkeeper.codecs.herddb.table import Column, ColumnType, TableDefinition
from herdkeeper.protocol.restore_bookkeeping import RESTORE_TABLE
from herdkeeper.sql.connection import Address, Connection
from herdkeeper_e2e.server_processes import CREDENTIALS, Servers, jars_of, servers
from herdkeeper_jobs.checkpoint.arrow_table import arrow_schema
from herdkeeper_jobs.checkpoint.data_files import WrittenTable
from herdkeeper_jobs.checkpoint.folded_manifest import manifest_table
from herdkeeper_jobs.encryption.parquet_folder import ParquetFolder
from herdkeeper_jobs.manifests.manifest import ManifestFile
from herdkeeper_jobs.restore import bookkeeping, ddl
from herdkeeper_jobs.restore.bookkeeping import Header
from herdkeeper_jobs.restore.chunks import CHUNK_BYTES, CHUNK_ROWS, row_groups
from herdkeeper_jobs.restore.load import load_groups
from herdkeeper_jobs.restore.session import Target
from herdkeeper_jobs.restore.source import SourceTable
from herdkeeper_jobs.spark_session import SparkSettings, start_spark

CONNECTIONS, ROWS_PER_BATCH, WARMING_ROWS, TURNS = 4, 50, 20_000, 3
TABLESPACE = "herd"
COLUMNS = (
    ("id", ColumnType.LONG, "l"),
    ("carrier", ColumnType.STRING, "s"),
    ("departs", ColumnType.TIMESTAMP, "t"),
    ("distance", ColumnType.DOUBLE, "d"),
    ("delay", ColumnType.INTEGER, "i"),
    ("note", ColumnType.STRING, "s"),
)


@dataclass(frozen=True, slots=True)
class Turn:
    """The cost of one turn."""

    rows: int
    wall_seconds: float
    client_cpu: float
    server_cpu: float


def definition(name: str) -> TableDefinition:
    """The table of a turn."""
    columns = tuple(Column(column, kind, number, nullable=column != "id") for number, (column, kind, _) in enumerate(COLUMNS))
    return TableDefinition(TABLESPACE, name, f"uuid-{name}", columns, ("id",))


def write_rows(folder: Path, rows: int) -> None:
    """Writes the same rows as Parquet and as text, a file per connection."""
    chance = random.Random(7)  # noqa: S311 - the same rows each time
    schema = arrow_schema(definition("any"))
    for number in range(CONNECTIONS):
        ids = range(number, rows, CONNECTIONS)
        columns: list[list[Any]] = [
            list(ids),
            [chance.choice(("AA", "B6", "DL", "UA", "WN")) for _ in ids],
            [1_700_000_000_000 + chance.randrange(10**10) for _ in ids],
            [round(chance.uniform(80, 5000), 2) for _ in ids],
            [chance.randrange(-30, 600) for _ in ids],
            ["x" * chance.randrange(20, 120) for _ in ids],
        ]
        arrays = [pa.array(column, None).cast(field.type) for column, field in zip(columns, schema, strict=True)]
        pq.write_table(pa.Table.from_arrays(arrays, schema=schema), folder / f"rows-{number}.parquet", row_group_size=25_000)
        lines = ("\t".join(map(str, row)) for row in zip(*columns, strict=True))
        (folder / f"rows-{number}.tsv").write_text("\n".join(lines) + "\n")


def load_by_restore(folder: Path, address: Address, table: str) -> None:
    """The restore's loader. Spark has started and run something before the measurement."""
    paths = sorted(folder.glob("rows-*.parquet"))
    files = tuple(ManifestFile(path=path.name, rows=pq.read_metadata(path).num_rows, size=path.stat().st_size, hash="") for path in paths)
    made = definition(table)
    source = SourceTable(manifest_table(made, WrittenTable(RowDigest(), files), None), made, ())
    target = Target(address, TABLESPACE, CREDENTIALS)
    spark = start_spark("bench", SparkSettings(master=f"local[{CONNECTIONS}]"))
    spark.range(0, CONNECTIONS, 1, CONNECTIONS).mapInArrow(lambda batches: batches, "id long").collect()
    content = ParquetFolder(folder)
    meter = Meter()
    groups = row_groups([(0, source)], content, CHUNK_ROWS, CHUNK_BYTES)
    rows = load_groups(spark, groups, [source], (content, target), {})
    report(meter.read(), rows=rows)
    spark.stop()


def restore_turn(running: Servers, folder: Path, address: Address, table: str) -> Turn:
    """One load by the restore."""
    before = sum(map(cpu_seconds_of, running.process_ids()))
    spent, found = run_contender(
        __file__, "--contender", "restore", "--folder", str(folder), "--address", f"{address.host}:{address.port}", "--table", table
    )
    servers_spent = sum(map(cpu_seconds_of, running.process_ids())) - before
    return Turn(int(str(found["rows"])), spent.wall_seconds, spent.cpu_seconds, servers_spent)


def jdbc_turn(running: Servers, folder: Path, address: Address, table: str) -> Turn:
    """One load by the driver."""
    before = sum(map(cpu_seconds_of, running.process_ids()))
    login = {"url": f"jdbc:herddb:server:{address}", "user": CREDENTIALS.username, "password": CREDENTIALS.password}
    jars = f"{jars_of('herddb')}/*:{jars_of('jdbc')}/*"
    types = "".join(letter for _, _, letter in COLUMNS)
    files = sorted(map(str, folder.glob("rows-*.tsv")))
    numbers = (str(ROWS_PER_BATCH), str(CHUNK_ROWS))
    command = ["java", "-Xmx512m", "-cp", jars, "io.herdkeeper.e2e.JdbcLoad", ddl.insert(definition(table)), types, *numbers, *files]
    environment = os.environ | {f"HERDDB_{key}": value for key, value in login.items()}
    printed = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    found = json.loads(printed.splitlines()[-1])
    servers_spent = sum(map(cpu_seconds_of, running.process_ids())) - before
    return Turn(found["rows"], found["seconds"], found["cpu_seconds"], servers_spent)


CONTENDERS = {"restore/load.py": restore_turn, "JDBC batches": jdbc_turn}


def main() -> None:
    """Starts the servers, loads by both in turns, compares, prints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true", help="400,000 rows in each turn instead of 100,000")
    parser.add_argument("--contender", choices=("restore",))
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--address")
    parser.add_argument("--table")
    arguments = parser.parse_args()
    if arguments.contender:
        host, _, port = arguments.address.rpartition(":")
        load_by_restore(arguments.folder, Address(host, int(port)), arguments.table)
        return
    rows = 400_000 if arguments.full else 100_000
    turns: dict[str, list[Turn]] = {name: [] for name in CONTENDERS}
    with servers(java_options=()) as running:
        running.start_zookeeper()
        running.start_bookies(1)
        address = running.start_sql_node()
        for number, count in enumerate((WARMING_ROWS, *(rows,) * TURNS)):
            folder = running.folder / f"rows-{count}"
            if not folder.exists():
                folder.mkdir()
                write_rows(folder, count)
            for place, (name, take_turn) in enumerate(CONTENDERS.items()):
                turn = _turn(take_turn, running, folder, (address, f"t_{number}_{place}"))
                if number:
                    turns[name].append(turn)
                    print(
                        f"{name:18}{turn.rows / turn.wall_seconds:8,.0f} rows/s, {turn.client_cpu:.1f} and {turn.server_cpu:.1f} CPU s",
                        flush=True,
                    )
    _print(rows, turns)


def _turn(take_turn: Any, running: Servers, folder: Path, where: tuple[Address, str]) -> Turn:
    address, table = where
    with Connection.connect(address, CREDENTIALS, timeout_seconds=120) as connection:
        if RESTORE_TABLE in bookkeeping.user_tables(connection):
            bookkeeping.end(connection)
        bookkeeping.begin(connection, Header("", "", 0, CHUNK_ROWS, CHUNK_BYTES))
        connection.execute(ddl.create_table(definition(table)))
    turn: Turn = take_turn(running, folder, address, table)
    with Connection.connect(address, CREDENTIALS, timeout_seconds=120) as connection:
        found = connection.query(f"SELECT COUNT(*) AS n, SUM(id) AS ids, SUM(delay) AS delays FROM {table}")[0]
        wanted = sum(sum(pq.read_table(path, columns=["delay"]).column(0).to_pylist()) for path in folder.glob("*.parquet"))
        if (found["n"], found["ids"], found["delays"]) != (turn.rows, turn.rows * (turn.rows - 1) // 2, wanted):
            raise SystemExit(f"{table} has not the rows that were to be loaded: {found}")
    # Let flushes of this turn finish before the next one.
    time.sleep(1)
    return turn


def _print(rows: int, turns: dict[str, list[Turn]]) -> None:
    print(f"loading {rows:,} rows over {CONNECTIONS} connections into one SQL node with one bookie, {TURNS} turns each")
    best: dict[str, Turn] = {}
    for name, taken in turns.items():
        rates = " ".join(f"{turn.rows / turn.wall_seconds:8,.0f}" for turn in taken)
        best[name] = min(taken, key=lambda turn: turn.client_cpu + turn.server_cpu)
        cost = f"{best[name].client_cpu * 1e6 / rows:6.1f} and {best[name].server_cpu * 1e6 / rows:6.1f}"
        print(f"{name:18}{rates} rows/s; CPU µs a row of the client and of the servers, at least: {cost}")
    ours, peer = best["restore/load.py"], best["JDBC batches"]
    rate = max(t.rows / t.wall_seconds for t in turns["restore/load.py"]) / max(t.rows / t.wall_seconds for t in turns["JDBC batches"])
    cpu = (peer.client_cpu + peer.server_cpu) / (ours.client_cpu + ours.server_cpu)
    print(f"restore / JDBC    {rate:8.2f} times the rows/s at best, {cpu:.2f} times the rows per CPU second of all (target: 1)")


if __name__ == "__main__":
    main()
