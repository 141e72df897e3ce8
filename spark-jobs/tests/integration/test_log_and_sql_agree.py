"""What a checkpoint's decoder and fold make of a tablespace's log, beside what SQL returns, after random stories."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from folded_log import FoldedLog, folded_log
from random_story import STORIES, Kind, Story
from real_database import Database

from herdkeeper.sql.connection import Connection
from herdkeeper_jobs.checkpoint.manifest import ManifestIndex
from herdkeeper_jobs.restore.rows import sql_rows
from herdkeeper_jobs.restore.verify import schema_facts, system_facts

_STEPS = 90
_FEWEST_ACCEPTED = 10
_DIES = 4
"""In one story of so many the leader dies: its restart takes longer than all else."""


@pytest.fixture(scope="module")
def told() -> dict[int, Counter[Kind]]:
    """How many statements of each kind SQL has accepted in the stories that were told, by their seeds."""
    return {}


def test_a_random_story_folds_to_what_sql_returns(database: Database, seed: int, told: dict[int, Counter[Kind]]) -> None:
    print(f"to tell this story again: make integration-sql SEED={seed}")
    with database.tablespace(f"story{seed}") as tablespace:
        story = Story(database, tablespace, seed, dies=seed % _DIES == 0)
        story.tell(_STEPS)
        told[seed] = story.accepted
        print(f"SQL accepted {story.accepted.total()} statements: {story.tally}")
        assert story.accepted.total() >= _FEWEST_ACCEPTED, "SQL refused most of the story: it tells little"
        _require_agreement(database, story.connection, tablespace)
        print("all transactions end")
        story.end_all()
        _require_agreement(database, story.connection, tablespace)
        story.close()


def test_sql_accepted_each_kind_of_statement_in_some_story(told: dict[int, Counter[Kind]]) -> None:
    if len(told) < STORIES:
        pytest.skip(f"{len(told)} stories were told: it takes {STORIES}")
    accepted = sum(told.values(), Counter[Kind]())
    print(", ".join(f"{kind.value} {accepted[kind]}" for kind in Kind))
    assert [kind.value for kind in Kind if not accepted[kind]] == [], "SQL refuses them: what the log makes of them is not seen"


def _require_agreement(database: Database, connection: Connection, tablespace: str) -> None:
    database.close_ledger(tablespace)
    folded = folded_log(database, tablespace)
    print(f"{folded.entries} entries in {folded.ledgers} ledgers")
    tables = folded.timeline.tables
    in_sql = {str(row["table_name"]) for row in connection.query("SELECT * FROM systables") if row["systemtable"] != "true"}
    assert {table.name for table in tables} == in_sql, "tables"
    assert _facts(folded) == system_facts(connection.query, in_sql)
    for table, rows in zip(tables, folded.rows, strict=True):
        returned = sql_rows(table, connection.query(f"SELECT * FROM `{table.name}`"))
        assert _counted(rows) == _counted(returned), f"rows of {table.name}"


def _facts(folded: FoldedLog) -> Any:
    """What the log says of the schema, in the words in which HerdDB's system tables tell it: they list the indexes of open transactions."""
    timeline = folded.timeline
    tables = [
        SimpleNamespace(
            name=table.name,
            definition=table,
            indexes=[
                ManifestIndex(
                    name=index.name,
                    table=index.table,
                    type=index.type,
                    unique=index.unique,
                    columns=tuple(name for name, _, _ in index.columns),
                )
                for index in (one.definition for one in timeline.state.indexes)
                if index.table == table.name
            ],
        )
        for table in timeline.tables
    ]
    names = {table.uuid: table.name for table in timeline.tables}
    return schema_facts(SimpleNamespace(tables=tables, parent_of=names.__getitem__))  # type: ignore[arg-type]


def _counted(rows: Any) -> Counter[str]:
    """Rows as texts: a NaN is one, and 0.0 is not -0.0."""
    return Counter(repr([list(value) if isinstance(value, tuple) else value for value in row]) for row in rows)
