"""Compares what a light audit expects of each bookie with what was read: the job's own comparison (audit/shares.py) against DuckDB.

Both take the same Parquet files. These have segments of synthetic ledgers with five replicas, and two holdings for most shares, since a
light audit reads a sample. Both count, per bookie and state, the copies of ledgers without a bad copy, and list the ledgers with one.
Prints seconds, CPU seconds and memory. `--full` joins 5M ledgers instead of a fortieth of it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import tempfile
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from spent import MEBIBYTE, Meter, report, run_contender

from herdkeeper_jobs.audit.bookie_health import BookieTally, added
from herdkeeper_jobs.audit.portion import LEDGERS_AT_ONCE
from herdkeeper_jobs.audit.schema import HOLDINGS_ARROW
from herdkeeper_jobs.audit.shares import SEGMENTS, match
from herdkeeper_jobs.copies.holding import CopyState

CORES, REPLICAS, BOOKIES, SAMPLE = 2, 5, 12, 8
_FILES = "SELECT * FROM read_parquet($folder || '/{}-*.parquet')"
# The same in SQL: expected copies by share, full outer join with those read, then the sums by bookie.
DUCKDB_JOIN = f"""
    CREATE TEMP TABLE lost AS
        WITH expected AS (
            SELECT ledger_id, segment, unnest(range(len(bookies))) AS position, unnest(bookies) AS bookie_id, last - first + 1 AS copies
            FROM ({_FILES.format("segments")})
        ), back AS (
            SELECT ledger_id, segment, position, bookie_id, sum(copies) AS copies FROM ({_FILES.format("holdings")}) GROUP BY ALL
        )
        SELECT * FROM expected FULL JOIN back USING (ledger_id, segment, position, bookie_id)
        WHERE expected.copies IS DISTINCT FROM back.copies;
    CREATE TEMP TABLE suspects AS
        SELECT DISTINCT ledger_id FROM ({_FILES.format("holdings")}) WHERE state NOT IN ('Verified', 'Unread');
    SELECT bookie_id, state, sum(copies)::BIGINT FROM ({_FILES.format("holdings")}) ANTI JOIN suspects USING (ledger_id) GROUP BY ALL;
"""


def write_files(folder: Path, ledgers: int) -> None:
    """Writes the same ledgers each time, with as many per file as the job handles at once. One copy in some 100,000 is missing."""
    chance = np.random.default_rng(7)
    ensembles = [[f"bookie-{(first + other) % BOOKIES}.bookies.shop.svc:3181" for other in range(REPLICAS)] for first in range(BOOKIES)]
    for start in range(0, ledgers, LEDGERS_AT_ONCE):
        ids = np.arange(start, min(start + LEDGERS_AT_ONCE, ledgers)) * 3
        last, ensemble = chance.integers(0, 5_000, len(ids)), chance.integers(0, BOOKIES, len(ids))
        zeros = np.zeros(len(ids), np.int32)
        bookies = pa.array(ensembles, pa.list_(pa.string())).take(pa.array(ensemble))
        quorum = pa.array(zeros + REPLICAS, pa.int32())
        columns = [pa.array(ids), pa.array(zeros), pa.array(zeros.astype(np.int64)), pa.array(last), quorum, bookies]
        pq.write_table(pa.Table.from_arrays(columns, schema=SEGMENTS), folder / f"segments-{start:012}.parquet")
        pq.write_table(_holdings(ids, last, bookies, chance), folder / f"holdings-{start:012}.parquet")


def _holdings(ids: np.ndarray, last: np.ndarray, bookies: pa.Array, chance: np.random.Generator) -> pa.Table:
    """Holdings in random order, as from parallel tasks of several bookies."""
    share = np.arange(len(ids) * REPLICAS)
    row = share // REPLICAS
    verified = np.minimum(last[row] + 1, SAMPLE)
    unread = last[row] + 1 - verified
    which = np.concatenate([share, share[unread > 0]])
    copies = np.concatenate([verified, unread[unread > 0]])
    state = np.concatenate([np.zeros(len(share), np.int64), np.ones(int((unread > 0).sum()), np.int64)])
    state[chance.random(len(state)) < 0.00001] = 2
    order = chance.permutation(len(which))
    which, copies, state = which[order], copies[order], state[order]
    names = pa.array([CopyState.VERIFIED, CopyState.UNREAD, CopyState.MISSING], pa.string())
    zeros = np.zeros(len(which), np.int64)
    columns = [
        pa.array(ids[row[which]]),
        pa.array(zeros.astype(np.int32)),
        bookies.flatten().take(pa.array(which)),
        pa.array((which % REPLICAS).astype(np.int32)),
        names.take(pa.array(state)),
        pa.array(zeros),
        pa.array(last[row[which]]),
        pa.array(copies),
        pa.array(np.where(state == 0, copies * 264, 0)),
        pa.array([""], pa.string()).take(pa.array(zeros)),
        # a sample has no content to compare
        pa.array([[]], HOLDINGS_ARROW.field("content").type).take(pa.array(zeros)),
        *(pa.nulls(len(which), pa.int64()) for _ in range(2)),
    ]
    return pa.Table.from_arrays(columns, schema=HOLDINGS_ARROW)


def join_by_job(folder: Path) -> None:
    """The job's comparison, some thousands of ledgers at a time."""
    meter = Meter()
    tallies: dict[str, BookieTally] = {}
    suspects: set[int] = set()
    for path in sorted(folder.glob("segments-*")):
        holdings = pq.read_table(path.with_name(path.name.replace("segments", "holdings")))
        found = match(pq.read_table(path, schema=SEGMENTS), holdings)
        tallies = added(tallies, found.tallies)
        suspects.update(found.suspects.column("ledger_id").to_pylist())
    spent = meter.read()
    rows = [(name, state.value, tally.in_state(state)) for name, tally in tallies.items() for state in CopyState if tally.in_state(state)]
    report(spent, result=_result(rows, suspects))


def join_by_duckdb(folder: Path) -> None:
    """The peer."""
    with duckdb.connect(config={"threads": CORES}) as connection:
        meter = Meter()
        for statement in DUCKDB_JOIN.split(";")[:-1]:
            rows = connection.execute(statement, {"folder": str(folder)}).fetchall()
        suspects = {ledger_id for (ledger_id,) in connection.execute("SELECT ledger_id FROM suspects").fetchall()}
        (lost,) = connection.execute("SELECT count(*) FROM lost").fetchall()[0]
        spent = meter.read()
    if lost:
        raise SystemExit(f"DuckDB found {lost} shares of which not every copy came back")
    report(spent, result=_result(rows, suspects))


def _result(rows: list[tuple[str, str, int]], suspects: set[int]) -> list[object]:
    """A short form; equal for equal answers."""
    whole = json.dumps([sorted([list(row) for row in rows]), sorted(suspects)])
    return [hashlib.sha256(whole.encode()).hexdigest(), sum(row[2] for row in rows), len(suspects)]


def main() -> None:
    """Makes the files, runs both, compares, prints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true", help="5M ledgers instead of 125,000")
    parser.add_argument("--contender", choices=("job", "duckdb"))
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    if arguments.contender:
        {"job": join_by_job, "duckdb": join_by_duckdb}[arguments.contender](arguments.folder)
        return
    ledgers = 5_000_000 if arguments.full else 125_000
    folder = Path(tempfile.mkdtemp(prefix="herdkeeper-bench-"))
    try:
        write_files(folder, ledgers)
        found = {name: run_contender(__file__, "--contender", name, "--folder", str(folder)) for name in ("duckdb", "job")}
    finally:
        shutil.rmtree(folder)
    (ours, our_result), (peer, peer_result) = found["job"], found["duckdb"]
    if our_result != peer_result:
        raise SystemExit(f"both must give the same: {our_result} and {peer_result}")
    print(f"light audit, {ledgers:,} ledgers of {REPLICAS} replicas: what came back beside what the metadata wants")
    for name, spent in (("audit/shares.py", ours), ("DuckDB, 2 threads", peer)):
        peak = spent.peak_bytes / MEBIBYTE
        print(f"{name:18} {spent.wall_seconds:8.1f} s {spent.cpu_seconds:8.1f} s of CPU time {peak:8,.0f} MiB at most")
    wall, cpu = ours.wall_seconds / peer.wall_seconds, ours.cpu_seconds / peer.cpu_seconds
    print(f"audit / DuckDB     {wall:8.2f} times the seconds, {cpu:.2f} times the CPU seconds (target: 30 s for 5M ledgers on 2 cores)")


if __name__ == "__main__":
    main()
