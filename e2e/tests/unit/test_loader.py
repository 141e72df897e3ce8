"""A load commits every row exactly once, whatever answers are lost."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from herdkeeper.sql.errors import ConnectionLost, DuplicateKey, OutcomeUnknown
from herdkeeper_e2e import loader
from herdkeeper_e2e.loader import LoadError, LoadPlan, TableLoader, load_table
from herdkeeper_e2e.nycflights import TABLES

AIRLINES = TABLES[0]
ROWS = [(f"{number:02}", f"airline {number}") for number in range(7)]


class PlayedDatabase:
    """One table `airlines`. Each commit takes the next of `answers`: None, or an error and whether the rows are durable nevertheless."""

    def __init__(self, *answers: tuple[Exception, bool]) -> None:
        self.rows: dict[str, str] = {}
        self.commits = 0
        self.closed = False
        self._answers = list(answers)

    def connect(self, patience):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def close(self) -> None:
        """A played connection can be used again."""

    def execute(self, sql):
        assert sql.startswith("CREATE TABLE IF NOT EXISTS")

    def query(self, sql, key=None):
        if key is None:
            return [{"n": len(self.rows)}]
        return [{"carrier": key[0]}] if key[0] in self.rows else []

    @contextmanager
    def transaction(self):
        self._pending: list[tuple[str, str]] = []
        yield self
        self.commits += 1
        error, durable = self._answers.pop(0) if self._answers else (None, True)
        if durable:
            self.rows.update(self._pending)
        if error is not None:
            raise error

    def execute_batch(self, sql, rows):
        for carrier, _ in rows:
            if carrier in self.rows:
                raise DuplicateKey(f"{carrier} exists already")
        self._pending = list(rows)


def load(database: PlayedDatabase, folder: Path) -> None:
    (folder / "airlines.csv").write_text("carrier,name\n" + "".join(f"{carrier},{name}\n" for carrier, name in ROWS))
    load_table(database, AIRLINES, LoadPlan(folder, chunk_rows=3, connections=1), threading.Event())


def test_all_rows_are_committed_and_a_second_load_writes_nothing(tmp_path):
    database = PlayedDatabase()
    load(database, tmp_path)
    assert (database.rows, database.commits) == (dict(ROWS), 3)
    load(database, tmp_path)
    assert database.commits == 3


@pytest.mark.parametrize("durable", [True, False])
def test_a_commit_whose_answer_was_lost_is_repeated_only_when_its_rows_are_not_there(tmp_path, durable):
    database = PlayedDatabase((OutcomeUnknown("no answer"), durable))
    load(database, tmp_path)
    assert (database.rows, database.commits) == (dict(ROWS), 3 if durable else 4)


def test_an_interrupted_load_goes_on_with_the_chunks_that_are_missing(tmp_path):
    database = PlayedDatabase()
    database.rows.update(ROWS[3:6])
    load(database, tmp_path)
    assert (database.rows, database.commits) == (dict(ROWS), 2)


def test_rows_that_become_durable_only_after_the_look_are_taken_as_loaded():
    database = PlayedDatabase()
    looks = iter([[], [{"carrier": "00"}]])
    database.query = lambda sql, key=None: next(looks)
    database.rows.update(ROWS[:3])
    TableLoader(database, AIRLINES).load(ROWS[:3], look_first=True)
    assert database.commits == 0


def test_a_connection_that_breaks_at_the_look_after_a_refusal_is_renewed():
    database = PlayedDatabase()
    answers = iter([[], ConnectionLost("gone"), [{"carrier": "00"}]])

    def query(sql, key=None):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    database.query = query
    database.rows.update(ROWS[:3])
    TableLoader(database, AIRLINES).load(ROWS[:3], look_first=True)
    assert next(answers, "all asked") == "all asked"


def test_rows_of_somebody_else_end_the_load_with_the_fix(tmp_path):
    database = PlayedDatabase()
    database.rows["01"] = "somebody else's"
    with pytest.raises(LoadError, match="airlines holds rows that this program did not load: 01 exists already; drop the table"):
        load(database, tmp_path)
    assert database.rows == {"01": "somebody else's"}


def test_a_leader_that_never_comes_ends_the_load():
    database = PlayedDatabase(*[(ConnectionLost("nobody"), False)] * loader.MAX_ATTEMPTS)
    with pytest.raises(LoadError, match="10 attempts to load a chunk of airlines failed"):
        TableLoader(database, AIRLINES).load(ROWS[:3], look_first=False)
    assert database.commits == loader.MAX_ATTEMPTS


def test_a_load_whose_caller_is_gone_says_that_rows_are_missing(tmp_path):
    (tmp_path / "airlines.csv").write_text("carrier,name\n9E,Endeavor\n")
    stop = threading.Event()
    stop.set()
    with pytest.raises(LoadError, match="has 0 rows, its file has 1: run the load again"):
        load_table(PlayedDatabase(), AIRLINES, LoadPlan(tmp_path, 3, 1), stop)
