"""PEP 249 with a real leader: the public suite, values of every kind, large results, hostile text, and a killed leader."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import dbapi20
import pytest
from real_database import Database
from sqlalchemy.pool import QueuePool
from waits import wait_until

from herdkeeper.sql import dbapi
from herdkeeper.sql.connection import Transaction
from herdkeeper.sql.dbapi import aio
from herdkeeper_e2e.server_processes import CREDENTIALS

_ROWS = 5000
"""More than two pieces of a result."""


@pytest.fixture(scope="module")
def tablespace(database: Database) -> Iterator[str]:
    with database.tablespace("application") as name:
        yield name


def connect(database: Database, tablespace: str, **options: Any) -> dbapi.Connection:
    return dbapi.connect(str(database.address), CREDENTIALS.username, CREDENTIALS.password, tablespace, **options)


class TestPublicSuite(dbapi20.DatabaseAPI20Test):  # type: ignore[misc]  # the suite has no types
    """dbapi-compliance: the published suite of PEP 249. Tests that it leaves to drivers are below."""

    driver = dbapi
    # HerdDB gives a table without a key the column `_pk`, for which an INSERT without column names must have a value.
    ddl1 = "create table dbapi20test_booze (name varchar(20) primary key)"
    ddl2 = "create table dbapi20test_barflys (name varchar(20) primary key, drink varchar(30))"

    @pytest.fixture(autouse=True)
    def _of_the_tests(self, database: Database, tablespace: str) -> None:
        self.connect_args = (str(database.address), CREDENTIALS.username, CREDENTIALS.password, tablespace)

    def test_nextset(self) -> None:
        """Optional: a statement of HerdDB has one result."""
        assert not hasattr(dbapi.Cursor, "nextset")

    def test_description(self) -> None:
        """Like the suite's test, with a row: HerdDB sends no types, so a column has the type of its first value."""
        with self._connect() as connection:
            cursor = connection.cursor()
            self.executeDDL1(cursor)
            assert cursor.description is None
            cursor.execute("insert into dbapi20test_booze values ('Victoria Bitter')")
            ((name, kind, *rest),) = cursor.execute("select name from dbapi20test_booze").description
            assert (name, rest) == ("name", [None] * 5)
            assert kind == dbapi.STRING
            self.executeDDL2(cursor)
            assert cursor.description is None

    def test_non_idempotent_close(self) -> None:
        """The suite leaves this open: a second close does nothing, as with sqlite3."""
        connection = self._connect()
        connection.close()
        connection.close()

    def test_setoutputsize(self) -> None:
        cursor = self._connect().cursor()
        cursor.setoutputsize(1000)
        cursor.setoutputsize(2000, 0)


def test_every_kind_of_value_is_read_back_as_it_was_written(database: Database, tablespace: str) -> None:
    moment = datetime(2024, 2, 29, 23, 59, 59, 999000, UTC)
    rows: list[tuple[Any, ...]] = [
        (1, "it's \U0001d11e \0 漢 %_\\ ? :x \"`", 2**63 - 1, 2**31 - 1, bytes(range(256)), moment, float("inf"), True, [1.5, -0.0]),
        (2, "", -(2**63), -(2**31), b"", datetime(1, 1, 1, tzinfo=UTC), -0.0, False, []),
        (3, None, None, None, None, None, None, None, None),
    ]
    with connect(database, tablespace) as connection:
        cursor = connection.cursor()
        cursor.execute(
            "CREATE TABLE kinds (k int PRIMARY KEY, s string, l long, i int, b blob, t timestamp, d double, o boolean, f floata)"
        )
        assert cursor.executemany("INSERT INTO kinds VALUES(?,?,?,?,?,?,?,?,?)", rows).rowcount == 3
    with connect(database, tablespace) as connection:
        cursor = connection.cursor()
        assert cursor.execute("SELECT * FROM kinds ORDER BY k").fetchall() == rows
        kinds = [column[1] for column in cursor.description or ()]
        assert kinds == [int, str, int, int, bytes, datetime, float, bool, list]
        moscow = moment.astimezone(timezone(timedelta(hours=3)))
        assert cursor.execute("SELECT k FROM kinds WHERE t = ?", [moscow]).fetchall() == [(1,)], "the same moment in another zone"
        assert cursor.execute("SELECT k FROM kinds WHERE s = ?", [rows[0][1]]).fetchall() == [(1,)]


def test_text_of_a_parameter_is_never_part_of_the_statement(database: Database, tablespace: str) -> None:
    hostile = ["'; DROP TABLE victims; --", "' OR '1'='1", "?", "\\' OR 1=1 --", "%' OR k LIKE '%"]
    with connect(database, tablespace) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE victims (k string PRIMARY KEY)")
        cursor.executemany("INSERT INTO victims VALUES(?)", [[text] for text in hostile])
        for text in hostile:
            assert cursor.execute("SELECT k FROM victims WHERE k = ?", [text]).fetchall() == [(text,)]
            assert cursor.execute("DELETE FROM victims WHERE k = ?", [text + "x"]).rowcount == 0
        assert cursor.execute("SELECT COUNT(*) FROM victims").fetchall() == [(len(hostile),)]


def test_a_large_result_is_read_in_pieces_and_in_order(database: Database, tablespace: str) -> None:
    with connect(database, tablespace) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE much (k int PRIMARY KEY, s string)")
        cursor.executemany("INSERT INTO much VALUES(?,?)", ((number, "x" * 500) for number in range(_ROWS)))
        connection.commit()
        assert [row[0] for row in cursor.execute("SELECT k, s FROM much ORDER BY k")] == list(range(_ROWS))
        cursor.execute("SELECT k FROM much ORDER BY k")
        assert cursor.fetchmany(3) == [(0,), (1,), (2,)]
        other = connection.cursor()
        other.execute("UPDATE much SET s='y' WHERE k=0")
        connection.commit()
        assert len(cursor.fetchall()) == _ROWS - 3, "the rest is there although something else was done and committed meanwhile"
        one_by_one = connection.cursor()
        one_by_one.fetch_rows = 1
        assert one_by_one.execute("SELECT k FROM much ORDER BY k").fetchmany(5) == [(0,), (1,), (2,), (3,), (4,)]


def test_the_same_column_may_come_twice(database: Database, tablespace: str) -> None:
    with connect(database, tablespace) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE pair (k int PRIMARY KEY, v int)")
        cursor.execute("INSERT INTO pair VALUES(1,2)")
        cursor.execute("SELECT a.v, b.v FROM pair a, pair b WHERE a.k = b.k")
        assert cursor.fetchall() == [(2, 2)]
        assert cursor.execute("SELECT k FROM pair WHERE k = 7").fetchall() == []
        assert [column[:2] for column in cursor.description or ()] == [("k", None)]


@pytest.fixture(scope="module")
def refusing(database: Database, tablespace: str) -> Iterator[dbapi.Connection]:
    """A connection to tables that refuse rows."""
    with connect(database, tablespace, autocommit=True) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE refused (k int PRIMARY KEY, v string NOT NULL, d double)")
        cursor.execute("CREATE TABLE child (k int PRIMARY KEY, p int, CONSTRAINT c FOREIGN KEY (p) REFERENCES refused (k))")
        cursor.execute("CREATE UNIQUE INDEX by_v ON refused(v)")
        cursor.execute("INSERT INTO refused(k, v) VALUES(1, 'x')")
        yield connection


@pytest.mark.parametrize(
    ("statement", "parameters", "error"),
    [
        ("INSERT INTO refused(k, v) VALUES(1, 'x')", (), dbapi.IntegrityError),
        ("INSERT INTO refused(k) VALUES(7)", (), dbapi.IntegrityError),
        ("INSERT INTO child(k, p) VALUES(1, 99)", (), dbapi.IntegrityError),
        ("INSERT INTO refused(k, v) VALUES(8, 'x')", (), dbapi.IntegrityError),
        ("INSERT INTO refused(k, v) VALUES(?, ?)", (9, "x" * (2 << 20)), dbapi.DataError),
        ("INSERT INTO refused(k, v, d) VALUES(9, 'y', ?)", ("a foreign key",), dbapi.DataError),
        ("SELECT CAST(v AS BOOLEAN) AS b FROM refused", (), dbapi.DataError),
        ("UPDATE refused SET d = ?", ("x\nherddb.model.NotLeaderException: y",), dbapi.DataError),
        ("SELEC 1", (), dbapi.ProgrammingError),
        ("SELECT FROM", (), dbapi.ProgrammingError),
        ("SELECT * FROM nowhere", (), dbapi.ProgrammingError),
        ("SELECT nothing FROM refused", (), dbapi.ProgrammingError),
        ("INSERT INTO nowhere VALUES(1)", (), dbapi.ProgrammingError),
        ("CREATE TABLE refused (k int PRIMARY KEY)", (), dbapi.ProgrammingError),
        ("DROP TABLE nowhere", (), dbapi.ProgrammingError),
        ("INSERT INTO refused(k, v) VALUES(?, ?)", (9,), dbapi.ProgrammingError),
        ("INSERT INTO refused(k, v) VALUES(?, ?)", (9, "y", "z"), dbapi.ProgrammingError),
        ("SELECT v || 'a' FROM refused", (), dbapi.NotSupportedError),
    ],
)
def test_a_refusal_is_the_exception_that_pep_249_has_for_it(
    refusing: dbapi.Connection, statement: str, parameters: Any, error: type[Exception]
) -> None:
    cursor = refusing.cursor()
    with pytest.raises(dbapi.Error) as refused:
        cursor.execute(statement, parameters)
    assert type(refused.value) is error, str(refused.value)
    assert cursor.execute("SELECT k FROM refused").fetchall() == [(1,)], "the connection goes on"


def test_what_is_rolled_back_is_gone_and_what_is_not_committed_nobody_else_sees(database: Database, tablespace: str) -> None:
    with connect(database, tablespace) as mine, connect(database, tablespace) as others:
        cursor = mine.cursor()
        cursor.execute("CREATE TABLE seen (k int PRIMARY KEY)")
        mine.commit()
        cursor.execute("INSERT INTO seen VALUES(1)")
        assert cursor.execute("SELECT k FROM seen").fetchall() == [(1,)]
        assert others.cursor().execute("SELECT k FROM seen").fetchall() == []
        mine.rollback()
        assert cursor.execute("SELECT k FROM seen").fetchall() == []


def test_a_read_locks_others_out_only_where_it_is_to_be_repeatable(database: Database, tablespace: str) -> None:
    with connect(database, tablespace) as reader, connect(database, tablespace, autocommit=True) as writer:
        writer.cursor().execute("CREATE TABLE locked (k int PRIMARY KEY, v int)")
        writer.cursor().execute("INSERT INTO locked VALUES(1, 1)")
        reader.cursor().execute("SELECT v FROM locked")
        writer.cursor().execute("UPDATE locked SET v=2")
        reader.isolation = dbapi.Isolation.REPEATABLE_READ
        reader.cursor().execute("SELECT v FROM locked WHERE k=1")
        with pytest.raises(dbapi.OperationalError):
            writer.cursor().execute("UPDATE locked SET v=3 WHERE k=1")
        reader.commit()
        assert writer.cursor().execute("UPDATE locked SET v=4 WHERE k=1").rowcount == 1


def test_a_read_for_update_locks_the_rows_that_nobody_has_fetched_too(database: Database, tablespace: str) -> None:
    with connect(database, tablespace) as reader, connect(database, tablespace, autocommit=True) as writer:
        writer.cursor().execute("CREATE TABLE reserved (k int PRIMARY KEY, v int)")
        writer.cursor().executemany("INSERT INTO reserved VALUES(?, 0)", [[key] for key in range(100)])
        fetched = {key for (key,) in reader.cursor().execute("SELECT k FROM reserved FOR UPDATE").fetchmany(32)}
        with pytest.raises(dbapi.OperationalError):
            writer.cursor().execute("UPDATE reserved SET v=1 WHERE k=?", [max(set(range(100)) - fetched)])


@pytest.mark.parametrize(("rows", "first"), [("VALUES ROW(1), ROW(100)", 1), ("VALUES 2, 100", 2), ("TABLE others", None)])
def test_of_several_rows_in_autocommit_the_first_is_there_though_a_later_one_waits_in_vain_for_its_lock(
    database: Database, tablespace: str, rows: str, first: int | None
) -> None:
    with connect(database, tablespace) as holder, connect(database, tablespace, autocommit=True) as writer:
        cursor = writer.cursor()
        for table in ("several", "others"):
            cursor.execute(f"CREATE TABLE IF NOT EXISTS {table} (k int PRIMARY KEY)")
        cursor.execute("UPSERT INTO others VALUES(100)")
        holder.cursor().execute("INSERT INTO several VALUES(100)")
        with pytest.raises(dbapi.OutcomeUnknown):
            cursor.execute(f"INSERT INTO several {rows}")
        found = cursor.execute("SELECT k FROM several WHERE k=?", [first]).fetchall() if first else []
        assert found == [(first,)] * bool(first)
        holder.rollback()


def test_the_server_returns_the_key_that_it_made(database: Database, tablespace: str) -> None:
    with connect(database, tablespace) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE counted (k long PRIMARY KEY AUTO_INCREMENT, v string)")
        cursor.returns_key = True
        keys = [cursor.execute("INSERT INTO counted(v) VALUES(?)", [text]).lastrowid for text in ("a", "b")]
        assert cursor.execute("SELECT k FROM counted ORDER BY k").fetchall() == [(key,) for key in keys]


def test_an_alter_table_commits_and_the_next_change_begins_anew(database: Database, tablespace: str) -> None:
    with connect(database, tablespace) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE altered (k int PRIMARY KEY)")
        cursor.execute("INSERT INTO altered VALUES(1)")
        cursor.execute("ALTER TABLE altered ADD COLUMN v int")
        cursor.execute("INSERT INTO altered VALUES(2, 2)")
        connection.rollback()
        assert cursor.execute("SELECT k, v FROM altered").fetchall() == [(1, None)]
        cursor.execute("INSERT INTO altered VALUES(3, 3)")
        cursor.execute(f"EXECUTE RENAMETABLE '{tablespace}','altered','renamed'")
        assert not connection.in_transaction
        connection.rollback()
        assert cursor.execute("SELECT k FROM renamed ORDER BY k").fetchall() == [(1,), (3,)]


def test_a_refused_alter_table_has_committed_what_was_before_it(database: Database, tablespace: str) -> None:
    with connect(database, tablespace) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE half_altered (k int PRIMARY KEY)")
        cursor.execute("INSERT INTO half_altered VALUES(1)")
        with pytest.raises(dbapi.OutcomeUnknown, match="an ALTER TABLE commits it"):
            cursor.execute("ALTER TABLE half_altered ADD COLUMN k int")
        connection.rollback()
        assert cursor.execute("SELECT k FROM half_altered").fetchall() == [(1,)]
        with pytest.raises(dbapi.DatabaseError) as refused:
            cursor.execute("ALTER TABLE half_altered ADD COLUMN k int")
        assert not isinstance(refused.value, dbapi.OperationalError), "nothing was open"


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_transaction_ends_though_rows_of_its_queries_were_not_fetched(database: Database, tablespace: str, end: str) -> None:
    with connect(database, tablespace) as connection:
        cursor = connection.cursor()
        cursor.execute(f"CREATE TABLE unread_{end} (k int PRIMARY KEY)")
        cursor.executemany(f"INSERT INTO unread_{end} VALUES(?)", ([number] for number in range(200)))
        assert len(cursor.execute(f"SELECT k FROM unread_{end}").fetchmany(3)) == 3
        getattr(connection, end)()
        with pytest.raises(dbapi.ProgrammingError, match="ended before all rows were fetched"):
            cursor.fetchall()


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT k FROM ended",
        "INSERT INTO ended VALUES(1)",
        "CREATE TABLE ended_too (k int PRIMARY KEY)",
        "ALTER TABLE ended ADD COLUMN v int",
        None,
    ],
)
def test_a_transaction_that_the_server_has_ended_is_told_as_one_to_repeat(
    database: Database, tablespace: str, statement: str | None
) -> None:
    with connect(database, tablespace) as connection, connect(database, tablespace) as other:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE IF NOT EXISTS ended (k int PRIMARY KEY)")
        connection.commit()
        cursor.execute("INSERT INTO ended VALUES(0)")
        other.ping()
        assert isinstance(connection._transaction, Transaction)
        assert other._current is not None
        other._current.rollback(connection._transaction.id)  # as the server does after a quarter of an hour
        with pytest.raises(dbapi.DatabaseError) as ended:
            connection.commit() if statement is None else cursor.execute(statement)
        assert type(ended.value) is dbapi.OperationalError, str(ended.value)
        connection.rollback()
        assert cursor.execute("SELECT k FROM ended").fetchall() == []


def test_a_commit_that_outlasts_its_client_has_ended_when_its_rows_are_looked_for(database: Database, tablespace: str) -> None:
    bookie = database.servers.processes["bookie-0"]
    resumed = threading.Timer(2, bookie.send_signal, [signal.SIGCONT])
    with connect(database, tablespace) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE late (k int PRIMARY KEY)")
        connection.commit()
        cursor.execute("INSERT INTO late VALUES(1)")
        assert connection._current is not None
        connection._current.timeout_seconds = 1  # of the COMMIT alone: all else may take as long as the machine lets it
        database.servers.pause("bookie-0")
        try:
            with pytest.raises(dbapi.OutcomeUnknown):
                connection.commit()
            resumed.start()
            connection.rollback()
            assert cursor.execute("SELECT k FROM late").fetchall() == [(1,)]
        finally:
            resumed.cancel()
            bookie.send_signal(signal.SIGCONT)


def test_after_the_leader_was_killed_in_a_transaction_none_of_it_is_there_and_the_connection_goes_on(
    database: Database, tablespace: str
) -> None:
    with connect(database, tablespace, failover_timeout=120) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE halves (k int PRIMARY KEY)")
        connection.commit()
        cursor.execute("INSERT INTO halves VALUES(1)")
        database.kill_leader(tablespace)
        with pytest.raises(dbapi.OperationalError) as lost:
            cursor.execute("INSERT INTO halves VALUES(2)")
        assert not isinstance(lost.value, dbapi.OutcomeUnknown)
        with pytest.raises(dbapi.OperationalError, match="nothing of it was committed"):
            connection.commit()
        connection.rollback()
        assert cursor.execute("SELECT k FROM halves").fetchall() == []
        cursor.execute("INSERT INTO halves VALUES(3)")
        connection.commit()
        assert cursor.execute("SELECT k FROM halves").fetchall() == [(3,)]


def test_with_writers_in_the_middle_of_statements_when_the_leader_is_killed_no_acknowledged_row_is_lost_and_none_comes_twice(
    database: Database, tablespace: str
) -> None:
    acknowledged: list[int] = []
    unknown: list[int] = []
    stop, under_way = threading.Event(), threading.Event()

    def write(first: int) -> None:
        with connect(database, tablespace, autocommit=True, failover_timeout=120) as connection:
            for number in range(first, first + 1_000_000):
                if stop.is_set():
                    return
                try:
                    connection.cursor().execute("INSERT INTO acknowledged VALUES(?, 1)", [number])
                    acknowledged.append(number)
                except dbapi.OutcomeUnknown:
                    unknown.append(number)
                if len(acknowledged) > 20:
                    under_way.set()

    with connect(database, tablespace, autocommit=True, failover_timeout=120) as connection:
        connection.cursor().execute("CREATE TABLE acknowledged (k int PRIMARY KEY, v int)")
        writers = [threading.Thread(target=write, args=(number * 1_000_000,)) for number in range(4)]
        for writer in writers:
            writer.start()
        assert under_way.wait(180)
        database.kill_leader(tablespace)
        before = len(acknowledged)
        wait_until("the writers to go on", lambda: len(acknowledged) >= before + 20, 180)
        stop.set()
        for writer in writers:
            writer.join(120)
        there = [row[0] for row in connection.cursor().execute("SELECT k FROM acknowledged")]
    assert set(acknowledged) <= set(there)
    assert set(there) <= set(acknowledged) | set(unknown)
    assert len(unknown) <= len(writers)


@pytest.fixture(scope="module")
def unsorted(database: Database, tablespace: str) -> Iterator[dbapi.Cursor]:
    """A table with a different row order by each of its columns."""
    with connect(database, tablespace) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE unsorted (k int PRIMARY KEY, a int, b int, s string)")
        cursor.executemany("INSERT INTO unsorted VALUES(?,?,?,?)", [(1, 1, 3, "c"), (2, 2, 1, "b"), (3, 1, 1, "a"), (4, 2, 3, "d")])
        connection.commit()
        yield cursor


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT * FROM unsorted ORDER BY s", [(3, 1, 1, "a"), (2, 2, 1, "b"), (1, 1, 3, "c"), (4, 2, 3, "d")]),
        ("SELECT k, a, b, s FROM unsorted ORDER BY s DESC", [(4, 2, 3, "d"), (1, 1, 3, "c"), (2, 2, 1, "b"), (3, 1, 1, "a")]),
        ("SELECT x.s FROM unsorted x, unsorted y WHERE x.k = y.k ORDER BY x.s", [("a",), ("b",), ("c",), ("d",)]),
        ("SELECT s FROM unsorted ORDER BY s", [("a",), ("b",), ("c",), ("d",)]),
        ("SELECT * FROM unsorted ORDER BY a, b", [(3, 1, 1, "a"), (1, 1, 3, "c"), (2, 2, 1, "b"), (4, 2, 3, "d")]),
        ("SELECT s FROM unsorted ORDER BY a DESC, b LIMIT 3", [("b",), ("d",), ("a",)]),
    ],
)
def test_queries_come_in_the_order_that_was_asked_for(unsorted: dbapi.Cursor, query: str, rows: list[Any]) -> None:
    assert unsorted.execute(query).fetchall() == rows


def test_of_cancelled_statements_only_what_autocommit_had_sent_is_committed(database: Database, tablespace: str) -> None:
    """The statements wait for a row that another transaction has locked; then it lets go."""

    async def cancelled(*, autocommit: bool) -> None:
        login = CREDENTIALS.username, CREDENTIALS.password, tablespace
        connection = await aio.connect(str(database.address), *login, autocommit=autocommit)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await connection.cursor().execute("UPDATE awaited SET v = v + 1 WHERE k = 1")
        with pytest.raises(dbapi.OutcomeUnknown):
            await connection.ping()

    def value_after(*, autocommit: bool) -> int:
        cursor.execute("UPDATE awaited SET v = v WHERE k = 1")
        asyncio.run(cancelled(autocommit=autocommit))
        holder.rollback()
        wait_until("the cancelled connection's thread ends", lambda: "herdkeeper-sql_0" not in names_of_threads(), 20)
        ((value,),) = cursor.execute("SELECT v FROM awaited WHERE k = 1").fetchall()
        assert isinstance(value, int)
        return value

    def names_of_threads() -> list[str]:
        return [thread.name for thread in threading.enumerate()]

    with connect(database, tablespace) as holder:
        cursor = holder.cursor()
        cursor.execute("CREATE TABLE awaited (k int PRIMARY KEY, v int)")
        cursor.execute("INSERT INTO awaited VALUES(1, 0)")
        holder.commit()
        assert value_after(autocommit=False) == 0
        # on a slow machine the lock may be refused before it is let go
        assert 1 in (value_after(autocommit=True) for _ in range(5))


def test_a_pool_of_sqlalchemy_without_an_engine_serves_threads_in_turn(database: Database, tablespace: str) -> None:
    pool = QueuePool(
        lambda: connect(database, tablespace),  # type: ignore[arg-type]  # SQLAlchemy's type also has what PEP 249 leaves to drivers
        pool_size=2,
        max_overflow=0,
        timeout=60,
    )

    def add(number: int) -> None:
        with closing(pool.connect()) as connection:
            connection.cursor().execute("INSERT INTO pooled VALUES(?)", [number])
            if number % 2:
                connection.commit()

    with connect(database, tablespace) as connection:
        connection.cursor().execute("CREATE TABLE pooled (k int PRIMARY KEY)")
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(add, range(40)))
    with closing(pool.connect()) as pooled:
        assert pooled.cursor().execute("SELECT k FROM pooled ORDER BY k").fetchall() == [(number,) for number in range(1, 40, 2)]
    pool.dispose()
