"""Which row of a circle of tables refers to which, as the checkpoint's files have it."""

from __future__ import annotations

from pathlib import Path

import pytest
from restore_situations import write_checkpoint

from herdkeeper.formats.herddb_record import Stored
from herdkeeper.formats.herddb_table import Column, ColumnType, ForeignKey, TableDefinition
from herdkeeper_jobs.restore.chunks import row_groups
from herdkeeper_jobs.restore.circle import Circle, read_circle
from herdkeeper_jobs.restore.errors import RestoreRefused
from herdkeeper_jobs.restore.row_order import Rows
from herdkeeper_jobs.restore.source import open_source

_MANAGED = ForeignKey("managed", "uuid-employee", ("manager",), ("id",))
EMPLOYEE = TableDefinition(
    "demo",
    "employee",
    "uuid-employee",
    (
        Column("id", ColumnType.LONG, 0),
        Column("manager", ColumnType.INTEGER, 1),
        Column("mentor", ColumnType.LONG, 2),
        Column("club", ColumnType.LONG, 3),
    ),
    ("id",),
    foreign_keys=(_MANAGED,),
)
TWO_COLUMNS = TableDefinition(
    "demo",
    "place",
    "uuid-place",
    (
        Column("a", ColumnType.INTEGER, 0),
        Column("b", ColumnType.BYTES, 1),
        Column("up_a", ColumnType.INTEGER, 2),
        Column("up_b", ColumnType.BYTES, 3),
    ),
    ("a", "b"),
    foreign_keys=(ForeignKey("lies_in", "uuid-place", ("up_a", "up_b"), ("a", "b")),),
)


def _circle(path: Path, tables: dict[TableDefinition, list[dict[str, Stored]]]) -> Circle:
    source = open_source(write_checkpoint(path, tables))
    return read_circle(source.tables, row_groups(enumerate(source.tables), source.folder, 1000, 1 << 18), source.folder)


def _numbers(circle: Circle) -> list[list[int] | str]:
    steps = circle.order.steps
    return [step.numbers.tolist() if isinstance(step, Rows) else circle.keys[step.key].key.name for step in steps]


def _employee(number: int, manager: int | None = None, mentor: int | None = None, club: int | None = None) -> dict[str, Stored]:
    return {"id": number, "manager": manager, "mentor": mentor, "club": club}


def test_rows_are_found_over_files_and_sizes_of_whole_numbers(tmp_path: Path) -> None:
    rows = [_employee(number, number + 1 if number < 120 else None) for number in range(1, 121)]
    circle = _circle(tmp_path, {EMPLOYEE: rows})
    assert len(circle.groups) > 2
    assert (_numbers(circle), circle.order.before) == ([list(range(119, -1, -1))], (0,))


def test_a_key_of_two_columns_is_compared_as_a_whole(tmp_path: Path) -> None:
    rows: list[dict[str, Stored]] = [
        {"a": 1, "b": b"y", "up_a": 2, "up_b": b"x"},
        {"a": 2, "b": b"x", "up_a": 1, "up_b": b"x"},
        {"a": 1, "b": b"x", "up_a": None, "up_b": None},
        {"a": 2, "b": b"y", "up_a": 1, "up_b": b"y"},
    ]
    assert _numbers(_circle(tmp_path, {TWO_COLUMNS: rows})) == [[2, 1, 0, 3]]


def test_a_row_that_refers_to_one_that_is_not_there_is_refused_and_named(tmp_path: Path) -> None:
    rows: list[dict[str, Stored]] = [{"a": 1, "b": b"y", "up_a": 1, "up_b": None}]
    with pytest.raises(RestoreRefused, match=r"table 'place': 1 rows refer by foreign key 'lies_in' .*the first: place a = 1, b = b'y'"):
        _circle(tmp_path, {TWO_COLUMNS: rows})


def test_rows_that_no_order_of_statements_makes_are_refused_and_one_is_named(tmp_path: Path) -> None:
    table = _with_keys(_MANAGED, ForeignKey("mentored", "uuid-employee", ("mentor",), ("id",)))
    with pytest.raises(RestoreRefused, match=r"^3 rows of 'employee' hold each other .*one of them: employee id = 7\. Set a reference"):
        _circle(tmp_path, {table: [_employee(7, 8, 9), _employee(8, 7), _employee(9), _employee(10)]})


def test_who_refers_to_herself_is_not_changed_while_another_looks_like_her_child_by_a_key_of_another_table(tmp_path: Path) -> None:
    """HerdDB 0.29 looks for children of employee 7 by each foreign key of the table, the one to clubs included."""
    club = TableDefinition("demo", "club", "uuid-club", (Column("id", ColumnType.LONG, 0),), ("id",))
    mentored = ForeignKey("mentored", "uuid-employee", ("mentor",), ("id",))
    table = _with_keys(_MANAGED, mentored, ForeignKey("of_club", "uuid-club", ("club",), ("id",)))

    def circle(folder: str, mentors_club: int) -> Circle:
        rows = [_employee(7, 7, 8), _employee(8, None, None, mentors_club)]
        source = open_source(write_checkpoint(tmp_path / folder, {table: rows, club: [{"id": 7}, {"id": 70}]}))
        tables = source.tables[:1]
        return read_circle(tables, row_groups(enumerate(tables), source.folder, 1000, 1 << 18), source.folder)

    possible = circle("possible", 70)
    assert [key.name for _, key in possible.outer_keys] == ["of_club"]
    (rows,) = possible.order.steps
    assert isinstance(rows, Rows)
    assert (rows.numbers.tolist(), rows.turns.tolist()) == ([1, 0], [0, 1])
    with pytest.raises(RestoreRefused, match="2 rows of 'employee' hold each other"):
        circle("impossible", 7)


def _with_keys(*keys: ForeignKey) -> TableDefinition:
    return TableDefinition("demo", "employee", "uuid-employee", EMPLOYEE.columns, ("id",), foreign_keys=keys)
