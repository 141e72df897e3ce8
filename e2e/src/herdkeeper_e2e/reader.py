"""Compares a writer's history with the table, inside the cluster: `python3 -m herdkeeper_e2e.reader --table T --history FILE`.

Reads the whole table from its present leader and prints one JSON object: the verdict and the write gaps. With `--while-writing` the writer
may go on meanwhile: what it wrote after its history was read is left out.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from herdkeeper.sql.errors import SqlError
from herdkeeper.sql.leader import Patience
from herdkeeper_e2e.history import HistoryError, comparison, parse_history, recorded
from herdkeeper_e2e.session import SettingError, open_session
from herdkeeper_e2e.statements import quoted

PATIENCE = Patience(deadline_seconds=120.0, call_seconds=60.0)


def main() -> int:
    """The command line; 0 when the comparison could be made, whatever it says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", required=True)
    parser.add_argument("--history", type=Path, required=True)
    parser.add_argument("--while-writing", action="store_true", help="leave out rows that the history does not know yet")
    arguments = parser.parse_args()
    try:
        # the piece after the last line's end is an event that is being written
        events = parse_history(arguments.history.read_text(encoding="utf-8").split("\n")[:-1])
        with open_session() as session, session.connect(PATIENCE) as connection:
            ids = (row["id"] for row in connection.stream(f"SELECT `id` FROM {quoted(arguments.table)}"))
            rows = [row for row in ids if isinstance(row, int)]
        found = comparison(events, recorded(events, rows) if arguments.while_writing else rows)
    except (SqlError, SettingError, HistoryError, OSError) as error:
        print(f"reader failed: {error}", file=sys.stderr)
        return 1
    print(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
