"""Compares a znode writer's history with the ensemble, in the cluster: `python3 -m herdkeeper_e2e.znode_reader --hosts H --history FILE`.

Its output is like that of `herdkeeper_e2e.reader`. The server first catches up with the leader: a follower might be behind.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from kazoo.client import KazooClient

from herdkeeper_e2e.history import comparison, parse_history
from herdkeeper_e2e.session import zookeeper_client
from herdkeeper_e2e.znode_writer import ROOT, ZNODES_OF_A_FOLDER


def rows(zookeeper: KazooClient) -> Iterator[int]:
    """Yields the rows with existing znodes."""
    zookeeper.sync(ROOT)
    for folder in zookeeper.get_children(ROOT):
        for place in zookeeper.get_children(f"{ROOT}/{folder}"):
            yield int(folder) * ZNODES_OF_A_FOLDER + int(place)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", required=True)
    parser.add_argument("--history", type=Path, required=True)
    arguments = parser.parse_args()
    events = parse_history(arguments.history.read_text(encoding="utf-8").splitlines())
    with zookeeper_client(arguments.hosts) as zookeeper:
        found = comparison(events, rows(zookeeper))
    print(found)


if __name__ == "__main__":
    main()
