"""A deep audit of real bookies through Spark, compared with one Python process that reads the same copies in a plain loop.

Starts ZooKeeper and three bookies as plain processes, and writes closed ledgers of 200 B entries, each entry on all three. Both contenders
read every copy by BATCH_READ. They verify its digest, ids, LAC and length, and compare a ledger's copies. The audit is the job's own
(audit/job.py), with metadata, plan, comparison and Spark; a third contender runs its tasks without Spark. Prints the client's CPU seconds
per million copies. `--full` writes 18 million copies and audits them four times, so Spark's start weighs as in an audit of 72 million.
"""

from __future__ import annotations

import argparse
import socket
import struct
from collections.abc import Callable, Sequence
from typing import Any

import crc32c
import pyarrow as pa
from class_archive import use_class_archive
from kazoo.client import KazooClient
from spent import MEBIBYTE, Meter, Spent, report, run_contender
from synthetic_ledgers import SyntheticLedger, write_entries, write_metadata

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper.protocol.audit_finding import AuditDepth
from herdkeeper_e2e.server_processes import LEDGERS_ROOT, servers
from herdkeeper_jobs.audit.copy_reader import TaskRunner
from herdkeeper_jobs.audit.job import audit
from herdkeeper_jobs.audit.on_spark import run_on_spark
from herdkeeper_jobs.audit.request import AuditRequest, LedgerFilter
from herdkeeper_jobs.audit.schema import holdings_to_batch
from herdkeeper_jobs.bookkeeper.metadata import VersionedMetadata, open_catalog
from herdkeeper_jobs.copies.check import check_copies
from herdkeeper_jobs.copies.plan import AuditBudget, AuditTask
from herdkeeper_jobs.spark_session import SparkSettings, start_spark

BOOKIES, LEDGERS, PAYLOAD_BYTES, CORES = 3, 6, 200, 2
_HEADER, _DIGEST = 32, 4
_BATCH_ENTRIES, _BATCH_BYTES = 10_000, 2 * 1024 * 1024


def read_by_spark(zookeeper: str, rounds: int) -> None:
    """The job's audit."""
    meter = Meter()
    spark = start_spark("bench", SparkSettings(master=f"local[{CORES}]"))
    spark.range(1).collect()
    until_spark = meter.read().cpu_seconds
    copies = sum(_audit(zookeeper, lambda tasks: run_on_spark(spark, tasks)) for _ in range(rounds))
    report(meter.read(), until_spark=until_spark, copies=copies)
    spark.stop()


def read_without_spark(zookeeper: str, rounds: int) -> None:
    """The same audit with its tasks one after the other, without Spark."""

    def run(tasks: Sequence[AuditTask]) -> pa.Table:
        return pa.Table.from_batches([holdings_to_batch(check_copies(task)) for task in tasks])

    meter = Meter()
    copies = sum(_audit(zookeeper, run) for _ in range(rounds))
    report(meter.read(), copies=copies)


def _audit(zookeeper: str, run_tasks: TaskRunner) -> int:
    """Audits once; returns the number of verified copies, which must be all."""
    with open_catalog(zookeeper, LEDGERS_ROOT) as catalog:
        summary = audit(catalog, AuditRequest(LedgerFilter(), AuditDepth.DEEP, "bench"), AuditBudget(CORES), run_tasks).summary
    if summary.findings or summary.copies_verified != summary.copies_expected:
        raise SystemExit(f"the audit says: {summary.message}")
    return summary.copies_verified


def read_by_a_loop(zookeeper: str, rounds: int) -> None:
    """The peer: no object per entry, no plan, no partial failures."""
    meter = Meter()
    copies = sum(_read_all(zookeeper) for _ in range(rounds))
    report(meter.read(), copies=copies)


def _read_all(zookeeper: str) -> int:
    copies = 0
    said: dict[int, int] = {}
    with open_catalog(zookeeper, LEDGERS_ROOT) as catalog:
        addresses = catalog.bookie_addresses()
        ledgers = [read.metadata for read in catalog.read_many(catalog.ledger_ids()) if isinstance(read, VersionedMetadata)]
    for name, address in sorted(addresses.items()):
        with socket.create_connection((address.host, address.port), timeout=60) as stream:
            incoming = stream.makefile("rb", buffering=1 << 18)
            for ledger in ledgers:
                if name in ledger.segments[0].bookies:
                    last = ledger.last_entry_id or 0
                    content = _read_ledger(stream, incoming, ledger.ledger_id, last)
                    if said.setdefault(ledger.ledger_id, content) != content:
                        raise SystemExit(f"copies of ledger {ledger.ledger_id} contradict each other")
                    copies += last + 1
    return copies


def _read_ledger(stream: socket.socket, incoming: Any, ledger_id: int, last: int) -> int:
    """Reads and verifies one ledger; returns a checksum of all payloads and lengths."""
    size_of, fields = struct.Struct(">i").unpack_from, struct.Struct(">qqqqI").unpack_from
    checksum = crc32c.crc32c
    entry_id = before = content = 0
    while entry_id <= last:
        count = min(_BATCH_ENTRIES, last + 1 - entry_id)
        stream.sendall(struct.pack(">iiqqqiq", struct.calcsize(">iqqqiq"), 2 << 24 | 7 << 16, ledger_id, entry_id, 0, count, _BATCH_BYTES))
        frame = incoming.read(size_of(incoming.read(4))[0])
        position = struct.calcsize(">iiqqq")
        if size_of(frame, 4)[0] != 0 or position == len(frame):
            raise SystemExit(f"a bookie lacks entry {entry_id} of ledger {ledger_id}")
        while position < len(frame):
            size = size_of(frame, position)[0]
            data = frame[position + 4 : position + 4 + size]
            payload = data[_HEADER + _DIGEST :]
            its_ledger, its_id, lac, length, digest = fields(data)
            if digest != checksum(payload, checksum(data[:_HEADER])) or its_id != entry_id or its_ledger != ledger_id:
                raise SystemExit(f"a bookie has entry {entry_id} of ledger {ledger_id} damaged")
            if not -1 <= lac <= last or length != before + len(payload):
                raise SystemExit(f"entry {entry_id} of ledger {ledger_id} has a wrong LAC or length")
            content += checksum(payload) * (2 * entry_id + 1) + length
            before = length
            entry_id += 1
            position += 4 + size
    return content


CONTENDERS: dict[str, Callable[[str, int], None]] = {"loop": read_by_a_loop, "audit": read_without_spark, "spark": read_by_spark}


def main() -> None:
    """Starts the servers, writes, runs all contenders, compares, prints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true", help="6000000 entries, all of them read four times; takes 10 GB of disk")
    parser.add_argument("--entries", type=int, help="entries, of three copies each (default: 600000)")
    parser.add_argument("--contender", choices=tuple(CONTENDERS))
    parser.add_argument("--zookeeper")
    parser.add_argument("--rounds", type=int, help="all is read so many times (default: 1)")
    arguments = parser.parse_args()
    if arguments.contender:
        CONTENDERS[arguments.contender](arguments.zookeeper, arguments.rounds)
        return
    use_class_archive()
    entries, rounds = arguments.entries or (6_000_000 if arguments.full else 600_000), arguments.rounds or (4 if arguments.full else 1)
    with servers(java_options=()) as running:
        zookeeper = running.start_zookeeper()
        bookies = tuple(running.start_bookies(BOOKIES))
        with running.client() as client:
            _write(client, zookeeper, [SyntheticLedger(number, bookies, entries // LEDGERS, PAYLOAD_BYTES) for number in range(LEDGERS)])
        where = ("--zookeeper", zookeeper, "--rounds", str(rounds))
        found = {name: run_contender(__file__, "--contender", name, *where) for name in CONTENDERS}
    copies = entries // LEDGERS * LEDGERS * BOOKIES * rounds
    if any(result["copies"] != copies for _, result in found.values()):
        raise SystemExit(f"all must read {copies} copies: {found}")
    _print(copies, {name: spent for name, (spent, _) in found.items()}, float(str(found["spark"][1]["until_spark"])))


def _write(client: KazooClient, zookeeper: str, ledgers: list[SyntheticLedger]) -> None:
    with open_catalog(zookeeper, LEDGERS_ROOT) as catalog:
        addresses: dict[str, BookieAddress] = catalog.bookie_addresses()
    # metadata first: otherwise a bookie's garbage collection might find entries without it
    write_metadata(client, LEDGERS_ROOT, ledgers)
    write_entries(ledgers, addresses)


def _print(copies: int, spent: dict[str, Spent], until_spark: float) -> None:
    print(f"deep audit of {copies:,} copies of entries of {PAYLOAD_BYTES} B on {BOOKIES} bookies")
    per_million = {name: one.cpu_seconds * 1e6 / copies for name, one in spent.items()}
    for name, label in (("loop", "one process, a plain loop"), ("audit", "the audit without Spark"), ("spark", "the audit")):
        one = spent[name]
        print(f"{label:26}{one.cpu_seconds:8.1f} CPU s, {per_million[name]:6.2f} a million", end="")
        print(f" {one.wall_seconds:8.1f} s {one.peak_bytes / MEBIBYTE:8,.0f} MiB at most")
    without_start = (spent["spark"].cpu_seconds - until_spark) * 1e6 / copies
    print(f"the audit behind Spark's start ({until_spark:.1f} CPU s): {without_start:.2f} a million")
    ratios = [value / per_million["loop"] for value in (per_million["spark"], without_start, per_million["audit"])]
    print(f"audit / loop {ratios[0]:.2f}, without Spark's start {ratios[1]:.2f}, without Spark {ratios[2]:.2f} (target: 1.1)")


if __name__ == "__main__":
    main()
