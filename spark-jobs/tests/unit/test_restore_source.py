"""Which checkpoints can be restored."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from places import write
from restore_situations import CHILD, CHILD_ROWS, PARENT, PARENT_ROWS, UNIQUE, write_checkpoint

from herdkeeper.codecs.herddb.table import Column, ColumnType, ForeignKey, TableDefinition
from herdkeeper_jobs.errors import InvariantViolated, RestoreRefused
from herdkeeper_jobs.manifests.manifest import ManifestIndex
from herdkeeper_jobs.restore.session import Session
from herdkeeper_jobs.restore.source import open_source
from herdkeeper_jobs.restore.verify import digest_in_sql
from herdkeeper_jobs.storage.stored_path import StoredPath


def test_a_foreign_key_whose_parent_is_gone_does_not_prevent_a_restore(tmp_path: Path) -> None:
    """An earlier image took a foreign key to a table that another transaction had made, and rolled back then."""
    source = open_source(write_checkpoint(tmp_path, {CHILD: CHILD_ROWS}))
    assert [table.definition.foreign_keys for table in source.tables] == [()]
    assert source.left_out == (f"foreign key {CHILD.foreign_keys[0].name!r} of table 'child'",)


@pytest.mark.parametrize(
    ("table", "index", "reason"),
    [
        (replace(PARENT, columns=(*PARENT.columns, Column("n", ColumnType.NULL, 9))), UNIQUE, "column 'n' has the type null"),
        (
            replace(
                PARENT,
                columns=(
                    *PARENT.columns,
                    *(Column(f"n{number}", ColumnType.LONG, number) for number in range(9, 138 - len(PARENT.columns))),
                ),
            ),
            UNIQUE,
            "it has 129 columns, and HerdDB reads 128",
        ),
        (replace(PARENT, name="a`b"), UNIQUE, "the name 'a`b' has a back-tick"),
        (
            replace(PARENT, columns=(Column("k" * 129, ColumnType.LONG, 0),), primary_key=("k" * 129,), auto_increment=True),
            UNIQUE,
            "the name k{40}… of the AUTO_INCREMENT column is too long",
        ),
        (
            replace(PARENT, foreign_keys=(ForeignKey("f`k", "uuid-parent", ("id",), ("id",)),)),
            UNIQUE,
            "the name 'f`k' has a back-tick",
        ),
        (
            PARENT,
            ManifestIndex(name="i", table="parent", type="hash", unique=False, columns=("i`d",)),
            "the name 'i`d' has a back-tick",
        ),
        (
            PARENT,
            ManifestIndex(name="i", table="parent", type="hash", unique=True, columns=("id",)),
            "index 'i' is unique and of type hash",
        ),
        (
            PARENT,
            ManifestIndex(name="i", table="parent", type="table evil (k int, primary key (k)) --", unique=False, columns=("id",)),
            re.escape("index 'i' has the type 'table evil (k int, primary key (k)) --'"),
        ),
        (
            replace(PARENT, columns=(*PARENT.columns, Column("d", ColumnType.BYTES, 9, default=b"x"))),
            UNIQUE,
            "'d' of type BYTES has the default",
        ),
        (replace(PARENT, name="herdkeeper_restore"), UNIQUE, "a restore needs this name for itself"),
    ],
)
def test_what_sql_can_not_make_is_refused_and_named(tmp_path: Path, table: TableDefinition, index: ManifestIndex, reason: str) -> None:
    with pytest.raises(RestoreRefused, match=reason):
        open_source(write_checkpoint(tmp_path, {table: []}, (index,)))


@pytest.mark.parametrize(
    ("rows", "highest", "refused"),
    [(0, None, False), (3, None, True), (0, 7, True)],
    ids=["it is empty", "it has rows", "a row is to advance its next key"],
)
def test_a_table_with_a_name_that_no_select_accepts_is_restored_only_if_it_is_empty(
    tmp_path: Path, rows: int, highest: int | None, refused: bool
) -> None:
    """CREATE TABLE accepts it, and nobody can write a row. A row is there, or was, if the table was renamed."""
    named = replace(PARENT, name="n" * 129, auto_increment=True)
    manifest = write_checkpoint(
        tmp_path,
        {named: PARENT_ROWS[:rows], replace(PARENT, name="m" * 128): PARENT_ROWS},
        highest={} if highest is None else {named.name: highest},
    )
    if refused:
        with pytest.raises(RestoreRefused, match=r"table n{40}…: its name is too long for an INSERT"):
            open_source(manifest)
    else:
        found = [table for table in open_source(manifest).tables if not table.definition.can_be_queried]
        assert [digest_in_sql(cast(Session, None), table).rows for table in found] == [0], "without a question to a node"


def test_an_index_or_a_foreign_key_whose_column_was_dropped_or_renamed_does_not_prevent_a_restore(tmp_path: Path) -> None:
    gone = ManifestIndex(name="by_gone", table="child", type="brin", unique=False, columns=("id", "gone"))
    (key,) = CHILD.foreign_keys
    lost = replace(key, name="lost", columns=("gone",)), replace(key, name="led_to", parent_columns=("renamed",))
    child = replace(CHILD, foreign_keys=(key, *lost))
    source = open_source(write_checkpoint(tmp_path, {child: [], PARENT: []}, (gone, UNIQUE)))
    found = {table.name: (table.indexes, table.definition.foreign_keys) for table in source.tables}
    assert found == {"child": ((UNIQUE,), (key,)), "parent": ((), ())}
    assert source.left_out == (
        "index 'by_gone' of table 'child'",
        "foreign key 'lost' of table 'child'",
        "foreign key 'led_to' of table 'child'",
    )


def test_a_foreign_key_with_a_name_that_no_select_accepts_does_not_prevent_a_restore(tmp_path: Path) -> None:
    """CREATE TABLE takes such a key. ALTER TABLE, by which a restore adds keys, checks the rows by a SELECT."""
    (key,) = CHILD.foreign_keys
    long, fits = "n" * 129, "m" * 128
    parent = replace(PARENT, columns=(*PARENT.columns, Column(long, ColumnType.LONG, 8)))
    columns = (*CHILD.columns, Column(long, ColumnType.LONG, 8), Column(fits, ColumnType.LONG, 9))
    by_name = {
        "own column": replace(key, name="own column", columns=(long,)),
        "parent's column": replace(key, name="parent's column", parent_columns=(long,)),
        "to the long name": replace(key, name="to the long name", parent_uuid="uuid-long"),
    }
    made = (key, replace(key, name=long, columns=(fits,)))
    child = replace(CHILD, columns=columns, foreign_keys=(*made, *by_name.values()))
    named = replace(PARENT, name=long, uuid="uuid-long", foreign_keys=(ForeignKey("from it", "uuid-parent", ("id",), ("id",)),))
    source = open_source(write_checkpoint(tmp_path, {child: [], parent: [], named: []}))
    assert {table.name: table.definition.foreign_keys for table in source.tables} == {"child": made, "parent": (), long: ()}
    assert source.left_out == (*(f"foreign key {name!r} of table 'child'" for name in by_name), f"foreign key 'from it' of table {long!r}")


def test_a_unique_index_with_the_name_of_a_table_does_not_prevent_a_restore(tmp_path: Path) -> None:
    twin = ManifestIndex(name="parent", table="child", type="brin", unique=True, columns=UNIQUE.columns)
    other = ManifestIndex(name="child", table="child", type="brin", unique=False, columns=UNIQUE.columns)
    source = open_source(write_checkpoint(tmp_path, {CHILD: [], PARENT: []}, (twin, other, UNIQUE)))
    assert [table.indexes for table in source.tables] == [(other, UNIQUE), ()]
    assert source.left_out == ("index 'parent' of table 'child'",)


@pytest.mark.parametrize("folder", ["i-1/ts-2", "i-2/ts-1"], ids=["tablespace", "cluster"])
def test_a_manifest_at_the_place_of_another_tablespace_or_cluster_is_not_taken_for_that_one_s(place: StoredPath, folder: str) -> None:
    path = write_checkpoint(place, {PARENT: PARENT_ROWS})
    moved = place / folder / "manifests" / path.name
    write(moved, path.read_bytes())
    with pytest.raises(InvariantViolated, match="says that it belongs to i-1/ts-1"):
        open_source(moved)


def test_a_manifest_that_is_not_there_is_asked_for_by_its_form(place: StoredPath) -> None:
    with pytest.raises(RestoreRefused, match=r"no such file; give <INSTANCEID>/<tablespace uuid>/manifests/"):
        open_source(place / "nothing.json")
