"""The demo's data: its keys are keys, and its gaps stay gaps."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from herdkeeper_e2e import statements
from herdkeeper_e2e.nycflights import TABLES, DataError, SqlType, chunks, data_directory, parse_cell, read_rows

ROWS = {"airlines": 16, "airports": 1458, "planes": 3322, "weather": 26115, "flights": 336776}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_primary_key_of_each_table_is_unique_and_never_null(table):
    seen = set()
    rows = 0
    for row in read_rows(table, data_directory()):
        key = tuple(row[position] for position in table.key_positions)
        assert None not in key
        seen.add(key)
        rows += 1
    assert (len(seen), rows) == (rows, ROWS[table.name])


@pytest.mark.parametrize("kind", SqlType)
def test_a_missing_value_is_null_in_every_type(kind):
    assert parse_cell(kind, "NA") is None


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (SqlType.STRING, "N14228", "N14228"),
        (SqlType.INTEGER, "-3", -3),
        (SqlType.DOUBLE, "39.02", 39.02),
        (SqlType.TIMESTAMP, "2013-01-01T10:00:00Z", datetime(2013, 1, 1, 10, tzinfo=UTC)),
    ],
)
def test_a_field_becomes_a_value_of_its_column_s_type(kind, text, value):
    assert parse_cell(kind, text) == value


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match=r"airlines\.csv is missing"):
        list(read_rows(TABLES[0], tmp_path))


def test_a_value_that_does_not_parse_is_named_with_its_place(tmp_path):
    (tmp_path / "airlines.csv").write_text("carrier,name\n9E,Endeavor,Air\n")
    with pytest.raises(DataError, match=r"airlines\.csv:2: 3 values, expected 2"):
        list(read_rows(TABLES[0], tmp_path))


def test_the_same_rows_always_give_the_same_chunks():
    assert list(chunks(iter([(1,), (2,), (3,)]), 2)) == [[(1,), (2,)], [(3,)]]


def test_statements_quote_every_name_since_some_are_words_of_sql():
    assert statements.create_table(TABLES[0]) == (
        "CREATE TABLE IF NOT EXISTS `airlines` (`carrier` string, `name` string, PRIMARY KEY (`carrier`))"
    )
    assert statements.insert(TABLES[0]) == "INSERT INTO `airlines` (`carrier`, `name`) VALUES (?, ?)"
    assert statements.select_by_key(TABLES[0]) == "SELECT `carrier` FROM `airlines` WHERE `carrier` = ?"
