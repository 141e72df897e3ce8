"""Loads rows that refer to each other (restore/circle.py), a tree and chains in one table, compared with the same rows in no order.

Starts ZooKeeper, a bookie and a SQL node as plain processes. Each turn loads the same rows, over one connection, from the same Parquet file
into a table of its own. One way loads in the order of the foreign key, which HerdDB checks. The other uses the loader of single tables,
without a key. They alternate; a small first turn of each warms the node up. Prints rows per second, their ratio, and the time to find the
order. `--full` loads 400,000 rows per turn instead of 50,000.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from herdkeeper.codecs.herddb.row_digest import RowDigest
from herdkeeper.codecs.herddb.table import Column, ColumnType, ForeignKey, TableDefinition
from herdkeeper.sql.connection import Address
from herdkeeper_e2e.server_processes import CREDENTIALS, servers
from herdkeeper_jobs.checkpoint.arrow_table import arrow_schema
from herdkeeper_jobs.checkpoint.data_files import WrittenTable
from herdkeeper_jobs.checkpoint.folded_manifest import manifest_table
from herdkeeper_jobs.manifests.manifest import Identity, Manifest, ManifestFile, Position, Verification
from herdkeeper_jobs.restore import bookkeeping, ddl
from herdkeeper_jobs.restore.bookkeeping import Header
from herdkeeper_jobs.restore.chunks import CHUNK_BYTES, CHUNK_ROWS, row_groups
from herdkeeper_jobs.restore.circle import read_circle
from herdkeeper_jobs.restore.circle_load import load_circle
from herdkeeper_jobs.restore.load import load_group
from herdkeeper_jobs.restore.session import Session, Target, open_session
from herdkeeper_jobs.restore.source import Source, SourceTable

TABLESPACE, WARMING_ROWS, TURNS = "herd", 5_000, 3
CHILDREN, CHAIN = 8, 1_000
SHAPES: dict[str, Callable[[int], int | None]] = {
    f"a tree, {CHILDREN} children each": lambda number: (number - 1) // CHILDREN if number else None,
    f"chains of {CHAIN:,} rows": lambda number: number - 1 if number % CHAIN else None,
}


def definition(name: str) -> TableDefinition:
    """The table of a turn."""
    columns = (
        Column("id", ColumnType.LONG, 0, nullable=False),
        Column("above", ColumnType.LONG, 1),
        Column("note", ColumnType.STRING, 2),
    )
    key = ForeignKey(f"{name}_above", f"uuid-{name}", ("above",), ("id",))
    return TableDefinition(TABLESPACE, name, f"uuid-{name}", columns, ("id",), foreign_keys=(key,))


def source_of(folder: Path, name: str, rows: int, above: Callable[[int], int | None]) -> Source:
    """A checkpoint of one table, with rows in random order."""
    chance = random.Random(7)  # noqa: S311 - the same rows each time
    numbers = list(range(rows))
    chance.shuffle(numbers)
    table = definition(name)
    content = [numbers, [above(number) for number in numbers], ["x" * chance.randrange(20, 120) for _ in numbers]]
    path = folder / f"{name}.parquet"
    pq.write_table(pa.table(content, schema=arrow_schema(table)), path, row_group_size=25_000)
    made = manifest_table(
        table, WrittenTable(RowDigest(), (ManifestFile(path=path.name, rows=rows, size=path.stat().st_size, hash=""),)), None
    )
    manifest = Manifest(
        identity=Identity(instance_id="i", tablespace_uuid="t", tablespace=TABLESPACE, ledgers_root="/l", herd_root="/h"),
        lsn=Position(ledger_id=0, entry_id=0),
        lsn_timestamp_millis=None,
        run_id="bench",
        entries_read=0,
        tables=(made,),
        indexes=(),
        open_transactions=(),
        restart_lsn=Position(ledger_id=0, entry_id=0),
        verified=Verification(how="Reread", by="nobody"),
        versions={},
        encryption=None,
    )
    return Source(manifest, folder / "manifests/0-0.json", "", (SourceTable(made, table, ()),))


def in_order(session: Session, source: Source) -> tuple[float, float]:
    """Seconds to find the order, and to load."""
    begun = time.monotonic()
    groups = row_groups(enumerate(source.tables), source.folder, CHUNK_ROWS, CHUNK_BYTES)
    circle = read_circle(source.tables, groups, source.folder)
    found = time.monotonic()
    load_circle(session, source, circle, {})
    return found - begun, time.monotonic() - found


def in_no_order(session: Session, source: Source) -> tuple[float, float]:
    """The same without a foreign key."""
    begun = time.monotonic()
    for group in row_groups(enumerate(source.tables), source.folder, CHUNK_ROWS, CHUNK_BYTES):
        load_group(session, group, source.folder, ddl.insert(source.tables[0].definition), frozenset())
    return 0.0, time.monotonic() - begun


def main() -> None:
    """Starts the servers, loads in turns, compares, prints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true", help="400,000 rows in each turn instead of 50,000")
    rows = 400_000 if parser.parse_args().full else 50_000
    with servers(java_options=()) as running:
        running.start_zookeeper()
        running.start_bookies(1)
        address = running.start_sql_node()
        for place, (shape, above) in enumerate(SHAPES.items()):
            for number, count in enumerate((WARMING_ROWS, *(rows,) * TURNS)):
                names = [f"t_{place}_{number}_{way}" for way in range(2)]
                sources = [source_of(running.folder, name, count, above) for name in names]
                (order, ordered), (_, loaded) = (_turn(address, source, way) for source, way in zip(sources, WAYS, strict=True))
                if number:
                    print(
                        f"{shape}, {count:,} rows: {count / ordered:8,.0f} rows/s in order, {count / loaded:8,.0f} without a key, "
                        f"{loaded / ordered:.2f} times; the order found in {order:.1f} s",
                        flush=True,
                    )


WAYS: Sequence[Callable[[Session, Source], tuple[float, float]]] = (in_order, in_no_order)


def _turn(address: Address, source: Source, way: Callable[[Session, Source], tuple[float, float]]) -> tuple[float, float]:
    name = source.tables[0].name
    with open_session(Target(address, TABLESPACE, CREDENTIALS)) as session:
        connection = session.connection()
        bookkeeping.begin(connection, Header("", "", 0, CHUNK_ROWS, CHUNK_BYTES))
        connection.execute(ddl.create_table(source.tables[0].definition))
        spent = way(session, source)
        (found,) = session.connection().query(f"SELECT COUNT(*) AS n FROM {name}")
        wanted = sum(file.rows for file in source.tables[0].files)
        if found["n"] != wanted:
            raise SystemExit(f"{name} has {found['n']!r} rows of {wanted}")
        bookkeeping.end(session.connection())
    return spent


if __name__ == "__main__":
    main()
