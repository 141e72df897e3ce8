"""Runs SQL statements on a tablespace's leader, inside the cluster: `python3 -m herdkeeper_e2e.query "SELECT …"`.

Prints a query's rows as a text table, or as lines of JSON with `--json`, and for other statements the number of changed rows. The leader is
found through ZooKeeper, or is whatever answers at `--host`, e.g. a Service.
"""

from __future__ import annotations

import argparse
import json
import sys

from herdkeeper.plugin.sql_table import as_json, text_table
from herdkeeper.sql.connection import Address, Connection
from herdkeeper.sql.encryption import Encryption
from herdkeeper.sql.errors import SqlError
from herdkeeper.sql.leader import Patience
from herdkeeper.sql.statements import has_rows
from herdkeeper_e2e.session import Session, SettingError, open_session

PATIENCE = Patience(deadline_seconds=60.0, call_seconds=120.0)
"""The second value is enough for a full scan of a large table."""


def run_statement(connection: Connection, sql: str, output: str) -> str:
    """Run one statement; returns the result as `table` or `json`."""
    if not has_rows(sql):
        return f"{connection.execute(sql)} changed"
    rows = connection.query(sql)
    if output == "json":
        return "\n".join(json.dumps({name: as_json(value) for name, value in row.items()}) for row in rows)
    return text_table(rows)


def _connection(session: Session, arguments: argparse.Namespace) -> Connection:
    if arguments.host is None:
        return session.connect(PATIENCE)
    authorities = session.finder.authorities
    address = Address(arguments.host, arguments.port, None if authorities is None else Encryption(arguments.host, authorities))
    return Connection.connect(address, session.credentials, session.tablespace, timeout_seconds=PATIENCE.call_seconds)


def main() -> int:
    """The command line; 1 with the reason on standard error if a statement was refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_const", const="json", default="table", dest="output", help="one JSON object a row")
    parser.add_argument("--host", help="whom to ask")
    parser.add_argument("--port", type=int, default=7000, help="of the host (default: %(default)s)")
    parser.add_argument("sql", nargs="+", help="statements, each in autocommit")
    arguments = parser.parse_args()
    try:
        with open_session() as session, _connection(session, arguments) as connection:
            for sql in arguments.sql:
                print(run_statement(connection, sql, arguments.output))
    except (SqlError, SettingError) as error:
        print(f"query failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
