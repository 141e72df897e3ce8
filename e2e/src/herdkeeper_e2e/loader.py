"""Loads the demo's data through SQL, inside the cluster: `python3 -m herdkeeper_e2e.loader --data DIRECTORY`.

Transactions have `--chunk-rows` rows, over `--connections` connections. A file always gives the same chunks, and a chunk is committed as a
whole, so its first row shows whether it is loaded: an interrupted load continues without further bookkeeping. It stops after the current
chunks if its standard input ends, so that it never outlives its caller.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from herdkeeper.sql.connection import Connection
from herdkeeper.sql.errors import ConnectionLost, DuplicateKey, NotLeader, OutcomeUnknown, SqlError
from herdkeeper.sql.leader import Patience
from herdkeeper_e2e import statements
from herdkeeper_e2e.checker.stop_order import stop_order
from herdkeeper_e2e.nycflights import TABLES, DataError, Row, Table, chunks, read_rows
from herdkeeper_e2e.session import LeaderConnection, Session, SettingError, open_session

PATIENCE = Patience(deadline_seconds=120.0, call_seconds=60.0)
"""A commit of 1,000 rows takes well below a second, but the first statements of a cold SQL planner take several."""
MAX_ATTEMPTS = 10
"""Per chunk. Each attempt itself waits for a leader, so this is far more than a failover needs."""


PROGRESS_SECONDS = 5.0
"""Between two lines of progress."""


class LoadError(RuntimeError):
    """The load can't continue. The message names the table and the fix."""


@dataclass
class Tally:
    """Counts of the work done, shared by the threads."""

    stop: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    rows: int = 0

    def add(self, count: int) -> None:
        """Count rows that are certainly committed."""
        with self.lock:
            self.rows += count


class Chunks:
    """The chunks of a table, handed out to several threads."""

    def __init__(self, source: Iterator[Sequence[Row]]) -> None:
        self._source = source
        self._lock = threading.Lock()

    def take(self) -> Sequence[Row] | None:
        """The next chunk; None at the end."""
        with self._lock:
            return next(self._source, None)


class TableLoader:
    """Loads the chunks of one table over one connection, and reconnects after each failover."""

    def __init__(self, session: Session, table: Table) -> None:
        self._table = table
        self.connection = LeaderConnection(session, PATIENCE)

    def load(self, rows: Sequence[Row], *, look_first: bool) -> None:
        """Commit the rows exactly once. `look_first`: an earlier run may have committed them.

        Raises:
            LoadError: the table has some of these rows but not the first one, or no attempt succeeded.
            ServerError: the server refused a row.
        """
        refused: DuplicateKey | None = None
        for _ in range(MAX_ATTEMPTS):
            try:
                connection = self.connection.get()
                if look_first and self._is_loaded(connection, rows[0]):
                    return
                if refused is not None:
                    raise LoadError(
                        f"the table {self._table.name} holds rows that this program did not load: {refused}; "
                        "drop the table, then load again"
                    ) from refused
                # From here on, check before the next attempt: a lost answer to a COMMIT proves nothing.
                look_first = True
                with connection.transaction() as transaction:
                    transaction.execute_batch(statements.insert(self._table), rows)
                return
            except DuplicateKey as error:
                refused = error  # a lost COMMIT may have become durable: the next check shows
            except (ConnectionLost, NotLeader, OutcomeUnknown):
                self.connection.close()
        raise LoadError(f"{MAX_ATTEMPTS} attempts to load a chunk of {self._table.name} failed: is its tablespace Ready?")

    def _is_loaded(self, connection: Connection, first: Row) -> bool:
        key = [first[position] for position in self._table.key_positions]
        return bool(connection.query(statements.select_by_key(self._table), key))


@dataclass(frozen=True)
class LoadPlan:
    data: Path
    chunk_rows: int
    connections: int


def load_table(session: Session, table: Table, plan: LoadPlan, stop: threading.Event) -> None:
    """Creates the table, and commits every row of its file that is not there yet.

    Raises:
        LoadError: as `TableLoader.load`, or the standard input ended first, or the count at the end is not the file's.
    """
    total = sum(1 for _ in read_rows(table, plan.data))
    with session.connect(PATIENCE) as connection:
        connection.execute(statements.create_table(table))
        present = row_count(connection, table.name)
    if present == total:
        print(f"{table.name}: {total:,} rows are there already", flush=True)
        return
    tally = Tally(stop=stop)
    source = Chunks(chunks(read_rows(table, plan.data), plan.chunk_rows))
    started = time.monotonic()

    def work() -> None:
        loader = TableLoader(session, table)
        try:
            while not tally.stop.is_set() and (rows := source.take()) is not None:
                loader.load(rows, look_first=present > 0)
                tally.add(len(rows))
        except BaseException:
            tally.stop.set()  # the others must not continue for a minute before the error is seen
            raise
        finally:
            loader.connection.close()

    with ThreadPoolExecutor(plan.connections) as pool:
        futures = [pool.submit(work) for _ in range(plan.connections)]
        waiting = set(futures)
        while waiting:
            _, waiting = wait(waiting, timeout=PROGRESS_SECONDS)
            seconds = time.monotonic() - started
            print(f"{table.name}: {tally.rows:,} of {total:,} rows, {tally.rows / seconds:,.0f} rows/s", flush=True)
        for future in futures:
            future.result()
    _require_complete(session, table, total)


def row_count(connection: Connection, table_name: str) -> int:
    value = connection.query(statements.count(table_name))[0]["n"]
    if not isinstance(value, int):
        raise LoadError(f"COUNT(*) of {table_name} answered {value!r}, expected a number")
    return value


def _require_complete(session: Session, table: Table, total: int) -> None:
    with session.connect(PATIENCE) as connection:
        present = row_count(connection, table.name)
    if present != total:
        raise LoadError(f"the table {table.name} has {present:,} rows, its file has {total:,}: run the load again")


def main() -> int:
    """The command line; 0 when all tables are complete, 1 with a reason on standard error otherwise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="directory with the CSV files")
    parser.add_argument("--tables", default=",".join(table.name for table in TABLES), help="only these, separated by commas")
    parser.add_argument("--chunk-rows", type=int, default=1000)
    parser.add_argument("--connections", type=int, default=4)
    arguments = parser.parse_args()
    wanted = arguments.tables.split(",")
    if unknown := set(wanted) - {table.name for table in TABLES}:
        parser.error(f"--tables: there is no table {', '.join(sorted(unknown))}")
    plan = LoadPlan(arguments.data, arguments.chunk_rows, arguments.connections)
    stop = stop_order()
    try:
        with open_session() as session:
            for table in TABLES:
                if table.name in wanted:
                    load_table(session, table, plan, stop)
    except (LoadError, SqlError, DataError, SettingError) as error:
        print(f"load failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
