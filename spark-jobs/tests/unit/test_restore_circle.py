"""References between the rows of a circle of tables, read from the checkpoint's files."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path
from random import Random

import pytest
from restore_situations import write_checkpoint

from herdkeeper.codecs.herddb.record import Stored
from herdkeeper.codecs.herddb.table import Column, ColumnType, ForeignKey, TableDefinition
from herdkeeper_jobs.errors import RestoreRefused
from herdkeeper_jobs.restore.chunks import row_groups
from herdkeeper_jobs.restore.circle import Circle, read_circle
from herdkeeper_jobs.restore.circle_load import _pieces, _read_together
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
    assert circle.name == "`employee`"


def test_a_key_of_two_columns_is_compared_as_a_whole(tmp_path: Path) -> None:
    rows: list[dict[str, Stored]] = [
        {"a": 1, "b": b"y", "up_a": 2, "up_b": b"x"},
        {"a": 2, "b": b"x", "up_a": 1, "up_b": b"x"},
        {"a": 1, "b": b"x", "up_a": None, "up_b": None},
        {"a": 2, "b": b"y", "up_a": 1, "up_b": b"y"},
    ]
    assert _numbers(_circle(tmp_path, {TWO_COLUMNS: rows})) == [[2, 1, 0, 3]]


def test_a_chunk_has_fewer_rows_of_a_table_whose_rows_are_large(tmp_path: Path) -> None:
    """A thousand small rows share chunks although another table of the circle has large rows."""
    chance = Random(7)
    owned = ForeignKey("owned", "uuid-employee", ("owner",), ("id",))
    columns = (Column("id", ColumnType.LONG, 0), Column("owner", ColumnType.LONG, 1), Column("content", ColumnType.BYTES, 2))
    document = TableDefinition("demo", "document", "uuid-document", columns, ("id",), foreign_keys=(owned,))
    chosen = _with_keys(_MANAGED, ForeignKey("chosen", "uuid-document", ("mentor",), ("id",)))
    documents: list[dict[str, Stored]] = [{"id": number, "owner": number, "content": chance.randbytes(5_000)} for number in range(20)]
    source = open_source(write_checkpoint(tmp_path, {chosen: [_employee(number) for number in range(100)], document: documents}))
    groups = row_groups(enumerate(source.tables), source.folder, 10, 6_000)
    assert {group.table: group.chunk_rows for group in groups} == {0: 10, 1: 1}
    circle = read_circle(source.tables, groups, source.folder)
    (rows,) = circle.order.steps
    assert isinstance(rows, Rows)
    chunks = [circle.tables_of(piece.rows.numbers).tolist() for piece in _pieces(circle, rows, 0, {}, frozenset())]
    assert list(chain(*chunks)) == circle.tables_of(rows.numbers).tolist()
    assert max(chunk.count(0) for chunk in chunks) == 10
    assert max(chunk.count(1) for chunk in chunks) == 1
    assert len(chunks) < 40


def _of_zeros(path: Path, rows: int, size: int) -> tuple[Circle, Rows]:
    columns = (Column("id", ColumnType.LONG, 0), Column("up", ColumnType.LONG, 1), Column("content", ColumnType.BYTES, 2))
    page = TableDefinition(
        "demo", "page", "uuid-page", columns, ("id",), foreign_keys=(ForeignKey("lies_below", "uuid-page", ("up",), ("id",)),)
    )
    circle = _circle(path, {page: [{"id": number, "up": number - 1 if number else None, "content": bytes(size)} for number in range(rows)]})
    (step,) = circle.order.steps
    assert isinstance(step, Rows)
    return circle, step


def test_rows_that_take_no_room_in_their_file_fill_no_memory(tmp_path: Path) -> None:
    """A restore of 1,000 rows of 100 KB zeros would have sent them in one transaction, after reading 128 times as many."""
    circle, rows = _of_zeros(tmp_path, 400, 1 << 19)
    assert min(group.chunk_rows for group in circle.groups) > 50, "as it would be by the bytes in the file"
    pieces = list(_pieces(circle, rows, 0, {}, frozenset()))
    assert [number for piece in pieces for number in piece.rows.numbers.tolist()] == list(range(400))
    assert max(piece.size for piece in pieces) <= 3 << 20
    assert max(sum(piece.size for piece in together) for together in _read_together(pieces)) <= 128 << 20
    assert [piece for together in _read_together(pieces) for piece in together] == pieces


def test_a_restore_goes_on_behind_chunks_that_an_earlier_image_made_larger(tmp_path: Path) -> None:
    circle, rows = _of_zeros(tmp_path, 40, 1 << 19)
    whole = [(piece.chunk.step, piece.chunk.rows) for piece in _pieces(circle, rows, 100, {}, frozenset())]
    done = {"`page`, in order+100": 17, "`page`, in order+123": 2}
    left = [(piece.rows.numbers[0], piece.chunk.rows) for piece in _pieces(circle, rows, 100, done, frozenset())]
    assert sum(count for _, count in whole) == 40
    assert left[0][0] == 17
    assert {row for first, count in left for row in range(first, first + count)} == set(range(17, 40)) - {23, 24}
    assert sum(count for _, count in left) == 21, "each row once"


def test_numbers_of_two_types_are_compared_as_doubles_and_rows_of_others_are_refused_by_name(tmp_path: Path) -> None:
    table = replace(EMPLOYEE, columns=(*EMPLOYEE.columns[:1], Column("manager", ColumnType.DOUBLE, 1), *EMPLOYEE.columns[2:]))
    rows: list[dict[str, Stored]] = [{"id": 1, "manager": 2.0}, {"id": 2, "manager": None}]
    assert _numbers(_circle(tmp_path / "doubles", {table: rows})) == [[1, 0]]
    text = replace(EMPLOYEE, columns=(*EMPLOYEE.columns[:1], Column("manager", ColumnType.STRING, 1), *EMPLOYEE.columns[2:]))
    with pytest.raises(RestoreRefused, match="table 'employee': foreign key 'managed' of 1 rows compares string with int64: drop it"):
        _circle(tmp_path / "texts", {text: [{"id": 1, "manager": "1"}]})
    nobody: list[dict[str, Stored]] = [{"id": 1, "manager": None}]
    assert _numbers(_circle(tmp_path / "nobody", {text: nobody})) == [[0]]


def test_a_row_that_refers_to_one_that_is_not_there_is_refused_and_named(tmp_path: Path) -> None:
    rows: list[dict[str, Stored]] = [{"a": 1, "b": b"y", "up_a": 1, "up_b": None}]
    with pytest.raises(RestoreRefused, match=r"table 'place': foreign key 'lies_in' of 1 rows refers .*the first: place a = 1, b = b'y'"):
        _circle(tmp_path, {TWO_COLUMNS: rows})


def test_a_row_is_named_though_its_time_is_of_no_year_that_python_knows(tmp_path: Path) -> None:
    columns = (Column("at", ColumnType.TIMESTAMP, 0), Column("before", ColumnType.TIMESTAMP, 1))
    key = ForeignKey("follows", "uuid-step", ("before",), ("at",))
    table = TableDefinition("demo", "step", "uuid-step", columns, ("at",), foreign_keys=(key,))
    with pytest.raises(RestoreRefused, match=r"'follows' of 1 rows refers .*the first: step at = 9223372036854775807"):
        _circle(tmp_path, {table: [{"at": 2**63 - 1, "before": 5}]})


def test_float_arrays_that_refer_to_each_other_are_refused_by_name(tmp_path: Path) -> None:
    """HerdDB finds no two of them equal, so only nulls are to be expected there."""
    columns = (Column("id", ColumnType.LONG, 0), *(Column(name, ColumnType.FLOAT_ARRAY, at) for at, name in enumerate(("place", "up"), 1)))
    key = ForeignKey("lies_below", "uuid-point", ("up",), ("place",))
    table = TableDefinition("demo", "point", "uuid-point", columns, ("id",), foreign_keys=(key,))
    rows: list[dict[str, Stored]] = [{"id": 1, "place": (1.0,), "up": None}, {"id": 2, "place": (2.0,), "up": None}]
    assert _numbers(_circle(tmp_path / "nobody", {table: rows})) == [[0, 1]]
    with pytest.raises(RestoreRefused, match=r"'lies_below' of 1 rows compares list<item: float> with list<item: float>: drop it"):
        _circle(tmp_path / "one", {table: [rows[0], {"id": 2, "place": (2.0,), "up": (1.0,)}]})


def test_rows_that_no_order_of_statements_makes_are_refused_and_one_is_named(tmp_path: Path) -> None:
    table = _with_keys(_MANAGED, ForeignKey("mentored", "uuid-employee", ("mentor",), ("id",)))
    with pytest.raises(
        RestoreRefused, match=r"^3 rows of 'employee' refer to each other .*one of them: employee id = 7\. Set its references"
    ):
        _circle(tmp_path, {table: [_employee(7, 8, 9), _employee(8, 7), _employee(9), _employee(10)]})


def test_a_row_that_refers_to_itself_is_not_changed_while_another_looks_like_its_child(tmp_path: Path) -> None:
    """HerdDB 0.29 looks for children of employee 7 by each of the table's foreign keys, also by the one to clubs."""
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
    with pytest.raises(RestoreRefused, match="2 rows of 'employee' refer to each other"):
        circle("impossible", 7)


def test_a_row_that_refers_to_itself_is_not_changed_while_a_key_refers_to_columns_that_the_table_lacks(tmp_path: Path) -> None:
    """HerdDB 0.29 looks for these columns in the changed row, and fails."""
    club = TableDefinition("demo", "club", "uuid-club", (Column("number", ColumnType.LONG, 0),), ("number",))
    mentored = ForeignKey("mentored", "uuid-employee", ("mentor",), ("id",))
    table = _with_keys(_MANAGED, mentored, ForeignKey("of_club", "uuid-club", ("club",), ("number",)))
    source = open_source(write_checkpoint(tmp_path, {table: [_employee(7, 7, 8), _employee(8)], club: [{"number": 1}]}))
    tables = source.tables[:1]
    with pytest.raises(RestoreRefused, match=r"2 rows of 'employee' refer to each other .* one of them: employee id = 7\."):
        read_circle(tables, row_groups(enumerate(tables), source.folder, 1000, 1 << 18), source.folder)


def test_a_row_that_looks_like_its_own_child_does_not_come_in_with_half_a_key(tmp_path: Path) -> None:
    """HerdDB takes half a key for a reference to a row that is not there. Here the other half is the primary key, which takes no null."""
    columns = (Column("id", ColumnType.LONG, 0), Column("club", ColumnType.LONG, 1))
    club = TableDefinition("demo", "club", "uuid-club", columns, ("id", "club"))
    mentored = ForeignKey("mentored", "uuid-employee", ("mentor",), ("id",))
    table = _with_keys(_MANAGED, mentored, ForeignKey("of_club", "uuid-club", ("id", "club"), ("id", "club")))
    clubs: list[dict[str, Stored]] = [{"id": 7, "club": 1}, {"id": 8, "club": 1}]
    source = open_source(write_checkpoint(tmp_path, {table: [_employee(7, 7, 8, 1), _employee(8, None, None, 1)], club: clubs}))
    tables = source.tables[:1]
    with pytest.raises(RestoreRefused, match=r"2 rows of 'employee' refer to each other .* one of them: employee id = 7\."):
        read_circle(tables, row_groups(enumerate(tables), source.folder, 1000, 1 << 18), source.folder)


def test_a_row_that_refers_to_itself_is_refused_before_any_table_is_made_if_no_update_accepts_its_key(tmp_path: Path) -> None:
    def circle(folder: str, key: str, up: int) -> Circle:
        """Row 7 refers to row 8, which has nulls. If it refers to itself, too, it comes in with a null, and is updated."""
        names = (key, "own", "up", "friend")
        keys = tuple(ForeignKey(name, "uuid-page", (name,), ("own",)) for name in ("up", "friend"))
        columns = tuple(Column(name, ColumnType.LONG, place) for place, name in enumerate(names))
        table = TableDefinition("demo", "page", "uuid-page", columns, (key,), foreign_keys=keys)
        rows: list[dict[str, Stored]] = [{key: 7, "own": 7, "up": up, "friend": 8}, {key: 8, "own": 8, "up": None, "friend": None}]
        return _circle(tmp_path / folder, {table: rows})

    long, fits = "k" * 129, "k" * 128
    (updated,) = circle("fits", fits, 7).order.steps
    assert isinstance(updated, Rows)
    assert updated.turns.tolist() == [0, 1]
    assert _numbers(circle("no update", long, 8)) == [[1, 0]]
    with pytest.raises(RestoreRefused, match=r"table 'page': rows that refer to themselves .* none accepts the name k{40}… of the primary"):
        circle("long", long, 7)


def _with_keys(*keys: ForeignKey) -> TableDefinition:
    return TableDefinition("demo", "employee", "uuid-employee", EMPLOYEE.columns, ("id",), foreign_keys=keys)
