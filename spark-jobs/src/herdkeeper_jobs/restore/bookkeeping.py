"""A restore's progress, in a table of the tablespace that it fills, so that marks commit together with their rows.

Invariant: a step's rows are in the tablespace if and only if its mark is. The mark is the first INSERT of the rows' transaction, so it is
also a lock. To repeat a step with an unanswered COMMIT, a run waits for that transaction's end, and then finds the mark or nothing. The
table is dropped once the content is verified. After that no late task can commit anything, and no late driver define anything (`define`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any
from uuid import uuid4

from herdkeeper.protocol.restore_bookkeeping import HEADER_STEP, RESTORE_TABLE
from herdkeeper.sql.connection import Connection, Transaction
from herdkeeper.sql.errors import DuplicateKey, NotLeader, ServerError, SqlError
from herdkeeper_jobs.errors import InvariantViolated, RestoreRefused
from herdkeeper_jobs.restore.ddl import quoted

_TABLE = quoted(RESTORE_TABLE)
DEFINITION = "definition "
"""How the mark of a definition begins."""
_INSERT = f"INSERT INTO {_TABLE} (`step`, `loaded`, `detail`) VALUES (?, ?, ?)"  # noqa: S608 - a name of our own


@dataclass(frozen=True, slots=True)
class Header:
    """Identifies a restore: only the restore that began may continue. `chunk_rows` and `chunk_bytes` determine the chunks.

    The operator reads `rows` (ROWS_KEY).
    """

    manifest_hash: str
    manifest: str
    rows: int
    chunk_rows: int
    chunk_bytes: int

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Header:
        """Parses the stored form. Raises InvariantViolated."""
        try:
            return Header(**json.loads(text))
        except (TypeError, ValueError, RecursionError) as error:
            raise InvariantViolated(f"{RESTORE_TABLE} has a header that is none: {text[:200]!r}") from error


class Begin(Enum):
    """The state in which a restore finds the tablespace."""

    EMPTY = "nothing is in it"
    BEGUN = "this restore has started"
    FILLED = "it has the tables of the checkpoint and no bookkeeping: perhaps this restore had finished"


class AlreadyDone(Exception):  # noqa: N818 - an answer, not a fault
    """The step's mark exists."""


def find_begin(tables: set[str], header: Header | None, wished: Header, checkpoint_tables: set[str]) -> Begin:
    """Determines from the tablespace's tables how far a restore may have come. Pure.

    Raises:
        RestoreRefused: the tablespace has something else than this restore's tables; names it.
    """
    foreign = tables - {RESTORE_TABLE} - (checkpoint_tables if header is not None else set())
    if header is not None:
        if header.manifest_hash != wished.manifest_hash:
            raise RestoreRefused(f"another restore has started in this tablespace, of {header.manifest}: restore into a new Tablespace")
        if foreign:
            raise RestoreRefused(_why_foreign(foreign))
        return Begin.BEGUN
    if not foreign:
        return Begin.EMPTY
    if RESTORE_TABLE in tables or foreign != checkpoint_tables:
        raise RestoreRefused(_why_foreign(foreign))
    return Begin.FILLED


def _why_foreign(tables: set[str]) -> str:
    shown = ", ".join(sorted(tables)[:5])
    return f"the tablespace has tables that this restore did not make ({shown}): drop them, or restore into a new Tablespace"


def user_tables(connection: Connection) -> set[str]:
    """The tables of the connection's tablespace, without HerdDB's own."""
    rows = connection.query("SELECT * FROM systables")
    return {str(row["table_name"]) for row in rows if row["systemtable"] == "false" and row["tablespace"] == connection.tablespace}


def read_header(connection: Connection) -> Header | None:
    """Returns the header of the restore that began; None if it was cut off before writing one. The table must exist."""
    rows = connection.query(f"SELECT `detail` FROM {_TABLE} WHERE `step` = ?", [HEADER_STEP])  # noqa: S608
    return Header.from_json(str(rows[0]["detail"])) if rows else None


def begin(connection: Connection, header: Header) -> None:
    """Creates the table if missing, and inserts the header.

    A driver may have stood still since it looked, until another one had restored the tablespace. With bookkeeping of its own it would load
    rows again that were deleted since. So it looks again behind the creation: a run that ends later takes the table along.

    Raises RestoreRefused if there are other tables by now.
    """
    connection.execute(f"CREATE TABLE IF NOT EXISTS {_TABLE} (`step` string, `loaded` long, `detail` string, PRIMARY KEY (`step`))")
    if (others := user_tables(connection) - {RESTORE_TABLE}) and read_header(connection) is None:
        drop(connection)
        raise RestoreRefused(_why_foreign(others))
    connection.execute(_INSERT, [HEADER_STEP, 0, header.to_json()])


def end_lost(connection: Connection) -> int:
    """Rolls back the transactions that are open in the tablespace; returns their number.

    They belong to a killed run, since nobody else writes there before the tablespace is Ready. The leader would keep them for a quarter of
    an hour, with locks on chunks that this run must load. If that run is alive but unreachable, it loses its uncommitted rows, and ends.

    This driver may have stood still until another one had restored the tablespace. Then transactions are its users'. So only those end that
    were open before it looks for the header once more. Raises ServerError if the table is gone.
    """
    ended, rows = 0, connection.query("SELECT * FROM systransactions")
    if read_header(connection) is None:
        return 0
    for row in rows:
        try:
            connection.rollback(int(str(row["txid"])))
            ended += 1
        except NotLeader:
            raise
        except ServerError:
            continue  # it has ended meanwhile
    return ended


def define(connection: Connection, statement: str) -> None:
    """Executes a CREATE or ALTER as part of the restore, in a transaction that begins with a mark.

    A driver may stand still before it, until another one has restored the tablespace. Then the mark has no table, or its transaction was
    rolled back (`end`), and the leader refuses what follows. It makes an index or alters a table beside the transaction, but only if that
    is open; an ALTER commits it.
    """
    transaction = connection.begin()
    try:
        mark(transaction, f"{DEFINITION}{uuid4().hex}", 0)
        if transaction.run(statement).transaction_id:
            transaction.commit()
    except BaseException:
        with suppress(SqlError):
            transaction.rollback()
        raise


def end(connection: Connection) -> None:
    """Ends the restore. Another driver of it may be alive: its open transactions end first."""
    end_lost(connection)
    drop(connection)


def drop(connection: Connection) -> None:
    connection.execute(f"DROP TABLE {_TABLE}")


def mark(where: Connection | Transaction, step: str, loaded: int) -> None:
    """Marks a step as done, with the number of loaded rows. Raises AlreadyDone."""
    try:
        where.execute(_INSERT, [step, loaded, ""])
    except DuplicateKey as error:
        raise AlreadyDone(step) from error


def marks(connection: Connection) -> Mapping[str, int]:
    """Returns the finished steps with the rows that each loaded."""
    rows: list[dict[str, Any]] = connection.query(f"SELECT `step`, `loaded` FROM {_TABLE}")  # noqa: S608
    return {str(row["step"]): int(row["loaded"]) for row in rows if row["step"] != HEADER_STEP}
