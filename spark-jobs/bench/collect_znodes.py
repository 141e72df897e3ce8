"""Collects the metadata of many ledgers from a real ZooKeeper: the jobs' catalog, compared with a kazoo loop that reads one by one.

Both find all ledgers below the root and decode their metadata. Then the audit plans from it, with the columns of `audit/shares.py`. Prints
znodes per second, of wall time and of the client's CPU time. `--full` reads 400,000 ledgers instead of 40,000.
"""

from __future__ import annotations

import argparse
import uuid
from collections.abc import Callable

from kazoo.client import KazooClient
from spent import MEBIBYTE, Meter, Spent, report, run_contender
from synthetic_ledgers import SyntheticLedger, write_metadata

from herdkeeper.codecs.bookkeeper.bookie_address import BookieAddress
from herdkeeper.codecs.bookkeeper.layout import LedgerLayout, inner_levels, ledger_id_of
from herdkeeper.codecs.bookkeeper.metadata import decode_ledger_metadata
from herdkeeper.engine.execute_metadata import IDENTITY, LAYOUT
from herdkeeper_e2e.server_processes import LEDGERS_ROOT, servers
from herdkeeper_jobs.audit.portion import LEDGERS_AT_ONCE
from herdkeeper_jobs.audit.shares import segments_of
from herdkeeper_jobs.bookkeeper.metadata import VersionedMetadata, open_catalog
from herdkeeper_jobs.copies.plan import AuditBudget, AuditedLedger, holding_checks, plan_tasks, sampled

BOOKIES = tuple(f"bookie-{number}.bookies.shop.svc:3181" for number in range(12))
REPLICAS = 5


def collect_by_catalog(zookeeper: str) -> None:
    """The jobs' catalog, used as in the audit: some thousands of ledgers at a time."""
    with open_catalog(zookeeper, LEDGERS_ROOT) as catalog:
        meter = Meter()
        ids = catalog.ledger_ids()
        found, entries = 0, 0
        for start in range(0, len(ids), LEDGERS_AT_ONCE):
            for read in catalog.read_many(ids[start : start + LEDGERS_AT_ONCE]):
                assert isinstance(read, VersionedMetadata)
                found, entries = found + 1, entries + (read.metadata.last_entry_id or 0) + 1
        report(meter.read(), ledgers=found, entries=entries)


def collect_one_by_one(zookeeper: str) -> None:
    """The peer: what a script would do."""
    client = KazooClient(hosts=zookeeper)
    client.start()
    meter = Meter()
    found, entries = 0, 0
    waiting = [name for name in client.get_children(LEDGERS_ROOT) if inner_levels(LedgerLayout.HIERARCHICAL, name) is not None]
    while waiting:
        path = waiting.pop()
        ledger_id = ledger_id_of(f"/{path}")
        if ledger_id is None:
            waiting += [f"{path}/{name}" for name in client.get_children(f"{LEDGERS_ROOT}/{path}")]
            continue
        data, _ = client.get(f"{LEDGERS_ROOT}/{path}")
        found, entries = found + 1, entries + (decode_ledger_metadata(ledger_id, data).last_entry_id or 0) + 1
    report(meter.read(), ledgers=found, entries=entries)
    client.stop()


def plan_of_it(zookeeper: str) -> None:
    """What the driver derives from the metadata before any read: a sample of each share, tasks, and columns."""
    addresses = {name: BookieAddress(name, 3181) for name in BOOKIES}
    with open_catalog(zookeeper, LEDGERS_ROOT) as catalog:
        reads = [read for read in catalog.read_many(catalog.ledger_ids()) if isinstance(read, VersionedMetadata)]
    ledgers = [AuditedLedger(read.metadata, read.metadata.last_entry_id or 0) for read in reads]
    meter = Meter()
    shares = 0
    for start in range(0, len(ledgers), LEDGERS_AT_ONCE):
        part = ledgers[start : start + LEDGERS_AT_ONCE]
        checks = [sampled(check, "bench") for ledger in part for check in holding_checks(ledger)]
        plan_tasks(checks, addresses, AuditBudget(2))
        segments_of(part)
        shares += len(checks)
    report(meter.read(), ledgers=len(ledgers), entries=shares)


CONTENDERS: dict[str, Callable[[str], None]] = {"catalog": collect_by_catalog, "one by one": collect_one_by_one, "plan": plan_of_it}


def main() -> None:
    """Starts ZooKeeper, creates the ledgers' znodes, runs all contenders, compares, prints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true", help="400,000 ledgers instead of 40,000")
    parser.add_argument("--contender", choices=tuple(CONTENDERS))
    parser.add_argument("--zookeeper")
    arguments = parser.parse_args()
    if arguments.contender:
        CONTENDERS[arguments.contender](arguments.zookeeper)
        return
    count = 400_000 if arguments.full else 40_000
    with servers(java_options=()) as running:
        zookeeper = running.start_zookeeper()
        with running.client() as client:
            for name, data in (("LAYOUT", LAYOUT), (IDENTITY, str(uuid.uuid4()).encode())):
                client.create(f"{LEDGERS_ROOT}/{name}", data, makepath=True)
            write_metadata(client, LEDGERS_ROOT, [_ledger(number) for number in range(count)])
        found = {name: run_contender(__file__, "--contender", name, "--zookeeper", zookeeper) for name in CONTENDERS}
    if found["catalog"][1] != found["one by one"][1]:
        raise SystemExit(f"both must find the same: {found['catalog'][1]} and {found['one by one'][1]}")
    _print(count, {name: spent for name, (spent, _) in found.items()}, found["plan"][1]["entries"])


def _ledger(number: int) -> SyntheticLedger:
    bookies = tuple(BOOKIES[(number + other) % len(BOOKIES)] for other in range(REPLICAS))
    return SyntheticLedger(number * 3, bookies, 1 + number * 7919 % 5000, 200)


def _print(count: int, spent: dict[str, Spent], shares: object) -> None:
    print(f"metadata of {count:,} ledgers from one ZooKeeper")
    for name, label in (("catalog", "bookkeeper/metadata.py"), ("one by one", "kazoo, one by one")):
        rates = f"{count / spent[name].wall_seconds:10,.0f} znodes/s, {count / spent[name].cpu_seconds:10,.0f} per CPU second of the client"
        print(f"{label:24}{rates}, {spent[name].peak_bytes / MEBIBYTE:,.0f} MiB at most")
    wall, cpu = (getattr(spent["one by one"], which) / getattr(spent["catalog"], which) for which in ("wall_seconds", "cpu_seconds"))
    print(f"catalog / one by one    {wall:10.1f} times the znodes/s, {cpu:.1f} times those per CPU second")
    plan = spent["plan"].cpu_seconds
    print(f"planning a light audit  {count / plan:10,.0f} ledgers per CPU second ({shares:,} shares)")


if __name__ == "__main__":
    main()
