"""The dialect without a server: the SQL that it writes, what it refuses, and what a URL means. Its suite runs with a real one."""

from __future__ import annotations

import os
import runpy
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import (
    JSON,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    String,
    Table,
    Time,
    UniqueConstraint,
    column,
    create_engine,
    exc,
    insert,
    literal,
    make_url,
    select,
    text,
)
from sqlalchemy.dialects import registry
from sqlalchemy.schema import AddConstraint, CreateIndex, CreateTable, DropIndex, DropTable
from sqlalchemy.types import TypeEngine
from test_dbapi import follows, leads, once, played, told

from herdkeeper.sql import dbapi
from herdkeeper.sql.frames import MessageType
from herdkeeper.sql.sqlalchemy_dialect import HerdDBDialect
from herdkeeper.sql.sqlalchemy_dialect.types import Day, Moment, of_column

REPOSITORY = Path(__file__).resolve().parents[3]
DIALECT = HerdDBDialect()
registry.register("herddb.herdkeeper", "herdkeeper.sql.sqlalchemy_dialect", "HerdDBDialect")
PARENT = Table("parent", MetaData(), Column("id", Integer, primary_key=True), Column("value", String(20), nullable=False))


def written(element: Any) -> str:
    return " ".join(str(element.compile(dialect=DIALECT)).split())


def test_a_table_is_written_with_the_names_that_herddb_has() -> None:
    table = Table(
        "flights",
        PARENT.metadata,
        Column("id", Integer, primary_key=True),
        Column("price", Numeric(10, 0)),
        Column("picture", LargeBinary(100)),
        Column("departs", DateTime(timezone=True), nullable=False),
        Column("day", Date),
        Column("parent", ForeignKey("parent.id", name="of_parent", ondelete="CASCADE")),
        UniqueConstraint("price", "day"),
    )
    assert written(CreateTable(table)) == (
        "CREATE TABLE `flights` ( `id` INTEGER auto_increment, `price` double, `picture` BLOB, `departs` timestamp NOT NULL, "
        "`day` timestamp, `parent` INTEGER, PRIMARY KEY (`id`), UNIQUE KEY `flights_unique_price_day` (`price`, `day`), "
        "CONSTRAINT `of_parent` FOREIGN KEY(`parent`) REFERENCES `parent` (`id`) ON DELETE CASCADE )"
    )


def test_reserved_words_are_names_like_others() -> None:
    assert written(select(PARENT.c.value).where(PARENT.c.value == "x")) == (
        "SELECT `parent`.`value` FROM `parent` WHERE `parent`.`value` = ?"
    )


@pytest.mark.parametrize("name", ["t` WHERE 1=1 --", "`", "k`, `v"])
def test_no_name_ends_its_quotes(name: str) -> None:
    """Names may come from the columns of a file, or from a table that another SQL user has made."""
    table = Table(name, MetaData(), Column("k", Integer, primary_key=True))
    for statement in (
        CreateTable(table),
        table.delete(),
        select(PARENT.c.id.label(name)),
        select(PARENT.alias(name)),
        select(column(name)),
    ):
        with pytest.raises(exc.CompileError, match="which HerdDB's names can't have"):
            written(statement)


def test_a_name_keeps_all_other_signs() -> None:
    assert written(select(column("a\"b\\'c?"))) == "SELECT `a\"b\\'c?`"


def test_a_part_of_the_rows_is_asked_for_with_limit_before_offset() -> None:
    assert written(select(PARENT.c.id).limit(3).offset(2)).endswith("LIMIT ? OFFSET ?")
    assert written(select(PARENT.c.id).offset(2)).endswith("LIMIT 2147483647 OFFSET ?")


def test_a_lock_stands_at_the_end_where_herddb_looks_for_it() -> None:
    assert str(select(PARENT.c.id).with_for_update().compile(dialect=DIALECT)).endswith(" FOR UPDATE")


def test_indexes_have_names_of_the_tablespace() -> None:
    index = Index("by_value", PARENT.c.value, unique=True)
    assert written(CreateIndex(index)) == "CREATE UNIQUE INDEX `by_value` ON `parent` (`value`)"
    assert written(DropIndex(index)) == "DROP INDEX `by_value`"


@pytest.mark.parametrize(
    ("column", "words"),
    [(Column("c", Time), "no time of a day"), (Column("c", JSON), "no JSON"), (CheckConstraint("c > 1"), "no CHECK constraints")],
)
def test_what_herddb_does_not_have_is_refused_with_what_to_use_instead(column: Any, words: str) -> None:
    with pytest.raises(exc.CompileError, match=words):
        written(CreateTable(Table("t", MetaData(), Column("k", Integer, primary_key=True), column)))


@pytest.mark.parametrize("default", ["it's", "'", literal("it's")])
def test_a_default_that_herddb_would_store_as_another_text_is_refused(default: Any) -> None:
    with pytest.raises(exc.CompileError, match="twice: use default="):
        written(CreateTable(Table("t", MetaData(), Column("k", String, server_default=default, primary_key=True))))
    for kept in ("", "a\\b", text("7"), text("'as it''s reflected'")):
        assert "DEFAULT" in written(CreateTable(Table("t", MetaData(), Column("k", String, server_default=kept, primary_key=True))))


def test_check_constraints_are_left_out_on_demand() -> None:
    table = Table("t", MetaData(), Column("k", Integer, CheckConstraint("k > 0"), primary_key=True), CheckConstraint("k < 9"))
    text = str(CreateTable(table).compile(dialect=HerdDBDialect(leave_out_checks=True)))
    assert " ".join(text.split()) == "CREATE TABLE `t` ( `k` INTEGER auto_increment, PRIMARY KEY (`k`) )"


def test_a_foreign_key_has_a_name_since_herddb_closes_the_connection_without() -> None:
    table = Table("t", PARENT.metadata, Column("k", Integer, primary_key=True), Column("p", ForeignKey("parent.id")))
    assert "CONSTRAINT `t_fk_p` FOREIGN KEY(`p`) REFERENCES `parent` (`id`)" in written(CreateTable(table))


def test_a_foreign_key_of_a_table_to_itself_is_made_behind_the_table() -> None:
    refused = Table("t", MetaData(), Column("k", Integer, primary_key=True), Column("p", ForeignKey("t.k")))
    with pytest.raises(exc.CompileError, match="set use_alter=True"):
        written(CreateTable(refused))
    later = Table("t", MetaData(), Column("k", Integer, primary_key=True), Column("p", ForeignKey("t.k", name="up", use_alter=True)))
    (constraint,) = later.foreign_key_constraints
    assert "FOREIGN" not in written(CreateTable(later))
    assert written(AddConstraint(constraint)) == "ALTER TABLE `t` ADD CONSTRAINT `up` FOREIGN KEY(`p`) REFERENCES `t` (`k`)"


def test_a_url_names_one_host_or_all_sql_nodes(tmp_path: Path) -> None:
    authorities = tmp_path / "ca.crt"
    authorities.write_text("PEM")
    one = make_url(f"herddb+herdkeeper://alice:wo%40nder@flights-leader:7001/flights?ca_file={authorities}&timeout=2.5&autocommit=true")
    assert DIALECT.create_connect_args(one) == (
        ("flights-leader", "alice", "wo@nder", "flights"),
        {"port": 7001, "timeout": 2.5, "autocommit": True, "authorities": "PEM"},
    )
    several = make_url("herddb+herdkeeper://alice:wonder@/flights?host=db-0:7000&host=db-1:7000")
    assert DIALECT.create_connect_args(several) == (("db-0:7000,db-1:7000", "alice", "wonder", "flights"), {})


@pytest.mark.parametrize("option", ["tls", "autocommit"])
def test_no_option_of_a_url_is_off_because_it_is_misspelt(option: str) -> None:
    """The password would be sent in plain text, or nothing be committed."""
    for word, is_on in (("on", True), ("True", True), ("off", False)):
        assert DIALECT.create_connect_args(make_url(f"herddb+herdkeeper://h/flights?{option}={word}"))[1] == {option: is_on}
    with pytest.raises(exc.ArgumentError, match="'enabled' where it must be one of true, false"):
        DIALECT.create_connect_args(make_url(f"herddb+herdkeeper://h/flights?{option}=enabled"))


def processed(kind: TypeEngine[Any], value: Any) -> tuple[Any, Any]:
    """What is sent, and what comes back of that."""
    bind, result = kind.bind_processor(DIALECT), kind.result_processor(DIALECT, None)
    sent = bind(value) if bind else value
    return sent, result(sent) if result else sent


def test_a_moment_without_a_time_zone_is_stored_as_utc_and_comes_back_without() -> None:
    naive = datetime(2026, 1, 2, 3)  # noqa: DTZ001 - that is what is shown
    aware = naive.replace(tzinfo=UTC)
    assert processed(Moment(), naive) == (aware, naive)
    assert processed(Moment(timezone=True), aware) == (aware, aware)
    assert processed(Moment(), None) == (None, None)


def test_a_moment_in_the_text_of_a_statement_has_no_milliseconds_which_herddb_would_leave_out() -> None:
    """`DELETE … WHERE at = …` would delete the row of another moment."""
    literal = Moment().literal_processor(DIALECT)
    assert literal(datetime(2026, 1, 2, 3, 4, 5)) == "TIMESTAMP '2026-01-02 03:04:05'"  # noqa: DTZ001 - it has none
    with pytest.raises(exc.CompileError, match="use a parameter"):
        literal(datetime(2026, 1, 2, 3, 4, 5, 6000, tzinfo=UTC))


def test_a_day_comes_back_as_a_day() -> None:
    assert processed(Day(), None) == (None, None)
    back = Day().result_processor(DIALECT, None)
    assert back(datetime(2026, 1, 2, tzinfo=UTC)) == date(2026, 1, 2)
    sent = Day().bind_processor(DIALECT)
    assert sent(datetime(2026, 1, 2, 3)) == date(2026, 1, 2)  # noqa: DTZ001 - as SQLAlchemy's Date takes it


@pytest.mark.parametrize(
    ("name", "kind"), [("string not null", "VARCHAR"), ("long", "BIGINT"), ("bytearray", "BLOB"), ("floatarray", "NULL")]
)
def test_a_column_of_herddb_is_a_type_of_sqlalchemy(name: str, kind: str) -> None:
    assert str(of_column(name)) == kind


def test_isolation_levels_are_the_connections() -> None:
    class Played:
        autocommit = False
        isolation = None

    connection = Played()
    for level in ("AUTOCOMMIT", "REPEATABLE READ", "READ COMMITTED"):
        DIALECT.set_isolation_level(connection, level)
        assert DIALECT.get_isolation_level(connection) == level


def test_an_outcome_that_nobody_knows_is_known_behind_sqlalchemys_exception() -> None:
    with played(lambda kind, body: None if told(kind, body) == "COMMIT" else leads(kind, body)) as node:
        engine = create_engine(f"herddb+herdkeeper://alice:wonder@{node.address}/demo?failover_timeout=120")
        connection = engine.connect()
        connection.execute(insert(PARENT), {"id": 1, "value": "x"})
        with pytest.raises(exc.OperationalError) as unknown:
            connection.commit()
        assert isinstance(unknown.value.orig, dbapi.OutcomeUnknown)
        assert not unknown.value.connection_invalidated
        connection.close()
        engine.dispose()
    assert node.kinds() == ["BEGIN", "EXECUTE_STATEMENT", "COMMIT", "ROLLBACK"], "it is never repeated, and has ended with the engine"


def test_the_rows_of_a_commit_without_an_answer_are_not_looked_for_before_it_has_ended_by_any_connection_of_the_pool() -> None:
    """They would come afterwards, and those of who repeated it meanwhile, too."""
    with played(leads) as node:
        engine = create_engine(f"herddb+herdkeeper://alice:wonder@{node.address}/demo?failover_timeout=120", pool_size=2)
        with engine.connect() as connection, engine.connect() as other:
            connection.execute(insert(PARENT), {"id": 1, "value": "x"})
            node.script = once(None, MessageType.TRANSACTION_COMMAND)
            with pytest.raises(exc.OperationalError):
                connection.commit()
            other.execute(select(PARENT.c.id))
        engine.dispose()
    assert node.kinds() == ["BEGIN", "EXECUTE_STATEMENT", "COMMIT", "ROLLBACK", "OPEN_SCANNER"]


def test_who_gets_a_connection_of_a_pool_meets_no_failure_of_somebody_else() -> None:
    with played(leads) as node:
        engine = create_engine(f"herddb+herdkeeper://alice:wonder@{node.address}/demo?failover_timeout=120", pool_size=1)
        with engine.connect() as connection:
            node.script = once(None, MessageType.EXECUTE_STATEMENT)
            with pytest.raises(exc.OperationalError):
                connection.execute(insert(PARENT), {"id": 1, "value": "x"})
            with pytest.raises(exc.OperationalError):
                connection.commit()
        with engine.begin() as connection:
            connection.execute(insert(PARENT), {"id": 2, "value": "y"})
        engine.dispose()


def test_a_child_process_that_asks_its_connections_gets_others_than_its_parent() -> None:
    with played(leads) as node:
        url = f"herddb+herdkeeper://alice:wonder@{node.address}/demo?failover_timeout=120"
        engine = create_engine(url, pool_pre_ping=True, pool_size=1)
        with engine.connect() as connection:
            connection.execute(select(PARENT.c.id))
        child = os.fork()
        if not child:
            failed = 1
            try:
                with engine.connect() as connection:
                    connection.execute(select(PARENT.c.id))
                failed = 0
            finally:
                os._exit(failed)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        with engine.connect() as connection:
            connection.execute(select(PARENT.c.id))
        engine.dispose()
        assert [kind for kind, _ in node.requests].count(MessageType.SASL_REQUEST) == 2


def test_a_pool_asks_who_leads_and_goes_on_with_the_next_one() -> None:
    with played(leads) as old, played(leads) as new:
        hosts = f"host={old.address}&host={new.address}"
        engine = create_engine(f"herddb+herdkeeper://alice:wonder@/demo?{hosts}&failover_timeout=120", pool_pre_ping=True, pool_size=1)
        with engine.begin() as connection:
            connection.execute(insert(PARENT), {"id": 1, "value": "x"})
        old.script = follows
        with engine.begin() as connection:
            connection.execute(insert(PARENT), {"id": 2, "value": "y"})
        engine.dispose()
    assert (old.kinds(), new.kinds()) == (["BEGIN", "EXECUTE_STATEMENT", "COMMIT"], ["BEGIN", "EXECUTE_STATEMENT", "COMMIT"])


def test_each_table_is_dropped_in_a_transaction_of_its_own() -> None:
    with played(leads) as node:
        engine = create_engine(f"herddb+herdkeeper://alice:wonder@{node.address}/demo?failover_timeout=120")
        with engine.begin() as connection:
            connection.execute(insert(PARENT), {"id": 1, "value": "x"})
            connection.execute(DropTable(PARENT))
            connection.execute(insert(PARENT), {"id": 1, "value": "x"})
        engine.dispose()
    assert node.kinds() == ["BEGIN", "EXECUTE_STATEMENT", "COMMIT"] * 3


class Asked(Exception):  # noqa: N818 - it ends what was asked, and is no error
    """With what an example connects."""


def asked(*arguments: str, **options: Any) -> None:
    raise Asked(arguments, options)


@pytest.mark.parametrize(
    ("program", "opened"),
    [("connect_dbapi", lambda example: example["connect"]()), ("connect_sqlalchemy", lambda example: example["engine"]().connect())],
)
def test_an_example_verifies_the_leader_by_the_authorities_that_it_is_given(
    program: str, opened: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(dbapi, "connect", asked)
    host, authorities = "flights-leader.demo.svc", tmp_path / "ca.crt"
    authorities.write_text("those of the stack")
    secret = {"host": host, "port": "7000", "user": "alice", "password": "wonder", "database": "flights", "CA_FILE": str(authorities)}
    for key, value in secret.items():
        monkeypatch.setenv(f"HERDDB_{key}", value)
    with pytest.raises(Asked) as connected:
        opened(runpy.run_path(str(REPOSITORY / f"examples/{program}.py")))
    arguments, options = connected.value.args
    assert arguments == (host, "alice", "wonder", "flights")
    assert options == {"port": 7000, "authorities": "those of the stack"}

    authorities.unlink()
    with pytest.raises(FileNotFoundError):  # and not in plain text
        opened(runpy.run_path(str(REPOSITORY / f"examples/{program}.py")))


def test_the_page_lists_what_the_suite_leaves_out() -> None:
    lacking = runpy.run_path(str(REPOSITORY / "sql/tests/sqlalchemy_suite/lacking.py"))
    page = (REPOSITORY / "docs/connect.md").read_text().partition("\n## What HerdDB 0.29 lacks\n")[2]
    listed = [line.removeprefix("- ") for line in page.splitlines() if line.startswith("- ")]
    assert listed == list(dict.fromkeys([*lacking["LACKING"], *lacking["LEFT_OUT"]]))
