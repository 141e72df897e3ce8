"""Reads both tables completely from their current leader and prints them: `python3 -m herdkeeper_e2e.checker.contents_reader`."""

from __future__ import annotations

import argparse
import sys

from herdkeeper.sql.errors import SqlError
from herdkeeper.sql.leader import Patience
from herdkeeper_e2e.checker import tables
from herdkeeper_e2e.checker.contents import Contents
from herdkeeper_e2e.session import SettingError, open_session

PATIENCE = Patience(deadline_seconds=120.0, call_seconds=60.0)


def main() -> int:
    """The command line; 0 if both tables could be read."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    try:
        with open_session() as session, session.connect(PATIENCE) as connection:
            rows = tuple((int(str(row["id"])), str(row["operation"])) for row in connection.stream(tables.SELECT_SET))
            registers = {int(str(row["register"])): int(str(row["value"])) for row in connection.query(tables.SELECT_REGISTERS)}
            found = Contents(connection.address.host.partition(".")[0], rows, registers)
    except (SqlError, SettingError) as error:
        print(f"contents_reader failed: {error}", file=sys.stderr)
        return 1
    for line in found.to_lines():
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
