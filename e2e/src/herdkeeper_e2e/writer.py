"""Writes rows one by one and records each acknowledged one: `python3 -m herdkeeper_e2e.writer --table T --history FILE`.

Every INSERT is its own transaction (autocommit), so each acknowledgement promises durability. After a lost connection it looks the leader
up again at once. Standard input steers it: `mark NAME` is recorded with the writer's clock; `stop` or the end stops it. A few times a
second it prints the number of acknowledged rows as a line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from herdkeeper.sql.errors import ConnectionLost, LeaderNotFound, NotLeader, OutcomeUnknown
from herdkeeper.sql.leader import Patience
from herdkeeper_e2e.history import Event, EventKind, payload_of
from herdkeeper_e2e.session import LeaderConnection, Session, open_session
from herdkeeper_e2e.statements import quoted

PATIENCE_SECONDS = 2.0
"""Short, so that a connection to a dead node or an old leader ends soon. The writer itself retries forever."""
REPORT_SECONDS = 0.25


@dataclass
class Recorder:
    """Appends events to the history file; each line is written before the next row is tried."""

    file: TextIO
    acknowledged: int = 0
    unknown: int = 0
    reported: float = 0.0

    def record(self, kind: EventKind, row: int = -1, name: str = "") -> None:
        """Write one event with the current time."""
        self.acknowledged += kind is EventKind.ACKNOWLEDGED
        self.unknown += kind is EventKind.UNKNOWN
        self.file.write(Event(time.monotonic(), kind, row, name).to_line() + "\n")
        self.file.flush()

    def report(self) -> None:
        """Print how many rows are acknowledged, a few times a second."""
        if time.monotonic() - self.reported >= REPORT_SECONDS:
            self.reported = time.monotonic()
            print(json.dumps({"acknowledged": self.acknowledged, "unknown": self.unknown}), flush=True)


class Writer:
    def __init__(
        self, session: Session, table: str, recorder: Recorder, patience_seconds: float = PATIENCE_SECONDS, pause_seconds: float = 0.0
    ) -> None:
        self._connection = LeaderConnection(session, Patience(deadline_seconds=patience_seconds, call_seconds=patience_seconds))
        self._insert = f"INSERT INTO {quoted(table)} (`id`, `payload`) VALUES (?, ?)"
        self._recorder = recorder
        self._pause_seconds = pause_seconds

    def run(self, orders: queue.Queue[str]) -> None:
        """Write rows 0, 1, 2, … until the order `stop`."""
        row = 0
        while follow_order(orders, self._recorder):
            if self._write(row):
                row += 1
                time.sleep(self._pause_seconds)  # only after an answer: failures are retried at once
            self._recorder.report()

    def _write(self, row: int) -> bool:
        """Returns whether the id is used up: acknowledged, or of unknown outcome. An unknown row is never retried."""
        try:
            self._connection.get().execute(self._insert, (row, payload_of(row)))
        except OutcomeUnknown:
            self._recorder.record(EventKind.UNKNOWN, row)
            self._connection.close()
            return True
        except (ConnectionLost, NotLeader, LeaderNotFound):
            self._connection.close()
            return False
        self._recorder.record(EventKind.ACKNOWLEDGED, row)
        return True


def follow_order(orders: queue.Queue[str], recorder: Recorder) -> bool:
    """Record marks; returns False after `stop`."""
    while not orders.empty():
        order = orders.get()
        if order == "stop":
            return False
        recorder.record(EventKind.MARK, name=order.removeprefix("mark "))
    return True


def orders_of_input() -> queue.Queue[str]:
    """Returns the lines of standard input as they come; `stop` at its end."""
    orders: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_read_orders, args=(orders,), daemon=True).start()
    return orders


def _read_orders(orders: queue.Queue[str]) -> None:
    rest = b""
    while piece := os.read(0, 4096):  # not sys.stdin: a thread that holds its lock aborts the interpreter at its end
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            orders.put(line.decode().strip())
    orders.put("stop")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", required=True, help="created when absent: id long primary key, payload string")
    parser.add_argument("--history", type=Path, required=True, help="file for the events")
    parser.add_argument("--patience-seconds", type=float, default=PATIENCE_SECONDS, help="after which an answer is given up")
    parser.add_argument("--pause-seconds", type=float, default=0.0, help="between an answer and the next row")
    arguments = parser.parse_args()
    orders = orders_of_input()
    with open_session() as session, arguments.history.open("w", encoding="utf-8") as file:
        with session.connect(Patience(deadline_seconds=60.0, call_seconds=30.0)) as connection:
            connection.execute(f"CREATE TABLE IF NOT EXISTS {quoted(arguments.table)} (`id` long, `payload` string, PRIMARY KEY (`id`))")
        Writer(session, arguments.table, Recorder(file), arguments.patience_seconds, arguments.pause_seconds).run(orders)


if __name__ == "__main__":
    main()
