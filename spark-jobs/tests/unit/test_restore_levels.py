"""The order in which tables are filled."""

from __future__ import annotations

from pathlib import Path

from restore_situations import CHILD, CHILD_ROWS, PARENT, PARENT_ROWS, UNIQUE, write_checkpoint

from herdkeeper.codecs.herddb.table import Column, ColumnType, ForeignKey, TableDefinition
from herdkeeper_jobs.restore.levels import levels
from herdkeeper_jobs.restore.source import open_source


def _named(path: Path, *references: tuple[str, tuple[str, ...]]) -> list[tuple[list[str], list[list[str]]]]:
    """The levels of the named tables with their references: tables alone, and circles."""
    tables = [_table(name, parents) for name, parents in references]
    source = open_source(write_checkpoint(path, {table: [] for table in tables}))
    return [
        ([table.name for table in level.independent], [[table.name for table in circle] for circle in level.circles])
        for level in levels(source.tables)
    ]


def _table(name: str, parents: tuple[str, ...]) -> TableDefinition:
    columns = [Column(f"of_{parent}", ColumnType.LONG, place) for place, parent in enumerate(parents, 1)]
    keys = tuple(
        ForeignKey(column.name, f"uuid-{parent}", (column.name,), ("id",)) for column, parent in zip(columns, parents, strict=True)
    )
    return TableDefinition("demo", name, f"uuid-{name}", (Column("id", ColumnType.LONG, 0), *columns), ("id",), foreign_keys=keys)


def test_a_table_is_filled_after_those_that_it_refers_to(tmp_path: Path) -> None:
    source = open_source(write_checkpoint(tmp_path, {CHILD: CHILD_ROWS, PARENT: PARENT_ROWS}, (UNIQUE,)))
    assert [[table.name for table in level.tables] for level in levels(source.tables)] == [["parent"], ["child"]]
    assert source.rows == len(CHILD_ROWS) + len(PARENT_ROWS)


def test_tables_that_refer_to_each_other_in_a_circle_or_to_themselves_are_filled_together_between_their_parents_and_children(
    tmp_path: Path,
) -> None:
    assert _named(tmp_path, ("badge", ("employee",)), ("employee", ("employee", "dept")), ("dept", ())) == [
        (["dept"], []),
        ([], [["employee"]]),
        (["badge"], []),
    ]


def test_circles_that_share_a_table_are_one(tmp_path: Path) -> None:
    a_to_d = (("a", ("b",)), ("b", ("a", "c")), ("c", ("b", "e")), ("d", ("d",)), ("e", ()))
    assert _named(tmp_path, *a_to_d) == [(["e"], [["d"]]), ([], [["a", "b", "c"]])]
