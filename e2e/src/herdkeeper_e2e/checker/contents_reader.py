"""Reads both tables completely from their current leader and prints them: `python3 -m herdkeeper_e2e.checker.contents_reader`."""

from __future__ import annotations

from herdkeeper.sql.leader import Patience
from herdkeeper_e2e.checker import tables
from herdkeeper_e2e.checker.contents import Contents
from herdkeeper_e2e.session import open_session

PATIENCE = Patience(deadline_seconds=120.0, call_seconds=60.0)


def main() -> None:
    with open_session() as session, session.connect(PATIENCE) as connection:
        rows = tuple((int(str(row["id"])), str(row["operation"])) for row in connection.stream(tables.SELECT_SET))
        registers = {int(str(row["register"])): int(str(row["value"])) for row in connection.query(tables.SELECT_REGISTERS)}
        found = Contents(connection.address.host.partition(".")[0], rows, registers)
    for line in found.to_lines():
        print(line)


if __name__ == "__main__":
    main()
