"""Compares a writer's history with the table, inside the cluster: `python3 -m herdkeeper_e2e.reader --table T --history FILE`.

Reads the whole table from its current leader and prints one JSON object: the verdict and the write gaps. With `--while-writing` the writer
may continue: rows written after its history was read are ignored.

With `--repeat` it reads until a line `stop` or the end of standard input, through leader changes. After each read it prints their number
(`acknowledged`), and at the end the first `violation` or null. Missing rows are read again over another connection: a leader that was
replaced unknowingly may return old data.
"""

from __future__ import annotations

import argparse
import json
import threading
from collections.abc import Sequence
from pathlib import Path

from herdkeeper.sql.errors import ConnectionLost, LeaderNotFound, NotLeader
from herdkeeper.sql.leader import Patience
from herdkeeper_e2e.checker.stop_order import stop_order
from herdkeeper_e2e.history import Event, altered_in, comparison, judge, parse_history, recorded
from herdkeeper_e2e.session import Session, open_session
from herdkeeper_e2e.statements import quoted

PATIENCE = Patience(deadline_seconds=120.0, call_seconds=60.0)
PAUSE_SECONDS = 0.5


def _events(history: Path) -> list[Event]:
    # the piece after the last line end is an incomplete event
    return parse_history(history.read_text(encoding="utf-8").split("\n")[:-1])


def _rows(session: Session, table: str) -> list[tuple[int, object]]:
    with session.connect(PATIENCE) as connection:
        found = connection.stream(f"SELECT `id`, `payload` FROM {quoted(table)}")
        return [(row["id"], row["payload"]) for row in found if isinstance(row["id"], int)]


def _violation(events: Sequence[Event], rows: Sequence[tuple[int, object]]) -> str | None:
    return judge(events, recorded(events, [row for row, _ in rows]), altered_in(rows)).violation


def read_repeatedly(session: Session, table: str, history: Path, stop: threading.Event) -> str | None:
    """Read until stopped or a violation is found; returns the first violation."""
    reads = 0
    while not stop.wait(PAUSE_SECONDS):
        try:
            events = _events(history)
            violation = _violation(events, _rows(session, table)) and _violation(events, _rows(session, table))
        except (ConnectionLost, NotLeader, LeaderNotFound):
            continue
        reads += 1
        print(json.dumps({"acknowledged": reads}), flush=True)
        if violation is not None:
            return violation
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", required=True)
    parser.add_argument("--history", type=Path, required=True)
    parser.add_argument("--while-writing", action="store_true", help="leave out rows that the history does not know yet")
    parser.add_argument("--repeat", action="store_true", help="while the writer goes on, until told to stop")
    arguments = parser.parse_args()
    with open_session() as session:
        if arguments.repeat:
            print(json.dumps({"violation": read_repeatedly(session, arguments.table, arguments.history, stop_order())}))
            return
        events = _events(arguments.history)
        rows = _rows(session, arguments.table)
    ids = [row for row, _ in rows]
    print(comparison(events, recorded(events, ids) if arguments.while_writing else ids, altered_in(rows)))


if __name__ == "__main__":
    main()
