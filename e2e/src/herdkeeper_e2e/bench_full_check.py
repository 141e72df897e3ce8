"""Measures the cost of a full check: `python3 -m herdkeeper_e2e.bench_full_check`.

Starts ZooKeeper, a bookie and two SQL nodes as plain processes, and loads rows of about 100 bytes into a replicated table. During each
check a client writes autocommit rows into another table of the tablespace. Prints how long the leader paused writes, in total and at most
at a time. Also how long the check took, and the client's writes with and without it. Turns differ in the longest pause allowed. Fails if
the follower does not pass.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import threading
import time
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from herdkeeper.sql.connection import Address, Connection
from herdkeeper_e2e.server_processes import CREDENTIALS, NODE_ID, TOKEN, leads, servers

TABLESPACE, FOLLOWER, CONNECTIONS, ROWS_IN_TRANSACTION, ROWS_IN_BATCH = "checked", "node-1", 4, 5000, 500
STOPS_MILLIS = (200, 200, 10_000)
BESIDE_SECONDS, LONGEST_SECONDS = 15.0, 1800.0


@dataclass
class Writer:
    """A client that writes row after row until stopped, and records how long each took."""

    address: Address
    seconds: list[float] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def write(self) -> None:
        with Connection.connect(self.address, CREDENTIALS, TABLESPACE, timeout_seconds=60) as connection:
            key = random.getrandbits(40)
            while not self.ended.is_set():
                begun = time.monotonic()
                connection.execute("INSERT INTO w(k,n) VALUES(?,?)", (key, 1))
                self.seconds.append(time.monotonic() - begun)
                key += 1

    def beside(self, what: Any) -> str:
        """Write while `what` runs; returns how long the writes took."""
        self.seconds.clear()
        self.ended.clear()
        thread = threading.Thread(target=self.write)
        thread.start()
        what()
        self.ended.set()
        thread.join()
        longest, median = max(self.seconds), statistics.median(self.seconds)
        return f"{len(self.seconds)} writes, median {median * 1000:.1f} ms, longest {longest * 1000:.0f} ms"


def load(address: Address, rows: int) -> None:
    """Rows with random keys, over several connections."""
    with Connection.connect(address, CREDENTIALS, TABLESPACE, timeout_seconds=60) as connection:
        connection.execute("CREATE TABLE t (k long primary key, carrier string, distance double, delay int, note string)")
        connection.execute("CREATE TABLE w (k long primary key, n int)")

    def part(number: int) -> None:
        drawn = random.Random(number)
        with Connection.connect(address, CREDENTIALS, TABLESPACE, timeout_seconds=60) as connection:
            for begin in range(number, rows, CONNECTIONS * ROWS_IN_TRANSACTION):
                keys = range(begin, min(rows, begin + CONNECTIONS * ROWS_IN_TRANSACTION), CONNECTIONS)
                found = [(key * 7919 + (drawn.getrandbits(20) << 42), "AA", drawn.random(), key % 97, f"{key:060d}") for key in keys]
                with connection.transaction() as transaction:
                    for batch in range(0, len(found), ROWS_IN_BATCH):
                        transaction.execute_batch(
                            "INSERT INTO t(k,carrier,distance,delay,note) VALUES(?,?,?,?,?)", found[batch : batch + ROWS_IN_BATCH]
                        )

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(part, range(CONNECTIONS)))


def told(http: str) -> dict[str, Any]:
    """Returns a node's view of the tablespace."""
    with urllib.request.urlopen(f"{http}/tablespaces", timeout=60) as answer:
        return next((entry for entry in json.load(answer) if entry["name"] == TABLESPACE), {})


def check(leader: str, follower: str, millis: int) -> dict[str, Any]:
    """Run a check of all tables until the follower has finished it, too."""
    path = f"{leader}/tablespaces/{TABLESPACE}/check?maxStopMillis={millis}"
    order = urllib.request.Request(path, method="POST", headers={"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(order, timeout=60) as answer:
        begun = json.load(answer)["fullCheck"]["startedAtMillis"]
    deadline = time.monotonic() + LONGEST_SECONDS
    while time.monotonic() < deadline:
        found, copy = told(leader)["fullCheck"], told(follower)
        if found["endedAtMillis"] is not None and found["startedAtMillis"] == begun:
            if found["error"] is not None:
                raise SystemExit(f"the check has ended early: {found['error']}")
            if _lsn(copy["applied"]) >= _lsn(found["until"]):
                return {**found, "checks": copy["checks"]}
        time.sleep(0.2)
    raise SystemExit(f"the check has not ended in {LONGEST_SECONDS:.0f} s")


def _lsn(position: dict[str, int]) -> tuple[int, int]:
    return position["ledgerId"], position["entryId"]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the table")
    parser.add_argument("--herddb-jars", type=Path, help="folder with the jars of the SQL nodes; those of this checkout when absent")
    options = parser.parse_args(arguments)
    with servers(java_options=()) as made:
        made.jars = {"herddb": options.herddb_jars} if options.herddb_jars is not None else {}
        made.start_zookeeper()
        made.start_bookies(1)
        address = made.start_sql_node()
        follower = made.start_another_sql_node(1)
        with Connection.connect(address, CREDENTIALS, timeout_seconds=120) as connection:
            replicas = f"'leader:{NODE_ID}','replica:{NODE_ID},{FOLLOWER}','expectedreplicacount:1','wait:60000'"
            connection.execute(f"CREATE TABLESPACE '{TABLESPACE}',{replicas}")
        made.wait("node", lambda: leads(address, TABLESPACE))
        load(address, options.rows)
        made.wait(FOLLOWER, lambda: told(follower).get("rows", {}).get("t") == options.rows)
        writer = Writer(address)
        print(f"{options.rows} rows; no check: {writer.beside(lambda: time.sleep(BESIDE_SECONDS))}", flush=True)
        for millis in STOPS_MILLIS:
            found: list[dict[str, Any]] = []
            beside = writer.beside(lambda millis=millis, found=found: found.append(check(made.node_http, follower, millis)))
            report(found[0], options.rows, millis, beside)


def report(found: dict[str, Any], rows: int, millis: int, beside: str) -> None:
    """Print one line; SystemExit if the follower did not pass."""
    if not all(found["checks"][table]["pass"] for table in ("t", "w")):
        raise SystemExit(f"equal copies did not pass: {found['checks']}")
    stopped, took = found["tables"]["t"] / 1000, (found["endedAtMillis"] - found["startedAtMillis"]) / 1000
    print(
        f"at most {millis} ms: writes stopped for {stopped:.2f} s ({stopped / rows * 1e6:.2f} s per million rows), "
        f"{found['longestStopMillis']} ms in one piece; {took:.1f} s long; beside it {beside}",
        flush=True,
    )


if __name__ == "__main__":
    main()
