"""What SQL can't make again of a table, and defaults as SQL has them. Pure. Source: herddb.sql.JSQLParserPlanner of HerdDB 0.29.0."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence

from herdkeeper.codecs.herddb.table import MOST_COLUMNS, Column, ColumnType, TableDefinition, beginning, is_queryable
from herdkeeper_jobs.manifests.manifest import ManifestIndex

LITERAL_TEXT = re.compile(rb"""([^']|'')*|([^'\\\n\r]|\\[ntbrf\\"'])*""")
"""What HerdDB's parser accepts between quotes: a text with doubled quotes, or one whose quotes and backslashes have a backslash."""
_INDEX_TYPES = ("brin", "hash")
_BEYOND_DOUBLE = "1.0E999"
"""Java reads it as infinity, for which HerdDB's parser has no negative word."""


def inexpressible(table: TableDefinition, indexes: Sequence[ManifestIndex]) -> list[str]:
    """Returns what no statement can make of a table with these indexes: nothing of its tablespace can be restored then."""
    columns = [f"column {column.name!r} has the type null" for column in table.columns if column.type is ColumnType.NULL]
    if len(table.columns) > MOST_COLUMNS:
        columns.append(f"it has {len(table.columns)} columns, and HerdDB reads {MOST_COLUMNS}")
    names = [table.name, *(column.name for column in table.columns)]
    names += [name for index in indexes for name in (index.name, *index.columns)]
    names += [name for key in table.foreign_keys for name in (key.name, *key.columns, *key.parent_columns)]
    advanced = table.primary_key if table.auto_increment and len(table.primary_key) == 1 else ()
    too_long = [
        f"the name {beginning(name)} of the AUTO_INCREMENT column is too long for a DELETE" for name in advanced if not is_queryable(name)
    ]
    quoted = [f"the name {name!r:.60} has a back-tick" for name in dict.fromkeys(names) if "`" in name]
    # a type becomes a part of a statement
    typed = [f"index {index.name!r} has the type {index.type!r:.60}" for index in indexes if index.type not in _INDEX_TYPES]
    typed += [f"index {index.name!r} is unique and of type hash" for index in indexes if index.unique and index.type == "hash"]
    updates = [f"foreign key {key.name!r} has an action on update" for key in table.foreign_keys if key.on_update != 0]
    return columns + too_long + quoted + typed + updates + [reason for column in table.columns if (reason := _default(column))]


def needs_a_shorter_name(table: TableDefinition, rows: int, highest_key: int | None) -> bool:
    """Whether a restore inserts into the table, and no INSERT accepts its name. An empty one gets a row for a moment, so that its next
    auto-increment key is behind the highest one."""
    return not table.can_be_queried and (rows > 0 or (table.auto_increment and highest_key is not None))


def _default(column: Column) -> str:
    try:
        default_literal(column)
    except ValueError as error:
        return str(error)
    return ""


def default_literal(column: Column) -> str | None:
    """A column's default as SQL after DEFAULT; None without one. Raises ValueError for a default that SQL can't express.

    HerdDB stores a text as written between its quotes, with what stands for a quote, so it is written back unchanged.
    """
    data = column.default
    if data is None:
        return None
    match column.type:
        case ColumnType.STRING if LITERAL_TEXT.fullmatch(data):
            return f"'{data.decode()}'"
        case ColumnType.INTEGER | ColumnType.LONG:
            return str(int.from_bytes(data, "big", signed=True))
        case ColumnType.DOUBLE:
            return _double(struct.unpack(">d", data)[0])
        case ColumnType.BOOLEAN:
            return "'false'" if data == b"\0" else "'true'"
        case ColumnType.TIMESTAMP if data == b"CURRENT_TIMESTAMP":
            return "CURRENT_TIMESTAMP"
        case _:
            raise ValueError(f"column {column.name!r} of type {column.type.name} has the default {data!r}")


def _double(value: float) -> str:
    """Formats as Java does: its SQL parser accepts an exponent only after a decimal point with a digit."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return _BEYOND_DOUBLE if value > 0 else f"-{_BEYOND_DOUBLE}"
    mantissa, _, exponent = repr(value).partition("e")
    if not exponent:
        return mantissa
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"
