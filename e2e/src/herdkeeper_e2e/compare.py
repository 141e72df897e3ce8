"""Compares the newest checkpoint with the tables, row by row: `python3 -m herdkeeper_e2e.compare --tables a,b`, in a pod that mounts it.

Only meaningful without concurrent writes. Prints one JSON object: per table the number of rows on either side, and the first differing
keys.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from herdkeeper.sql.leader import Patience
from herdkeeper_e2e.nycflights import TABLES, Table
from herdkeeper_e2e.session import open_session
from herdkeeper_e2e.statements import quoted
from herdkeeper_e2e.tools_pod import CHECKPOINTS

PATIENCE = Patience(deadline_seconds=60.0, call_seconds=120.0)
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Comparison:
    """One table. `differing` are the first keys that only one side has, or whose rows differ."""

    rows_in_sql: int
    rows_in_checkpoint: int
    differing: tuple[str, ...]


def compare(table: Table, in_sql: Iterable[Mapping[str, Any]], in_checkpoint: Iterable[Mapping[str, Any]]) -> Comparison:
    """Every row of both sides once, by primary key."""
    one, other = _by_key(table, in_sql), _by_key(table, in_checkpoint)
    differing = sorted(str(key) for key in {*one, *other} if one.get(key) != other.get(key))
    return Comparison(sum(map(len, one.values())), sum(map(len, other.values())), tuple(differing[:10]))


def _by_key(table: Table, rows: Iterable[Mapping[str, Any]]) -> dict[Row, list[Row]]:
    """Returns rows by key. A duplicate key keeps both rows, so that it differs from a single one."""
    names = [column.name for column in table.columns]
    found: dict[Row, list[Row]] = {}
    for row in rows:
        values = tuple(_plain(row.get(name)) for name in names)
        found.setdefault(tuple(values[position] for position in table.key_positions), []).append(values)
    return found


def _plain(value: Any) -> Any:
    """Timestamps as milliseconds: each side has its own type."""
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        return round(moment.timestamp() * 1000)
    return value


def compare_all(tables: Sequence[Table]) -> dict[str, Comparison]:
    """Each table of the newest checkpoint with SQL."""
    from herdkeeper_jobs.checkpoint.reading import open_latest  # pyarrow is in the Spark image only

    checkpoint = open_latest(Path(CHECKPOINTS))
    with open_session() as session, session.connect(PATIENCE) as connection:
        return {
            table.name: compare(table, connection.stream(f"SELECT * FROM {quoted(table.name)}"), checkpoint.load(table.name).to_pylist())
            for table in tables
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default=",".join(table.name for table in TABLES))
    wanted = parser.parse_args().tables.split(",")
    found = compare_all([table for table in TABLES if table.name in wanted])
    print(json.dumps({name: asdict(comparison) for name, comparison in found.items()}))


if __name__ == "__main__":
    main()
