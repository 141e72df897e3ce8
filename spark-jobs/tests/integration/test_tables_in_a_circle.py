"""Tables that refer to each other in a circle, or to themselves, restored into an empty tablespace: SQL shows no difference, even after
kills at any point."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mortal_restore import (
    Written,
    require_each_row_once_though_killed_at_each_commit,
    require_each_row_once_though_killed_at_each_request,
)
from pyspark.sql import SparkSession
from real_database import Database
from restored_twin import Twins, checkpoint_of, content, require_same, restore

from herdkeeper.protocol.job_summary import JobOutcome

_CHAIN = 9
_STATEMENTS = (
    "CREATE TABLE dept (id int PRIMARY KEY, name string)",
    *(f"INSERT INTO dept (id, name) VALUES ({number}, 'dept {number}')" for number in range(1, 5)),
    # A tree. Departments and employees share numbers: to HerdDB, an employee of department 3 looks like a child of employee 3.
    "CREATE TABLE employee (id int AUTO_INCREMENT, name string NOT NULL, manager int, dept int, PRIMARY KEY (id), "
    "CONSTRAINT in_dept FOREIGN KEY (dept) REFERENCES dept (id))",
    "CREATE INDEX by_manager ON employee (manager)",
    "ALTER TABLE employee ADD CONSTRAINT managed FOREIGN KEY (manager) REFERENCES employee (id)",
    "INSERT INTO employee (name) VALUES ('first')",
    "INSERT INTO employee (name) VALUES ('her own')",
    "UPDATE employee SET manager = 2 WHERE id = 2",
    "INSERT INTO employee (name, manager, dept) VALUES ('under the first', 1, 2)",
    "INSERT INTO employee (name, manager, dept) VALUES ('under her', 2, 1)",
    "INSERT INTO employee (name, manager) VALUES ('under him', 3)",
    "INSERT INTO employee (id, name, manager) VALUES (-5, 'below', 5)",
    "INSERT INTO employee (id, name, manager) VALUES (1000, 'gone', 1)",
    "DELETE FROM employee WHERE id = 1000",
    # A chain, in the reverse order of its keys.
    "CREATE TABLE edition (id int PRIMARY KEY, later int)",
    "ALTER TABLE edition ADD CONSTRAINT followed FOREIGN KEY (later) REFERENCES edition (id) ON DELETE CASCADE",
    f"INSERT INTO edition (id) VALUES ({_CHAIN})",
    *(f"INSERT INTO edition (id, later) VALUES ({number}, {number + 1})" for number in range(_CHAIN - 1, 0, -1)),
    # Rows that refer to each other in a circle: they existed before the key. Rows with nulls came later.
    "CREATE TABLE team (id int PRIMARY KEY, leader string)",
    "CREATE TABLE person (name string PRIMARY KEY, team int)",
    "ALTER TABLE person ADD CONSTRAINT of_team FOREIGN KEY (team) REFERENCES team (id) ON DELETE SET NULL",
    *(f"INSERT INTO team (id, leader) VALUES ({number}, 'lead {number}')" for number in range(4)),
    *(f"INSERT INTO person (name, team) VALUES ('lead {number}', {(number + 1) % 4})" for number in range(4)),
    "ALTER TABLE team ADD CONSTRAINT led FOREIGN KEY (leader) REFERENCES person (name)",
    "INSERT INTO team (id) VALUES (4)",
    "INSERT INTO person (name, team) VALUES ('member', 4)",
    "INSERT INTO person (name) VALUES ('nobody')",
    "INSERT INTO team (id, leader) VALUES (5, 'member')",
    # All rows refer to themselves, and can't have a null.
    "CREATE TABLE thread (id long PRIMARY KEY, root long NOT NULL)",
    *(f"INSERT INTO thread (id, root) VALUES ({number}, {number // 3 * 3})" for number in range(8)),
    "ALTER TABLE thread ADD CONSTRAINT rooted FOREIGN KEY (root) REFERENCES thread (id)",
    # One row refers to itself, and to a club of its number, so that it looks like its own child, beside a row with nulls. A key that was
    # added when no row had a null plays no part: its index takes none.
    "CREATE TABLE club (id int PRIMARY KEY)",
    "INSERT INTO club (id) VALUES (7)",
    "CREATE TABLE pupil (id int PRIMARY KEY, guide int, friend int, club int, twin int)",
    "ALTER TABLE pupil ADD CONSTRAINT guided FOREIGN KEY (guide) REFERENCES pupil (id)",
    "ALTER TABLE pupil ADD CONSTRAINT befriended FOREIGN KEY (friend) REFERENCES pupil (id)",
    "ALTER TABLE pupil ADD CONSTRAINT of_club FOREIGN KEY (club) REFERENCES club (id)",
    "INSERT INTO pupil (id, twin) VALUES (8, 8)",
    "INSERT INTO pupil (id, friend, twin) VALUES (7, 8, 7)",
    "UPDATE pupil SET guide = 7, club = 7 WHERE id = 7",
    "CREATE UNIQUE INDEX by_twin ON pupil (twin)",
    "ALTER TABLE pupil ADD CONSTRAINT twinned FOREIGN KEY (twin) REFERENCES pupil (id)",
    # A key of two columns, one of which is also another key's.
    "CREATE TABLE area (a int, q int, PRIMARY KEY (a, q))",
    "INSERT INTO area (a, q) VALUES (7, 5)",
    "CREATE TABLE place (a int, b string, up_a int, up_b string, q int, main int, PRIMARY KEY (a, b))",
    "ALTER TABLE place ADD CONSTRAINT lies_in FOREIGN KEY (up_a, up_b) REFERENCES place (a, b)",
    "ALTER TABLE place ADD CONSTRAINT of_area FOREIGN KEY (up_a, q) REFERENCES area (a, q)",
    "ALTER TABLE place ADD CONSTRAINT mainly FOREIGN KEY (main) REFERENCES place (a)",
    "INSERT INTO place (a, b) VALUES (9, 'w')",
    "INSERT INTO place (a, b, main) VALUES (7, 'x', 9)",
    "UPDATE place SET up_a = 7, up_b = 'x', q = 5 WHERE a = 7",
    "INSERT INTO place (a, b, up_a, up_b, q) VALUES (6, 'x', 7, 'x', 5), (4, 'z', NULL, NULL, NULL)",
    # It comes after the circles.
    "CREATE TABLE badge (id int PRIMARY KEY, employee int, CONSTRAINT worn FOREIGN KEY (employee) REFERENCES employee (id))",
    "INSERT INTO badge (id, employee) VALUES (1, 5), (2, NULL)",
)


@pytest.fixture(scope="module")
def written(spark: SparkSession, database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    with database.tablespace("circles") as name, database.connect(name) as connection:
        for statement in _STATEMENTS:
            connection.execute(statement)
        manifest = checkpoint_of(spark, database, name, tmp_path_factory.mktemp("checkpoints"))
        yield Written(connection, manifest, content(connection))


def test_restored_circles_equal_their_originals_and_go_on_alike(spark: SparkSession, database: Database, written: Written) -> None:
    with database.tablespace("circles_again") as name, database.connect(name) as connection:
        summary = restore(spark, database, written.manifest, name)
        assert (summary.outcome, summary.rows_loaded) == (JobOutcome.SUCCEEDED, summary.rows)
        require_same(content(connection), written.content)
        twins = Twins(written.connection, connection)
        _require_same_answers(twins)
        require_same(content(twins.restored), content(twins.original))


def _require_same_answers(twins: Twins) -> None:
    refused = "ServerError"
    answers: tuple[tuple[str, int | str], ...] = (
        ("INSERT INTO employee (name, manager) VALUES ('nobody''s', 77)", refused),
        ("INSERT INTO employee (name, manager) VALUES ('next', -5)", 1),
        ("DELETE FROM employee WHERE id = 2", refused),
        ("UPDATE employee SET manager = NULL WHERE id = -5", refused),
        ("DELETE FROM team WHERE id = 0", refused),  # ON DELETE SET NULL changes a person to whom a team refers
        ("UPDATE team SET leader = 'nobody else' WHERE id = 5", refused),
        ("DELETE FROM team WHERE id = 5", 1),
        ("DELETE FROM team WHERE id = 4", 1),
        ("DELETE FROM edition WHERE id = 5", refused),  # outside of a transaction its CASCADE waits for its own row's lock
        ("INSERT INTO place (a, b, up_a, up_b) VALUES (1, 'y', 6, 'y')", refused),
        ("INSERT INTO thread (id, root) VALUES (100, 100)", refused),
    )
    for statement, expected in answers:
        answer = twins.both(statement)
        assert (answer if isinstance(answer, int) else answer.partition(":")[0]) == expected, f"{statement}: {answer}"
    assert twins.both_return("SELECT MAX(id) AS highest FROM employee") == [{"highest": 1002}], "a refused row has used a key"
    assert twins.both_return("SELECT team FROM person WHERE name = 'member'") == [{"team": None}]


def test_a_load_of_circles_that_is_killed_before_and_after_each_commit_goes_on_and_has_each_row_once(
    spark: SparkSession, database: Database, written: Written
) -> None:
    loaded = require_each_row_once_though_killed_at_each_commit(spark, database, written, "circles_killed")
    assert len(loaded) > 10, "there were few chunks: it tells little"


def test_a_restore_of_circles_that_is_killed_at_its_first_request_then_at_its_second_and_so_on_ends_with_each_row_once(
    spark: SparkSession, database: Database, written: Written
) -> None:
    killed = require_each_row_once_though_killed_at_each_request(spark, database, written, "circles_mortal")
    assert killed > 20, "there were few requests: it tells little"
