"""Marks a ledger as under-replicated while it runs: `python3 -m herdkeeper_e2e.marked_ledger --ledgers-root PATH --ledger ID`.

The mark is as BookKeeper's auditor makes it, but no copy is missing. The program holds the lock of the ledger's replication, so no
replication worker looks at the ledger and takes the mark away. One does so if the program is killed. Once the mark is there, it prints
`acknowledged`, for which SteeredProcess waits. It ends with a line, or the end, of its standard input.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from kazoo.client import KazooClient

from herdkeeper.codecs.bookkeeper.underreplication import MARK_DEPTH, marks_path
from herdkeeper_e2e.session import open_session


def mark_of(ledgers_root: str, ledger: int) -> str:
    """Returns the path of a ledger's mark. Source: ZkLedgerUnderreplicationManager of BookKeeper 4.18.0."""
    digits = f"{ledger:016x}"
    width = len(digits) // MARK_DEPTH
    folders = "/".join(digits[place : place + width] for place in range(0, len(digits), width))
    return f"{marks_path(ledgers_root)}/{folders}/urL{ledger:010d}"


@contextmanager
def marked(zookeeper: KazooClient, ledgers_root: str, ledger: int) -> Iterator[None]:
    """The ledger has a mark within the block. Raises LedgerLockedError while a worker or a repair is at it."""
    from herdkeeper_jobs.repair.lock import replication_lock  # in the jobs' image only

    mark = mark_of(ledgers_root, ledger)
    with replication_lock(zookeeper, ledgers_root, ledger, "a scenario"):
        zookeeper.create(mark, f"ctime: {int(time.time() * 1000)}\n".encode(), makepath=True)
        try:
            yield
        finally:
            zookeeper.delete(mark)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ledgers-root", required=True)
    parser.add_argument("--ledger", required=True, type=int)
    arguments = parser.parse_args()
    with open_session() as session, marked(session.finder.zookeeper, arguments.ledgers_root, arguments.ledger):
        print(json.dumps({"acknowledged": 1}), flush=True)
        sys.stdin.readline()


if __name__ == "__main__":
    main()
