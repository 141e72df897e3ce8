"""Creates znodes one by one and records each acknowledged one: `python3 -m herdkeeper_e2e.znode_writer --hosts H --history FILE`.

Input and output are like those of `herdkeeper_e2e.writer`; a row is a znode. Each holds 1,000 bytes, so that a joining member has something
to copy. With `--compare` the history is compared with the ensemble instead; the output is like that of `herdkeeper_e2e.reader`.
"""

from __future__ import annotations

import argparse
import queue
from collections.abc import Iterator
from pathlib import Path

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss, OperationTimeoutError, SessionExpiredError

from herdkeeper_e2e.history import EventKind, comparison, parse_history
from herdkeeper_e2e.session import zookeeper_client
from herdkeeper_e2e.writer import Recorder, follow_order, orders_of_input

ROOT = "/written"
ZNODES_OF_A_FOLDER = 1000
CONTENT = b"x" * 1000


def znode_of(row: int) -> str:
    """Returns the path of a row: folders keep lists of children short."""
    folder, place = divmod(row, ZNODES_OF_A_FOLDER)
    return f"{ROOT}/{folder}/{place}"


def write(zookeeper: KazooClient, recorder: Recorder, orders: queue.Queue[str]) -> None:
    """Create the znodes 0, 1, 2, … until the order `stop`. One whose answer is lost is never retried."""
    row = 0
    while follow_order(orders, recorder):
        try:
            zookeeper.create(znode_of(row), CONTENT, makepath=True)
        except (ConnectionLoss, SessionExpiredError, OperationTimeoutError):
            recorder.record(EventKind.UNKNOWN, row)
        else:
            recorder.record(EventKind.ACKNOWLEDGED, row)
        row += 1
        recorder.report()


def rows(zookeeper: KazooClient) -> Iterator[int]:
    """Yields the rows with existing znodes. The server first catches up with the leader: a follower might be behind."""
    zookeeper.sync(ROOT)
    for folder in zookeeper.get_children(ROOT):
        for place in zookeeper.get_children(f"{ROOT}/{folder}"):
            yield int(folder) * ZNODES_OF_A_FOLDER + int(place)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", required=True, help="host:port,host:port of the ensemble")
    parser.add_argument("--history", type=Path, required=True, help="file for the events")
    parser.add_argument("--compare", action="store_true", help="of a writer that has ended")
    arguments = parser.parse_args()
    if arguments.compare:
        events = parse_history(arguments.history.read_text(encoding="utf-8").splitlines())
        with zookeeper_client(arguments.hosts) as zookeeper:
            print(comparison(events, rows(zookeeper)))
        return
    orders = orders_of_input()
    with zookeeper_client(arguments.hosts) as zookeeper, arguments.history.open("w", encoding="utf-8") as file:
        write(zookeeper, Recorder(file), orders)


if __name__ == "__main__":
    main()
