"""A checkpoint's decoder and fold compared with SQL, after random stories; and each tablespace restored from the story's checkpoint
compared with its original."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
import random_definitions as definitions
from pyspark.sql import SparkSession
from random_definitions import SeenTable
from random_story import STORIES, Kind, Story
from real_database import Database
from restored_twin import Twins, checkpoint_of, content, remove_rows_that_no_restore_loads, require_same, restore

from herdkeeper.codecs.herddb.log_entry import LogEntryType
from herdkeeper.sql.connection import Connection
from herdkeeper.sql.errors import ServerError
from herdkeeper_e2e.folded_log import FoldedLog, folded_log
from herdkeeper_jobs.checkpoint.folded_manifest import manifest_index
from herdkeeper_jobs.restore.rows import sql_rows
from herdkeeper_jobs.restore.verify import schema_facts, system_facts

_STEPS = 90
_FEWEST_ACCEPTED = 10
_FURTHER = 30
_LEAST_RESTORED = 0.5
_DIES = 4
"""In one of so many stories the leader dies: its restart takes longer than all else."""


@dataclass
class Told:
    """Facts about the stories that ran, by seed."""

    accepted: dict[int, Counter[Kind]] = field(default_factory=dict)
    """Accepted statements by kind."""
    restored: dict[int, bool] = field(default_factory=dict)
    """Whether SQL can express what the story left."""
    across_ledgers: Counter[LogEntryType | None] = field(default_factory=Counter)
    """Transactions in the logs with changes in several ledgers, by how they ended."""
    rolled_back_by_the_next_leader: int = 0
    """Transactions with changes in the log when their leader died."""

    def note_transactions(self, folded: FoldedLog, story: Story) -> None:
        """Counts transactions that are hard to fold. Raises AssertionError if the story had none."""
        across = Counter(one.end for one in folded.transactions.values() if len(one.ledgers) > 1)
        assert across, "no transaction changed rows in two ledgers"
        lost = [one for number, one in folded.transactions.items() if number in story.left_open and one.ledgers]
        assert bool(lost) == bool(story.left_open), "the log does not have what the transactions did whose leader died"
        assert LogEntryType.COMMIT not in {one.end for one in lost}
        print(f"{across.total()} transactions changed rows in several ledgers, {len(lost)} lost their leader")
        self.across_ledgers += across
        self.rolled_back_by_the_next_leader += len(lost)


@pytest.fixture(scope="module")
def told() -> Told:
    return Told()


def test_a_random_story_folds_to_what_sql_returns_and_is_restored_alike(
    database: Database, spark: SparkSession, seed: int, told: Told, tmp_path: Path
) -> None:
    print(f"to tell this story again: make integration-sql SEED={seed}")
    with database.tablespace(f"story{seed}") as tablespace:
        story = Story(database, tablespace, seed, dies=seed % _DIES == 0)
        story.tell(_STEPS)
        told.accepted[seed] = story.accepted
        print(f"SQL accepted {story.accepted.total()} statements: {story.tally}")
        assert story.accepted.total() >= _FEWEST_ACCEPTED, "SQL refused most of the story: it tells little"
        _require_agreement(database, story.connection, tablespace)
        print("all transactions end")
        story.end_all()
        story.add_foreign_keys()
        folded = _require_agreement(database, story.connection, tablespace)
        told.note_transactions(folded, story)
        assert bool(story.left_open) == (seed % _DIES == 0)
        committed = {table.uuid for table in folded.timeline.tables}
        unusable = [each for each in folded.timeline.state.indexes if each.table_uuid in committed and each.maker is not None]
        assert unusable == [], "HerdDB goes on listing these"
        why_not = _why_not_restorable(story.connection)
        manifest = checkpoint_of(spark, database, tablespace, tmp_path)
        print(f"not restored: {why_not}" if why_not else "restored")
        told.restored[seed] = not why_not
        if not why_not:
            with database.tablespace(f"twin{seed}") as twin, database.connect(twin) as connection:
                restore(spark, database, manifest, twin)
                require_same(content(connection), content(story.connection))
                _require_same_answers(story, Twins(story.connection, connection), Random(seed))
        story.close()


@pytest.mark.parametrize("dies", [False, True], ids=["", "the leader dies"])
@pytest.mark.parametrize("committed", [False, True], ids=["", "committed"])
def test_an_index_that_a_transaction_makes_stays_and_a_truncate_behind_it_is_in_the_fold(
    database: Database, committed: bool, dies: bool
) -> None:
    with database.tablespace(f"index{committed:d}{dies:d}") as tablespace, database.connect(tablespace) as connection:
        connection.execute("CREATE TABLE `t` (`k` INTEGER PRIMARY KEY, `v` INTEGER, `w` INTEGER)")
        connection.execute("INSERT INTO `t` (`k`, `v`, `w`) VALUES (1, 2, 3)")
        connection.execute("CREATE INDEX `i` ON `t` (`v`)")
        with suppress(_Undone), connection.transaction() as one:
            one.execute("DROP INDEX `i`")
            with pytest.raises(ServerError, match="a transaction drops an index i"):
                one.execute("CREATE UNIQUE INDEX `i` ON `t` (`w`)")
            one.execute("CREATE UNIQUE INDEX `j` ON `t` (`w`)")
            if not committed:
                raise _Undone
        with _led(database, tablespace, connection, dies) as leader:
            leader.execute("TRUNCATE TABLE `t`")
            leader.execute("INSERT INTO `t` (`k`, `v`, `w`) VALUES (4, 5, 6)")
            folded = _require_agreement(database, leader, tablespace)
        assert [index.name for index in folded.timeline.indexes] == (["j"] if committed else ["i", "j"])
        assert [row[0] for row in folded.rows[0]] == [4]


def test_sql_accepted_each_kind_of_statement_in_some_story_and_most_were_restored(told: Told) -> None:
    if len(told.accepted) < STORIES:
        pytest.skip(f"{len(told.accepted)} stories were told: it takes {STORIES}")
    accepted = sum(told.accepted.values(), Counter[Kind]())
    print(", ".join(f"{kind.value} {accepted[kind]}" for kind in Kind))
    assert [kind.value for kind in Kind if not accepted[kind]] == [], "SQL refuses them: what the log makes of them is not seen"
    assert told.across_ledgers[LogEntryType.COMMIT], told.across_ledgers
    assert told.across_ledgers.total() > told.across_ledgers[LogEntryType.COMMIT], "none was rolled back"
    assert told.rolled_back_by_the_next_leader
    assert sum(told.restored.values()) >= _LEAST_RESTORED * len(told.accepted), told.restored


class _Undone(Exception):  # noqa: N818 - a way out of a transaction's block
    """Makes a transaction's block end with ROLLBACK."""


@contextmanager
def _led(database: Database, tablespace: str, connection: Connection, dies: bool) -> Iterator[Connection]:
    """A connection to a leader; if `dies`, to one that has replayed the log."""
    if not dies:
        yield connection
        return
    connection.close()
    database.kill_leader(tablespace)
    with database.connect(tablespace) as to_next:
        yield to_next


def _require_agreement(database: Database, connection: Connection, tablespace: str) -> FoldedLog:
    """Checks that the log folds to SQL's content; returns the folded log."""
    database.close_ledger(tablespace)
    with database.catalog() as catalog:
        folded = folded_log(catalog, database.herd_root, tablespace, database.servers.folder)
    print(f"{folded.entries} entries in {folded.ledgers} ledgers")
    tables = folded.timeline.tables
    in_sql = {str(row["table_name"]) for row in connection.query("SELECT * FROM systables") if row["systemtable"] != "true"}
    assert {table.name for table in tables} == in_sql, "tables"
    assert _facts(folded) == system_facts(connection.query, in_sql)
    for table, rows in zip(tables, folded.rows, strict=True):
        returned = sql_rows(table, connection.stream(f"SELECT * FROM `{table.name}`", moment=int))
        assert _counted(rows) == _counted(returned), f"rows of {table.name}"
    _require_distinct_values(connection)
    return folded


def _require_distinct_values(connection: Connection) -> None:
    """Checks that no two rows have one value of a unique index, nulls apart."""
    columns: dict[tuple[str, str], list[str]] = {}
    for row in connection.query("SELECT * FROM sysindexcolumns"):
        if row["unique"] and row["index_type"] != "pk":
            columns.setdefault((str(row["table_name"]), str(row["index_name"])), []).append(str(row["column_name"]))
    for (table, index), names in columns.items():
        rows = [[row[name] for name in names] for row in connection.query(f"SELECT * FROM `{table}`")]
        values = Counter(repr(row) for row in rows if None not in row)
        assert [value for value, number in values.items() if number > 1] == [], f"rows of {table} by its unique index {index}"


def _facts(folded: FoldedLog) -> Any:
    """The log's schema in the terms of HerdDB's system tables, which also list indexes of open transactions."""
    timeline = folded.timeline
    tables = [
        SimpleNamespace(
            name=table.name,
            definition=table,
            indexes=[manifest_index(index) for index in (one.definition for one in timeline.state.indexes) if index.table == table.name],
        )
        for table in timeline.tables
    ]
    names = {table.uuid: table.name for table in timeline.tables}
    return schema_facts(SimpleNamespace(tables=tables, parent_of=names.__getitem__))  # type: ignore[arg-type]


def _counted(rows: Any) -> Counter[str]:
    """Rows as texts: NaN equals itself, and 0.0 differs from -0.0."""
    return Counter(repr([list(value) if isinstance(value, tuple) else value for value in row]) for row in rows)


def _why_not_restorable(connection: Connection) -> str:
    """Why SQL does not accept all rows of a story, after all possible corrections."""
    try:
        remove_rows_that_no_restore_loads(connection)
    except ServerError as error:
        return str(error)
    return ""


def _require_same_answers(story: Story, twins: Twins, chance: Random) -> None:
    further = [(sql, twins.both(sql, parameters)) for sql, parameters in story.further_changes(list(story.tables), _FURTHER)]
    print(f"both took {sum(isinstance(answer, int) for _, answer in further)} of {len(further)} further changes alike")
    names = [f"rows of {table.name}" for table in story.tables]
    found, expected = (content(connection, since_then=True) for connection in (twins.restored, twins.original))
    require_same({name: found[name] for name in names}, {name: expected[name] for name in names})
    for table in story.tables:
        if table.automatic and table.others and not table.bound:
            _require_next_key(twins, table, chance)


def _require_next_key(twins: Twins, table: SeenTable, chance: Random) -> None:
    """Checks that HerdDB's next key is above all existing ones. The original may have given higher ones, to rows that were never committed.
    There is none if the key was made NOT NULL (ALTER TABLE … MODIFY)."""
    (key,) = table.key
    query = f"SELECT `{key}` FROM `{table.name}`"
    there = {int(str(row[key])) for row in twins.original.query(query)}
    names = ", ".join(f"`{column.name}`" for column in table.others)
    values = [definitions.value(chance, column.type) for column in table.others]
    answer = twins.both(f"INSERT INTO `{table.name}` ({names}) VALUES ({', '.join('?' * len(values))})", values)
    if isinstance(answer, str) and f"Column '{key}' has no default value and does not allow NULLs" in answer:
        return
    assert answer == 1
    original, restored = (
        ({int(str(row[key])) for row in connection.query(query)} - there).pop() for connection in (twins.original, twins.restored)
    )
    assert original == restored or max(there, default=0) < restored < original, f"next key of {table.name}"
