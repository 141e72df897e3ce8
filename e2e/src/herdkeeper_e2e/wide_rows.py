"""Writes rows of a given size, each a log entry: `python3 -m herdkeeper_e2e.wide_rows --table T --rows N --bytes B`."""

from __future__ import annotations

import argparse

from herdkeeper.sql.leader import Patience
from herdkeeper_e2e.session import open_session
from herdkeeper_e2e.statements import quoted

PATIENCE = Patience(deadline_seconds=60.0, call_seconds=60.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", required=True, help="created when absent: id long primary key, payload string")
    parser.add_argument("--rows", type=int, required=True, help="how many, with the ids from 0 on")
    parser.add_argument("--bytes", type=int, required=True, help="of the payload of each")
    arguments = parser.parse_args()
    table = quoted(arguments.table)
    with open_session() as session, session.connect(PATIENCE) as connection:
        connection.execute(f"CREATE TABLE IF NOT EXISTS {table} (`id` long, `payload` string, PRIMARY KEY (`id`))")
        for row in range(arguments.rows):
            connection.execute(f"INSERT INTO {table} (`id`, `payload`) VALUES (?, ?)", (row, "x" * arguments.bytes))


if __name__ == "__main__":
    main()
