"""What certificates cost: the same statements and the same audit on servers in plain text and on servers that require them.

Starts two stacks as plain processes, each with one ZooKeeper member, three bookies and a SQL node that keeps three copies of its log. The
second one has TLS on every port, the SQL port included. Eight connections insert single rows. The stacks alternate, after a turn that warms
each of them up. Then all copies of closed ledgers are audited on each, also in turns. Prints acknowledged rows per second, latency, the
servers' CPU, audited copies per second, what a new connection costs, and each server's resident memory. `--full` takes longer turns.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from spent import MEBIBYTE, cpu_seconds_of, resident_bytes_of, run_contender
from synthetic_ledgers import SyntheticLedger, write_entries, write_metadata

from herdkeeper.shared.names import IDENTITY_VARIABLE
from herdkeeper.sql.connection import Address, Connection
from herdkeeper.sql.encryption import Encryption
from herdkeeper_e2e.certificates import Authority
from herdkeeper_e2e.mutual_tls import LOOPBACK, stack_secrets
from herdkeeper_e2e.server_processes import CREDENTIALS, LEDGERS_ROOT, NODE, Servers, servers
from herdkeeper_jobs.bookkeeper.connection import BookieConnection
from herdkeeper_jobs.bookkeeper.metadata import open_catalog

CONNECTIONS, TURNS, AUDITS, CONNECTS, WARMING_SECONDS = 8, 12, 5, 20, 40.0
MOST_ROWS = 10_000_000
"""Ids of a turn begin at a multiple of it."""
LEDGERS, ENTRIES, PAYLOAD_BYTES = 6, 50_000, 200
AUDIT = str(Path(__file__).with_name("audit_deep.py"))


@dataclass
class Stack:
    """Servers, their SQL port, and what was measured of them."""

    servers: Servers
    sql: Address
    bookies: tuple[str, ...]
    rows_a_second: list[float] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    """Of each acknowledged row, in seconds."""
    server_cpu: list[float] = field(default_factory=list)
    """CPU seconds of all servers per thousand rows."""
    copies_a_second: list[float] = field(default_factory=list)
    connects: dict[str, list[float]] = field(default_factory=dict)
    """Seconds until a new connection is authenticated, by port."""

    @contextmanager
    def identity(self) -> Iterator[None]:
        """Inside, the project's clients present the stack's certificate, if it has one; also those in processes that are started."""
        if self.servers.secrets is None:
            yield
            return
        os.environ[IDENTITY_VARIABLE] = str(self.servers.secrets.tester.folder)
        try:
            yield
        finally:
            del os.environ[IDENTITY_VARIABLE]

    def connect(self) -> Connection:
        return Connection.connect(self.sql, CREDENTIALS, timeout_seconds=120)


@contextmanager
def stack(*, certificates: bool) -> Iterator[Stack]:
    """A running stack."""
    with servers(java_options=()) as running:
        more: dict[str, object] = {}
        encryption = None
        if certificates:
            folder = running.folder / "authority"
            folder.mkdir()
            authority = Authority(folder, "bench")
            running.secrets = stack_secrets(running.folder / "secrets", authority)
            more = {"server.ssl": "true", "herdkeeper.tls.dir": running.secrets.nodes.folder, "herdkeeper.tls.plaintext": "refused"}
            encryption = Encryption(LOOPBACK, authority.certificate)
        running.start_zookeeper()
        bookies = tuple(running.start_bookies(3))
        sql = running.start_sql_node(more, encryption)
        made = Stack(running, sql, bookies)
        with made.identity():
            _write_ledgers(made)
        with made.connect() as connection:
            connection.execute("CREATE TABLE t (id long PRIMARY KEY, carrier string, distance int, note string)")
        yield made


def _write_ledgers(made: Stack) -> None:
    ledgers = [SyntheticLedger(1_000_000 + number, made.bookies, ENTRIES, PAYLOAD_BYTES) for number in range(LEDGERS)]
    with made.servers.client() as client, open_catalog(made.servers.zookeeper, LEDGERS_ROOT) as catalog:
        write_metadata(client, LEDGERS_ROOT, ledgers)
        write_entries(ledgers, catalog.bookie_addresses())


def write(made: Stack, first: int, seconds: float) -> int:
    """Inserts by all connections for so long; returns the number of rows. Ids begin at `first`."""
    until = [0.0]

    def begin() -> None:
        until[0] = time.monotonic() + seconds

    barrier = threading.Barrier(CONNECTIONS, begin)

    def insert(number: int) -> list[float]:
        taken: list[float] = []
        try:
            with made.connect() as connection:
                barrier.wait()
                for key in itertools.count(first + number, CONNECTIONS):
                    if (began := time.monotonic()) >= until[0]:
                        break
                    connection.execute("INSERT INTO t VALUES (?, ?, ?, ?)", (key, "UA", key % 5000, "x" * 60))
                    taken.append(time.monotonic() - began)
        except BaseException:
            barrier.abort()  # nobody waits for a connection that was not made
            raise
        return taken

    before = _server_cpu(made)
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        latencies = list(pool.map(insert, range(CONNECTIONS)))
    rows = sum(map(len, latencies))
    made.rows_a_second.append(rows / seconds)
    made.server_cpu.append((_server_cpu(made) - before) * 1000 / rows)
    made.latencies += [each for part in latencies for each in part]
    return rows


def audit(made: Stack) -> None:
    """Audits all copies of the closed ledgers, in a process of its own."""
    with made.identity():
        spent, found = run_contender(AUDIT, "--contender", "audit", "--zookeeper", made.servers.zookeeper, "--rounds", "1")
    made.copies_a_second.append(float(str(found["copies"])) / spent.wall_seconds)


def connect(made: Stack) -> None:
    """Connects to a bookie and to the SQL node, one after the other."""
    with made.identity(), open_catalog(made.servers.zookeeper, LEDGERS_ROOT) as catalog:
        address = catalog.bookie_addresses()[made.bookies[0]]
        ways: dict[str, Callable[[], BookieConnection | Connection]] = {
            "a bookie": lambda: BookieConnection(made.bookies[0], address, 60.0),
            "the SQL node": made.connect,
        }
        for name, way in ways.items():
            for _ in range(CONNECTS):
                began = time.monotonic()
                with way():
                    made.connects.setdefault(name, []).append(time.monotonic() - began)


def _server_cpu(made: Stack) -> float:
    return sum(map(cpu_seconds_of, made.servers.process_ids()))


def main() -> None:
    """Starts both stacks, measures them in turns, prints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true", help="turns of 20 s instead of 5")
    seconds = 20.0 if parser.parse_args().full else 5.0
    with ExitStack() as opened:
        stacks = {
            "plain text": opened.enter_context(stack(certificates=False)),
            "certificates": opened.enter_context(stack(certificates=True)),
        }
        rows = {name: write(made, 0, WARMING_SECONDS) for name, made in stacks.items()}
        for made in stacks.values():
            made.rows_a_second, made.latencies, made.server_cpu = [], [], []
        for turn in range(1, TURNS + 1):
            for name, made in stacks.items():
                rows[name] += write(made, turn * MOST_ROWS, seconds)
        for _ in range(AUDITS):
            for made in stacks.values():
                connect(made)
                audit(made)
        for name, made in stacks.items():
            with made.connect() as connection:
                held = connection.query("SELECT COUNT(*) AS n FROM t")[0]["n"]
            if held != rows[name]:
                raise SystemExit(f"with {name} {rows[name]} rows were acknowledged, and {held!r} are there")
        _print(stacks, seconds)


def _print(stacks: dict[str, Stack], seconds: float) -> None:
    print(f"{CONNECTIONS} connections insert single rows, {TURNS} turns of {seconds:.0f} s each")
    for name, made in stacks.items():
        print(f"{name:14}{' '.join(f'{rate:6,.0f}' for rate in made.rows_a_second)} rows/s")
    plain, secure = stacks.values()
    print(f"{'medians':48}{'plain text':>14}{'certificates':>14}")
    median = statistics.median

    def line(what: str, values: tuple[float, float], form: str = "14,.2f") -> None:
        print(f"{what:48}{values[0]:{form}}{values[1]:{form}}   {values[1] / values[0]:.2f} times")

    line("acknowledged rows/s", (median(plain.rows_a_second), median(secure.rows_a_second)), "14,.0f")
    for name, share in (("median", 50), ("99th percentile", 99)):
        line(f"milliseconds for a row, {name}", (_percentile(plain, share), _percentile(secure, share)))
    line("CPU seconds of the servers per 1,000 rows", (median(plain.server_cpu), median(secure.server_cpu)))
    line("audited copies/s", (median(plain.copies_a_second), median(secure.copies_a_second)), "14,.0f")
    for port in plain.connects:
        line(f"milliseconds for a new connection to {port}", (1000 * median(plain.connects[port]), 1000 * median(secure.connects[port])))
    for process in ("zookeeper", "bookie-0", NODE):
        held = [resident_bytes_of(made.servers.processes[process].pid) / MEBIBYTE for made in (plain, secure)]
        line(f"MiB resident of {process}", (held[0], held[1]), "14,.0f")


def _percentile(made: Stack, share: int) -> float:
    """In milliseconds."""
    return 1000 * statistics.quantiles(made.latencies, n=100)[share - 1]


if __name__ == "__main__":
    main()
