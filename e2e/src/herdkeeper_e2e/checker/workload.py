"""Several clients of herdkeeper's own wire client at once: `python3 -m herdkeeper_e2e.checker.workload --history FILE`.

They work until a line `stop` or the end of standard input. A few times a second they print the outcomes as a line of JSON; only writes
count as acknowledged.
"""

from __future__ import annotations

import argparse
import json
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path

from herdkeeper_e2e.checker.client import PATIENCE, Client
from herdkeeper_e2e.checker.recorder import Recorder
from herdkeeper_e2e.checker.stop_order import stop_order
from herdkeeper_e2e.checker.work import Adding, Reading, Work, Writing
from herdkeeper_e2e.session import LeaderConnection, Session, open_session

REPORT_SECONDS = 0.25


def clients(arguments: argparse.Namespace, session: Session, recorder: Recorder) -> Iterator[Client]:
    """Yields one for each register and reader, and the adding ones."""
    first = arguments.first_client
    works: list[tuple[str, Work]] = [(f"python-adder-{first + number}", Adding(first + number)) for number in range(arguments.adders)]
    works += [(f"python-writer-{register}", Writing(register)) for register in arguments.register]
    works += [(f"python-reader-{number}", Reading()) for number in range(arguments.readers)]
    return (Client(name, work, LeaderConnection(session, PATIENCE), recorder, arguments.pause_seconds) for name, work in works)


def work(arguments: argparse.Namespace, stop: threading.Event) -> None:
    """Run all clients until stopped, or until one fails; raises its error."""
    with open_session() as session, arguments.history.open("w", encoding="utf-8") as file:
        recorder = Recorder(file)
        all_clients = list(clients(arguments, session, recorder))
        with ThreadPoolExecutor(len(all_clients)) as pool:
            running = {pool.submit(client.run, stop) for client in all_clients}
            while running:
                ended, running = wait(running, timeout=REPORT_SECONDS, return_when=FIRST_EXCEPTION)
                told = {"acknowledged": recorder.acknowledged, "unknown": recorder.unknown, "failed": recorder.failed}
                print(json.dumps(told), flush=True)
                if any(each.exception() for each in ended):
                    stop.set()
                    for each in ended:
                        each.result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--history", type=Path, required=True, help="file for the history")
    parser.add_argument("--adders", type=int, default=2, help="clients that add rows to the set")
    parser.add_argument("--first-client", type=int, default=0, help="number of the first that adds: no two clients may share one")
    parser.add_argument("--register", type=int, action="append", default=[], help="a client writes this register; may be repeated")
    parser.add_argument("--readers", type=int, default=2, help="clients that read all registers")
    parser.add_argument("--pause-seconds", type=float, default=0.02, help="of each client between two operations")
    work(parser.parse_args(), stop_order())


if __name__ == "__main__":
    main()
