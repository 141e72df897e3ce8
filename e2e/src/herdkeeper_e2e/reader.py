"""Compares a writer's history with the table, inside the cluster: `python3 -m herdkeeper_e2e.reader --table T --history FILE`.

Reads the whole table from its present leader and prints one JSON object: the verdict and the write gaps.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from herdkeeper.sql.errors import SqlError
from herdkeeper.sql.leader import Patience
from herdkeeper_e2e.history import HistoryError, gaps, judge, parse_history
from herdkeeper_e2e.session import SettingError, open_session
from herdkeeper_e2e.statements import quoted

PATIENCE = Patience(deadline_seconds=120.0, call_seconds=60.0)


def main() -> int:
    """The command line; 0 when the comparison could be made, whatever it says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", required=True)
    parser.add_argument("--history", type=Path, required=True)
    arguments = parser.parse_args()
    try:
        with arguments.history.open(encoding="utf-8") as lines:
            events = parse_history(lines)
        with open_session() as session, session.connect(PATIENCE) as connection:
            rows = [row["id"] for row in connection.stream(f"SELECT `id` FROM {quoted(arguments.table)}")]
        verdict = judge(events, (row for row in rows if isinstance(row, int)))
        found = gaps(events)
    except (SqlError, SettingError, HistoryError, OSError) as error:
        print(f"reader failed: {error}", file=sys.stderr)
        return 1
    print(json.dumps({"verdict": asdict(verdict), "violation": verdict.violation, "gaps": [asdict(gap) for gap in found]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
