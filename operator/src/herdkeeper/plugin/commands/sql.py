"""`kubectl herdkeeper sql`: SQL statements on a tablespace's leader."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from herdkeeper.plugin.command import FINE, INTERRUPTED, WRONG, Answer, Argument, BadInputError, Call, Command, Takes, listed
from herdkeeper.plugin.kinds import TABLESPACE
from herdkeeper.plugin.manifests import read
from herdkeeper.plugin.screen import Screen
from herdkeeper.shared.objects import Json
from herdkeeper.sql.statements import all_statements, changes_rows, first_word, has_rows, is_about_a_transaction

if TYPE_CHECKING:
    from herdkeeper.plugin.database import Database
    from herdkeeper.sql.connection import Connection

UNKNOWN = "interrupted: whether the statement was carried out is unknown"


def run(call: Call) -> Answer:
    """Run the statements of the option, the file or standard input until one is refused, each committed; a shell on a terminal."""
    from herdkeeper.plugin.database import open_database

    if call.given.command_text is not None and call.given.filename is not None:
        raise BadInputError("--command and --filename: name one of them")
    name = call.given.tablespace or only_tablespace(call)
    with open_database(call.cluster, name) as database:
        if call.given.command_text is not None:
            return batch(call, database, call.given.command_text)
        if call.given.filename is not None or not sys.stdin.isatty():
            return batch(call, database, read(call.given.filename or "-"))
        from herdkeeper.plugin.sql_shell import shell

        return shell(call, database)


def only_tablespace(call: Call) -> str:
    """Returns the namespace's only Tablespace."""
    names = [str(item["metadata"]["name"]) for item in call.cluster.list(TABLESPACE)]
    if len(names) != 1:
        there = f"there are {listed(names)}: name one" if names else "there is none in the namespace"
        raise BadInputError(f"TABLESPACE is not given, and {there}")
    return names[0]


def batch(call: Call, database: Database, text: str) -> Answer:
    """Run all statements of a text."""
    statements = all_statements(text)
    if not statements:
        raise BadInputError("there is no statement; give one with --command, in a file or on standard input")
    results: list[Json] = []
    from herdkeeper.plugin.sql_table import error_text
    from herdkeeper.sql.errors import SqlError

    where = "no statement was run"
    try:
        with database.connect() as connection:
            where = ""
            results.extend(executed(call, connection, statement) for statement in statements)
    except (SqlError, ValueError, KeyboardInterrupt) as error:
        interrupted = isinstance(error, KeyboardInterrupt)
        why = error_text(error) if not interrupted else "interrupted" if where else UNKNOWN
        told = f"{where or f'statement {len(results) + 1} of {len(statements)}'}: {why}"
        Screen(sys.stderr).write(f"error: {told}")
        return Answer("", {"results": results, "error": told}, INTERRUPTED if interrupted else WRONG)
    return Answer("", {"results": results}, FINE)


def executed(call: Call, connection: Connection, statement: str) -> Json:
    """Runs a statement, and writes its result unless a document is asked for. SqlError where it is about a transaction."""
    from herdkeeper.plugin.sql_table import as_json, csv_table, moment, text_table
    from herdkeeper.sql.errors import SqlError

    if is_about_a_transaction(statement):
        # the server would open one, and none of the next statements would be in it
        raise SqlError(f"{first_word(statement)}: there are no transactions here, each statement is committed by itself")

    if not has_rows(statement):
        changed = connection.execute(statement)
        if call.given.output == "text" and call.given.form == "table":
            call.screen.write(f"{changed} changed" if changes_rows(statement) else "done")
        return {"changed": changed if changes_rows(statement) else 0}
    rows = list(connection.stream(statement, moment=moment))
    if call.given.output == "text":
        call.screen.write(csv_table(rows) if call.given.form == "csv" else text_table(rows))
    return {"rows": [{name: as_json(value) for name, value in row.items()} for row in rows]}


COMMAND = Command(
    "sql",
    "runs SQL statements on a tablespace's leader, through its own port-forward",
    run,
    (
        Argument("tablespace", "a Tablespace; by default the only one of the namespace", Takes.OPTIONAL, kind=TABLESPACE),
        Argument("--command", "statements, with `;` between them", short="-c", field_name="command_text"),
        Argument("--filename", "a file with statements, or - for standard input", short="-f"),
        Argument("--form", "output format of rows", choices=("table", "csv"), default="table"),
    ),
    description="Without statements, on a terminal, it is a shell with history and completion. Each statement is committed "
    "automatically; the first one that is refused ends a file or `--command`. It logs in with the connection Secret, and verifies TLS "
    "with that Secret's `ca.crt`. With `--output json`, each statement has an entry in `results`. In CSV, NULL is an empty cell, and "
    "without rows there is no heading.",
)
