"""What a restore has done, in a table of the tablespace that it fills, so that it is committed with what it tells of.

Invariant: the rows of a step are in the tablespace if and only if the step's mark is. The mark is inserted first in the transaction that
holds the rows, so it is the lock as well: whoever repeats a step whose COMMIT was not answered waits for that transaction's end, and then
finds the mark or an empty place. The table is dropped once the content is verified; nothing of a late task can be committed after that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from herdkeeper.protocol.restore_bookkeeping import HEADER_STEP, RESTORE_TABLE
from herdkeeper.sql.connection import Connection, Transaction
from herdkeeper.sql.errors import DuplicateKey, NotLeader, ServerError
from herdkeeper_jobs.errors import InvariantViolated
from herdkeeper_jobs.restore.ddl import quoted
from herdkeeper_jobs.restore.errors import RestoreRefused

_TABLE = quoted(RESTORE_TABLE)
_INSERT = f"INSERT INTO {_TABLE} (`step`, `loaded`, `detail`) VALUES (?, ?, ?)"  # noqa: S608 - a name of our own


@dataclass(frozen=True, slots=True)
class Header:
    """Which restore this is: only the one that began it may go on. `chunk_rows` and `chunk_bytes` decide what a chunk is.

    `rows` (ROWS_KEY) is what the operator reads.
    """

    manifest_hash: str
    manifest: str
    rows: int
    chunk_rows: int
    chunk_bytes: int

    def to_json(self) -> str:
        """As it is stored."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Header:
        """Raises InvariantViolated for another text."""
        try:
            return Header(**json.loads(text))
        except (TypeError, ValueError) as error:
            raise InvariantViolated(f"{RESTORE_TABLE} has a header that is none: {text[:200]!r}") from error


class Begin(Enum):
    """How a restore finds the tablespace."""

    EMPTY = "nothing is in it"
    BEGUN = "this restore has started"
    FILLED = "it has the tables of the checkpoint and no bookkeeping: perhaps this restore had finished"


class AlreadyDone(Exception):  # noqa: N818 - an answer, not a fault
    """The step's mark is there."""


def find_begin(tables: set[str], header: Header | None, wished: Header, checkpoint_tables: set[str]) -> Begin:
    """How far a restore may have come, from the tables that the tablespace has. Pure.

    Raises:
        RestoreRefused: the tablespace has what this restore did not make; names it.
    """
    strange = tables - {RESTORE_TABLE} - (checkpoint_tables if header is not None else set())
    if header is not None:
        if header.manifest_hash != wished.manifest_hash:
            raise RestoreRefused(f"another restore has started in this tablespace, of {header.manifest}: restore into a new Tablespace")
        if strange:
            raise RestoreRefused(_strange(strange))
        return Begin.BEGUN
    if not strange:
        return Begin.EMPTY
    if RESTORE_TABLE in tables or strange != checkpoint_tables:
        raise RestoreRefused(_strange(strange))
    return Begin.FILLED


def _strange(tables: set[str]) -> str:
    shown = ", ".join(sorted(tables)[:5])
    return f"the tablespace has tables that this restore did not make ({shown}): drop them, or restore into a new Tablespace"


def user_tables(connection: Connection) -> set[str]:
    """The tables of the connection's tablespace, without HerdDB's own."""
    rows = connection.query("SELECT * FROM systables")
    return {str(row["table_name"]) for row in rows if row["systemtable"] == "false" and row["tablespace"] == connection.tablespace}


def read_header(connection: Connection) -> Header | None:
    """Which restore began; None for one that was cut off before it could say so. The table must be there."""
    rows = connection.query(f"SELECT `detail` FROM {_TABLE} WHERE `step` = ?", [HEADER_STEP])  # noqa: S608
    return Header.from_json(str(rows[0]["detail"])) if rows else None


def begin(connection: Connection, header: Header) -> None:
    """Makes the table, if it is not there, and notes which restore this is."""
    connection.execute(f"CREATE TABLE IF NOT EXISTS {_TABLE} (`step` string, `loaded` long, `detail` string, PRIMARY KEY (`step`))")
    connection.execute(_INSERT, [HEADER_STEP, 0, header.to_json()])


def end_left_open(connection: Connection) -> int:
    """Rolls back the transactions that are open in the tablespace; returns how many there were.

    They are those of a run that was killed, since nobody else writes there before it is Ready. The leader would keep them, with the locks
    of the chunks that this run has to load, for a quarter of an hour. A run that is not dead, only out of sight, loses what it has not
    committed, and ends.
    """
    ended = 0
    for row in connection.query("SELECT * FROM systransactions"):
        try:
            connection.rollback(int(str(row["txid"])))
            ended += 1
        except NotLeader:
            raise
        except ServerError:
            continue  # it has ended meanwhile
    return ended


def end(connection: Connection) -> None:
    """Drops the table."""
    connection.execute(f"DROP TABLE {_TABLE}")


def mark(where: Connection | Transaction, step: str, loaded: int) -> None:
    """Notes that a step is done, with the rows that it loaded. Raises AlreadyDone."""
    try:
        where.execute(_INSERT, [step, loaded, ""])
    except DuplicateKey as error:
        raise AlreadyDone(step) from error


def marks(connection: Connection) -> Mapping[str, int]:
    """Each step that is done, with the rows that it loaded."""
    rows: list[dict[str, Any]] = connection.query(f"SELECT `step`, `loaded` FROM {_TABLE}")  # noqa: S608
    return {str(row["step"]): int(row["loaded"]) for row in rows if row["step"] != HEADER_STEP}
