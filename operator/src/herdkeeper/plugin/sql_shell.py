"""The shell of `kubectl herdkeeper sql`: statements line by line, with history and completion."""

from __future__ import annotations

import contextlib
import os
import re
import readline
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from herdkeeper.plugin.cluster import ClusterError
from herdkeeper.plugin.command import FINE, Answer, BadInputError, Call
from herdkeeper.plugin.commands.sql import UNKNOWN, executed
from herdkeeper.plugin.database import Database
from herdkeeper.plugin.sql_table import error_text
from herdkeeper.sql.connection import Connection
from herdkeeper.sql.errors import NotLeader, SqlError
from herdkeeper.sql.statements import split

QUIT = ("exit", "quit")
WORDS = tuple(
    "SELECT FROM WHERE GROUP ORDER BY LIMIT INSERT INTO VALUES UPDATE SET DELETE CREATE DROP ALTER TABLE INDEX PRIMARY KEY COUNT(*) "  # noqa: SIM905
    "AND OR NOT NULL IN LIKE BETWEEN JOIN ON AS DISTINCT HAVING ASC DESC".split()
)
NAMES = ("SELECT table_name AS name FROM systables", "SELECT column_name AS name FROM syscolumns")
MOST_HISTORY = 10_000


def shell(call: Call, database: Database) -> Answer:
    """Read statements until the end of input. One that is refused or interrupted ends nothing; a broken connection is replaced."""
    if call.given.output != "text":
        raise BadInputError(f"--output {call.given.output}: a shell shows text; give the statements with --command, or remove it")
    call.screen.write(f"tablespace {database.tablespace}: end each statement with `;`, leave with \\q")
    with _history(), contextlib.ExitStack() as connections:
        connection: Connection | None = None
        for statement in statements(input, database.tablespace):
            try:
                if connection is None or connection.closed:
                    connection = connections.enter_context(database.connect())
                    readline.set_completer(completer(names_of(connection)))
                executed(call, connection, statement)
            except (SqlError, ClusterError, ValueError) as error:
                call.screen.write(f"error: {error_text(error)}")
                if isinstance(error, NotLeader) and connection is not None:
                    connection.close()  # the next statement asks who leads
            except KeyboardInterrupt:
                if connection is not None:
                    connection.close()  # the answer may still come
                call.screen.write(UNKNOWN)
    return Answer("", {}, FINE)


def statements(ask: Callable[[str], str], name: str) -> Iterator[str]:
    """Yields the entered statements, each over as many lines as needed."""
    text = ""
    while True:
        try:
            line = ask(f"{name}{'-' if text else '='}> ")
        except EOFError:
            return
        except KeyboardInterrupt:
            text = ""
            continue
        if line.strip() == "\\q" or (not text and line.strip() in QUIT):
            return
        found = split(f"{text}\n{line}")
        yield from found.statements
        text = found.rest


def names_of(connection: Connection) -> tuple[str, ...]:
    """Returns the names of tables and columns, but for those that need quotes: readline writes them to the terminal itself."""
    with contextlib.suppress(SqlError):
        return tuple({str(row["name"]) for sql in NAMES for row in connection.query(sql) if re.fullmatch(r"\w+", str(row["name"]))})
    return ()


def completer(names: Sequence[str]) -> Callable[[str, int], str | None]:
    """Returns readline's completer: the n-th word that begins with the input."""

    def complete(written: str, index: int) -> str | None:
        found = sorted(word for word in (*WORDS, *names) if word.lower().startswith(written.lower()))
        return found[index] if index < len(found) else None

    return complete


@contextlib.contextmanager
def _history() -> Iterator[None]:
    """Earlier lines, of all shells of this user. Errors are ignored."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "kubectl-herdkeeper"
    file = folder / "sql-history"
    with contextlib.suppress(OSError):
        readline.read_history_file(file)
    readline.set_history_length(MOST_HISTORY)
    readline.parse_and_bind("tab: complete")
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            readline.write_history_file(file)
            file.chmod(0o600)
