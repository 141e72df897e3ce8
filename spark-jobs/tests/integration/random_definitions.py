"""Random tables: columns of every type and form, keys of every kind, and troublesome values. By seed; no I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

from herdkeeper.codecs.herddb.table import ColumnType
from herdkeeper.sql.frames import Value

TABLE_NAMES = ("t0", "t1", "t2", "t3", "order", "naïve")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WORDS = {
    ColumnType.STRING: ("string", "varchar(40)", "text"),
    ColumnType.LONG: ("long", "bigint"),
    ColumnType.INTEGER: ("int", "smallint"),
    ColumnType.BYTES: ("blob", "bytea"),
    ColumnType.TIMESTAMP: ("timestamp", "datetime"),
    ColumnType.DOUBLE: ("double", "float"),
    ColumnType.BOOLEAN: ("boolean", "bool"),
    ColumnType.FLOAT_ARRAY: ("floata",),
}
TYPES = tuple(_WORDS)
_NOT_NULL = " NOT NULL"
_DEFAULTS = {
    # Only Latin-1, here and in literals: HerdDB's planner closes the connection on other text.
    ColumnType.STRING: ("'none'", "''", "'it''s'", "'é ß'"),
    ColumnType.LONG: ("0", "-9223372036854775808", "1099511627776"),
    ColumnType.INTEGER: ("0", "-1", "2147483647"),
    ColumnType.TIMESTAMP: ("CURRENT_TIMESTAMP",),
    ColumnType.DOUBLE: ("0.0", "-1.5", "1.0E300"),
    ColumnType.BOOLEAN: ("'true'", "'false'"),
}
_MOMENTS = (_EPOCH, _EPOCH - timedelta(milliseconds=1), datetime(2024, 2, 29, 23, 59, 59, 999000, UTC), datetime(9999, 12, 31, tzinfo=UTC))
_VALUES: dict[ColumnType, tuple[Value, ...]] = {
    ColumnType.STRING: ("", "a", "it's", "é", "\U0001d11e", "\0", "\x7f \t\n", "x" * 300),
    ColumnType.LONG: (0, 1, -1, 127, 128, 2**63 - 1, -(2**63)),
    ColumnType.INTEGER: (0, 1, -1, 127, 128, 2**31 - 1, -(2**31)),
    ColumnType.BYTES: (b"", b"\0", b"\xff\xfe", bytes(range(256))),
    ColumnType.TIMESTAMP: _MOMENTS,
    ColumnType.DOUBLE: (0.0, -0.0, 1.5, -1e308, 5e-324, float("inf"), float("-inf"), float("nan")),
    ColumnType.BOOLEAN: (True, False),
    ColumnType.FLOAT_ARRAY: ([], [0.0], [1.5, -0.0, float("inf")], [0.25] * 130),
}
_DRAWN: dict[ColumnType, Callable[[Random], Value]] = {
    ColumnType.STRING: lambda chance: "".join(chance.choices("abcxyz äß漢'\\%_", k=chance.randint(0, 12))),
    ColumnType.LONG: lambda chance: chance.randint(-1000, 1000),
    ColumnType.INTEGER: lambda chance: chance.randint(-1000, 1000),
    ColumnType.BYTES: lambda chance: chance.randbytes(chance.randint(0, 20)),
    ColumnType.TIMESTAMP: lambda chance: _EPOCH + timedelta(milliseconds=chance.randint(-(10**13), 10**14)),
    ColumnType.DOUBLE: lambda chance: chance.uniform(-1e6, 1e6),
    ColumnType.BOOLEAN: lambda chance: chance.random() < 0.5,
    ColumnType.FLOAT_ARRAY: lambda chance: [chance.randint(-64, 64) / 8 for _ in range(chance.randint(0, 5))],
}
_KEYS: dict[ColumnType, tuple[Value, ...]] = {
    ColumnType.STRING: ("a", "b", "é", "\U0001d11e", "", "a\0"),
    ColumnType.LONG: (0, 1, 2, 3, -1, 2**63 - 1, -(2**63)),
    ColumnType.INTEGER: (0, 1, 2, 3, -1, 2**31 - 1, -(2**31)),
    ColumnType.BYTES: (b"a", b"\0", b"\xff", b"a\0"),
    ColumnType.TIMESTAMP: _MOMENTS,
}
"""Few, so that statements meet each other's rows."""


@dataclass(frozen=True)
class SeenColumn:
    """A column, as SQL reports it."""

    name: str
    type: ColumnType
    nullable: bool
    default: bool


@dataclass(frozen=True)
class SeenTable:
    """A table, as SQL reports it. `bound`: it has unique indexes or foreign keys, so statements read more than the row they name.
    `unique`: columns of unique indexes outside of the key."""

    name: str
    columns: tuple[SeenColumn, ...]
    key: tuple[str, ...]
    automatic: bool
    indexed: frozenset[str]
    bound: bool
    unique: frozenset[str]

    def column(self, name: str) -> SeenColumn:
        """The column of that name."""
        return next(column for column in self.columns if column.name == name)

    @property
    def others(self) -> tuple[SeenColumn, ...]:
        """The columns outside of the key."""
        return tuple(column for column in self.columns if column.name not in self.key)


def create_table(chance: Random, name: str, parents: Sequence[SeenTable]) -> str:
    """CREATE TABLE; foreign keys may refer to `parents`."""
    columns = [column(chance, f"c{number}") for number in range(chance.randint(1, 6))]
    kinds = list(_KEYS)
    ends: list[str] = []
    match chance.choice(("inline", "inline", "table", "composite", "composite", "hidden", "automatic", "automatic")):
        case "inline":
            columns.insert(chance.randint(0, len(columns)), f"`k0` {_key_words(chance, chance.choice(kinds))} PRIMARY KEY")
        case "table":
            columns.insert(chance.randint(0, len(columns)), f"`k0` {_key_words(chance, chance.choice(kinds))}")
            ends.append("PRIMARY KEY (`k0`)")
        case "composite":
            names = [f"k{number}" for number in range(chance.randint(2, 3))]
            for key in names:
                columns.insert(chance.randint(0, len(columns)), f"`{key}` {_key_words(chance, chance.choice(kinds))}")
            chance.shuffle(names)
            ends.append(f"PRIMARY KEY ({', '.join(f'`{key}`' for key in names)})")
        case "automatic":
            kind = chance.choice((ColumnType.LONG, ColumnType.INTEGER))
            columns.insert(0, f"`k0` {chance.choice(_WORDS[kind])} AUTO_INCREMENT")
            ends.append("PRIMARY KEY (`k0`)")
        case _:
            pass  # HerdDB adds its hidden key
    if chance.random() < 0.2:
        ends.append(f"{chance.choice(('INDEX', 'UNIQUE KEY'))} `{name}_i` (`c0`)")
    candidates = [parent for parent in parents if len(parent.key) == 1]
    if candidates and chance.random() < 0.35:
        parent = chance.choice(candidates)
        kind = parent.column(parent.key[0]).type
        columns.append(f"`f0` {chance.choice(_WORDS[kind])}")
        ends.append(foreign_key(chance, f"{name}_f", "f0", parent))
    return f"CREATE TABLE `{name}` ({', '.join(columns + ends)})"


def foreign_key(chance: Random, name: str, column_name: str, parent: SeenTable) -> str:
    """A foreign key of a column to a parent's key of one column."""
    action = chance.choice(("", " ON DELETE CASCADE", " ON DELETE SET NULL"))
    return f"CONSTRAINT `{name}` FOREIGN KEY (`{column_name}`) REFERENCES `{parent.name}` (`{parent.key[0]}`){action}"


def column(chance: Random, name: str) -> str:
    """A column's definition."""
    kind = chance.choice(TYPES)
    return f"`{name}` {_words(chance, kind)}{default(chance, kind)}"


def default(chance: Random, kind: ColumnType) -> str:
    """A DEFAULT, or none."""
    return f" DEFAULT {chance.choice(_DEFAULTS[kind])}" if kind in _DEFAULTS and chance.random() < 0.4 else ""


def words(chance: Random, kind: ColumnType, *, nullable: bool) -> str:
    """A type in one of its spellings."""
    return chance.choice(_WORDS[kind]) + ("" if nullable else _NOT_NULL)


def _words(chance: Random, kind: ColumnType) -> str:
    return words(chance, kind, nullable=chance.random() < 0.6)


def _key_words(chance: Random, kind: ColumnType) -> str:
    """A type for a key's column, never a NOT NULL timestamp. HerdDB fails to compare one with a value ("bad column type 15") and keeps its
    row's lock. A TRUNCATE or an ALTER of the table then waits forever."""
    form = _words(chance, kind)
    return form.removesuffix(_NOT_NULL) if kind is ColumnType.TIMESTAMP else form


def value(chance: Random, kind: ColumnType) -> Value:
    """A value for a column of this type, not null."""
    return chance.choice(_VALUES[kind]) if chance.random() < 0.5 else _DRAWN[kind](chance)


def key(chance: Random, kind: ColumnType) -> Value:
    """One of the few key values of this type."""
    return chance.choice(_KEYS[kind])


def few(chance: Random, kind: ColumnType) -> Value:
    """A value that other rows may have, too: a key's where there are keys of this type."""
    return key(chance, kind) if kind in _KEYS else value(chance, kind)
