"""`kubectl herdkeeper sql`: how a text is cut into statements, what is written of their results, and how the leader is reached."""

from __future__ import annotations

import base64
import contextlib
import csv
import datetime
import io
import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from played_cluster import PlayedCluster, called, resource, stack

from herdkeeper.plugin import database as database_module
from herdkeeper.plugin.api_server import stream_refused
from herdkeeper.plugin.cluster import ClusterError, ForbiddenError
from herdkeeper.plugin.command import FINE, INTERRUPTED, WRONG, BadInputError
from herdkeeper.plugin.database import ForwardedLeader, open_database
from herdkeeper.plugin.forward import listening
from herdkeeper.plugin.sql_shell import completer, names_of, statements
from herdkeeper.plugin.sql_table import as_json, csv_table, error_text, text_table
from herdkeeper.sql.connection import Connection
from herdkeeper.sql.errors import LeaderNotFound, NotLeader, ServerError
from herdkeeper.sql.statements import all_statements, has_rows, split


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1", ("SELECT 1",)),
        ("SELECT 1; SELECT 2;", ("SELECT 1", "SELECT 2")),
        ("INSERT INTO t VALUES('a;b''c;')", ("INSERT INTO t VALUES('a;b''c;')",)),
        ('SELECT "a;b" FROM t; SELECT 2', ('SELECT "a;b" FROM t', "SELECT 2")),
        ("SELECT 1 -- one; two\n; /* three; */ SELECT 4-1/1", ("SELECT 1", "SELECT 4-1/1")),
        ("SELECT '--no comment'; ", ("SELECT '--no comment'",)),
        (";;  ;", ()),
    ],
)
def test_a_text_is_cut_where_a_statement_ends_and_nowhere_else(text: str, expected: tuple[str, ...]) -> None:
    assert all_statements(text) == expected


@given(st.lists(st.sampled_from(["SELECT 1", "'a;b'", '"c;d"', "x = 'it''s;'", "1-2"]), min_size=1, max_size=5))
def test_statements_that_are_joined_are_cut_again(parts: list[str]) -> None:
    assert split(";".join(parts) + ";").statements == tuple(parts)


def test_what_is_not_ended_yet_waits_for_the_next_line() -> None:
    assert split("SELECT 1; SELECT '").rest == "SELECT '"
    lines = iter(["SELECT", "1; SELECT 2;", "SELECT 3", "\\q"])
    assert list(statements(lambda _: next(lines), "flights"))[:2] == ["SELECT\n1", "SELECT 2"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/* not now:\nDELETE FROM a;\nDELETE FROM b;\n*/\nSELECT 1;", ["SELECT 1"]),
        ("/* c */ SELECT 1 -- one;\n;", ["SELECT 1"]),
        ("INSERT INTO t VALUES ('a -- b;  \nc');", ["INSERT INTO t VALUES ('a -- b;  \nc')"]),
        ("INSERT INTO t VALUES ('a /* b\n*/');", ["INSERT INTO t VALUES ('a /* b\n*/')"]),
    ],
)
def test_a_text_or_a_comment_of_several_lines_is_one_as_in_a_file(text: str, expected: list[str]) -> None:
    lines = iter([*text.split("\n"), "\\q"])
    entered = list(statements(lambda _: next(lines), "flights"))
    assert entered == expected == list(all_statements(text))


def test_a_comment_ends_where_the_server_ends_it() -> None:
    assert all_statements("DELETE FROM a -- not all\r WHERE n = 1") == ("DELETE FROM a  \r WHERE n = 1",)
    assert all_statements("SELECT n FROM t // old; DELETE FROM b;\nWHERE n = 1") == ("SELECT n FROM t  \nWHERE n = 1",)
    assert all_statements("SELECT 'https://a; b' // c") == ("SELECT 'https://a; b'",)


@pytest.mark.parametrize("text", ["/* DELETE FROM a; DELETE FROM b;", "INSERT INTO t VALUES ('a; DELETE FROM b;"])
def test_nothing_is_a_statement_of_its_own_behind_what_has_no_end(text: str) -> None:
    assert all_statements(text) == (text,)


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("select 1", True),
        ("(SELECT 1)", True),
        ("-- all of them\nSELECT 1", True),
        ("/* SELECT */ UPDATE t SET v=1", False),
        ("WITH a AS (SELECT 1) SELECT * FROM a", True),
        ("EXPLAIN SELECT 1", True),
        ("INSERT INTO t SELECT 1", False),
        ("SELECTED", False),
        ("", False),
    ],
)
def test_only_a_query_answers_with_rows(statement: str, rows: bool) -> None:
    assert has_rows(statement) is rows


ROWS = [{"id": 1, "name": 'a,"b"', "at": datetime.datetime(2026, 11, 21, tzinfo=datetime.UTC)}, {"id": 22, "name": None, "at": None}]


def test_rows_are_a_table_for_people() -> None:
    assert text_table(ROWS).splitlines() == [
        "id  name   at",
        "--  -----  -------------------------",
        '1   a,"b"  2026-11-21T00:00:00+00:00',
        "22  NULL   NULL",
    ]
    assert text_table([]) == "(no rows)"
    assert text_table([{"name": "plan", "value": "one\n  two"}, {"name": "", "value": "x"}]).splitlines() == [
        "name  value",
        "----  -----",
        "plan  one",
        "        two",
        "      x",
    ]


def test_rows_are_csv_for_programs() -> None:
    assert csv_table(ROWS).splitlines() == ["id,name,at", '1,"a,""b""",2026-11-21T00:00:00+00:00', "22,,"]
    assert csv_table([]) == ""


@given(st.lists(st.text('\r\n,"a '), min_size=1))
def test_each_row_of_csv_is_read_as_one_with_the_same_text(texts: list[str]) -> None:
    """Programs take a carriage return for the end of a row, too, unless it is quoted."""
    written = csv_table([{"id": index, "name": text} for index, text in enumerate(texts)])
    assert list(csv.reader(io.StringIO(written, newline=""))) == [["id", "name"], *([str(index), text] for index, text in enumerate(texts))]


def test_numbers_that_json_does_not_have_are_text_there() -> None:
    values = [1.5, float("nan"), float("inf"), 2**53 + 1, True, None]
    assert json.loads(json.dumps([as_json(value) for value in values], allow_nan=False)) == [1.5, "nan", "inf", 2**53 + 1, True, None]


def test_a_moment_keeps_its_milliseconds() -> None:
    at = datetime.datetime(2026, 11, 21, 8, 0, 5, 250_000, tzinfo=datetime.UTC)
    assert (csv_table([{"at": at}]), as_json(at)) == ("at\n2026-11-21T08:00:05.250+00:00", "2026-11-21T08:00:05.250+00:00")


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("herddb.model.StatementExecutionException: Object 'T' not found", "Object 'T' not found"),
        ("java.sql.SQLException: herddb.model.DuplicatePrimaryKeyException: key 1 already exists", "key 1 already exists"),
        ("java.lang.NullPointerException", "java.lang.NullPointerException"),
        ("no leader of the tablespace 'flights' within 30 s", "no leader of the tablespace 'flights' within 30 s"),
    ],
)
def test_an_error_is_told_without_the_names_of_java_s_classes(said: str, shown: str) -> None:
    assert error_text(ServerError(said)) == shown


class Terminal(io.StringIO):
    """What a person looks at."""

    def isatty(self) -> bool:
        return True


class PlayedConnection:
    """A table of one row, `m` Java's last moment; what is refused is refused."""

    closed = False

    def __enter__(self) -> PlayedConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True

    def execute(self, sql: str) -> int:
        if "bread" in sql:
            raise ServerError("no such table: bread\n\tat Frame")
        return 3

    def close(self) -> None:
        self.closed = True

    def query(self, sql: str) -> list[dict]:
        return []

    def stream(self, sql: str, *, moment: Callable[[int], object]) -> Iterator[dict]:
        yield {"m": moment(2**63 - 1)} if "SELECT m" in sql else {"n": 7}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> PlayedCluster:
    """A stack with a connection Secret, whose leader answers."""
    monkeypatch.setattr(database_module, "leader_connection", lambda *_: PlayedConnection())
    return PlayedCluster([*stack(), secret()])


def secret(**more: str) -> dict:
    entries = {"user": "admin", "password": "hush", "database": "flights", **more}
    data = {name: base64.b64encode(value.encode()).decode() for name, value in entries.items()}
    return {"kind": "Secret", "metadata": {"name": "flights-connection"}, "data": data}


def test_statements_are_run_in_order_and_their_results_written(cluster: PlayedCluster) -> None:
    answer, written = called(cluster, "sql", "flights", "-c", "INSERT INTO t VALUES(1); SELECT n FROM t")
    assert written == ["3 changed", "n\n-\n7"]
    assert answer.exit_code == FINE


def test_a_timestamp_beyond_those_of_python_is_shown(cluster: PlayedCluster) -> None:
    answer, written = called(cluster, "sql", "flights", "-c", "SELECT m FROM t")
    assert written == ["m\n----------------------\n9223372036854775807 ms"]
    assert answer.document == {"results": [{"rows": [{"m": "9223372036854775807 ms"}]}]}


def test_a_definition_changes_no_rows(cluster: PlayedCluster) -> None:
    answer, written = called(cluster, "sql", "flights", "-c", "CREATE TABLE t (k int PRIMARY KEY)")
    assert written == ["done"]
    assert answer.document == {"results": [{"changed": 0}]}


@pytest.mark.parametrize(
    "statement",
    [
        "BEGIN TRANSACTION 'flights'",
        "commit transaction 'flights',7",
        "ROLLBACK TRANSACTION 'flights', 7",
        "EXECUTE BEGINTRANSACTION 'flights'",
    ],
)
def test_a_transaction_is_refused_since_no_later_statement_would_be_in_it(
    cluster: PlayedCluster, statement: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(cluster, "sql", "flights", "-c", statement)[0].exit_code == WRONG
    assert "there are no transactions here" in capsys.readouterr().err


def test_csv_has_rows_only_and_a_document_has_all_results(cluster: PlayedCluster) -> None:
    assert called(cluster, "sql", "-c", "DELETE FROM t; SELECT n FROM t", "--form", "csv")[1] == ["n\n7"]
    answer, written = called(cluster, "sql", "-c", "DELETE FROM t; SELECT n FROM t", "-o", "json")
    assert written == []
    assert answer.document == {"results": [{"changed": 3}, {"rows": [{"n": 7}]}]}


def test_the_first_statement_that_is_refused_ends_it(cluster: PlayedCluster, capsys: pytest.CaptureFixture[str]) -> None:
    answer, written = called(cluster, "sql", "-c", "SELECT n FROM t; DELETE FROM bread; DELETE FROM t")
    assert (answer.exit_code, written) == (WRONG, ["n\n-\n7"])
    assert capsys.readouterr().err == "error: statement 2 of 3: no such table: bread\n"


def test_an_interrupt_tells_which_statement_may_have_been_carried_out(
    cluster: PlayedCluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(PlayedConnection, "execute", interrupted)
    answer, written = called(cluster, "sql", "-c", "SELECT n FROM t; DELETE FROM t; DELETE FROM u")
    told = "statement 2 of 3: interrupted: whether the statement was carried out is unknown"
    assert (answer.exit_code, written, capsys.readouterr().err) == (INTERRUPTED, ["n\n-\n7"], f"error: {told}\n")
    assert answer.document == {"results": [{"rows": [{"n": 7}]}], "error": told}
    monkeypatch.setattr(database_module, "leader_connection", interrupted)
    assert called(cluster, "sql", "-c", "DELETE FROM t")[0].document == {"results": [], "error": "no statement was run: interrupted"}


def test_a_statement_that_is_no_text_is_refused_as_any_other(cluster: PlayedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python gives bytes of the command line that are no UTF-8 as lone surrogates."""
    monkeypatch.setattr(PlayedConnection, "execute", lambda _, sql: len(sql.encode()))
    answer, _ = called(cluster, "sql", "-c", "DELETE FROM u; DELETE FROM t WHERE k='\udcff'")
    assert answer.exit_code == WRONG
    assert answer.document["results"] == [{"changed": 13}]
    assert answer.document["error"].startswith("statement 2 of 2: 'utf-8' codec can't encode character '\\udcff'")


def test_a_carriage_return_in_a_file_is_part_of_its_text(cluster: PlayedCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sent: list[str] = []
    monkeypatch.setattr(PlayedConnection, "execute", lambda _, sql: sent.append(sql) or 1)
    file = tmp_path / "file.sql"
    file.write_bytes(b"INSERT INTO t VALUES('a\r\nb');\r\n")
    called(cluster, "sql", "-f", str(file))
    with file.open(encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        called(cluster, "sql", "-f", "-")
    assert sent == ["INSERT INTO t VALUES('a\r\nb')"] * 2


def test_without_a_connection_no_statement_is_said_to_be_refused(
    cluster: PlayedCluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> PlayedConnection:
        raise LeaderNotFound("nobody leads it now")

    monkeypatch.setattr(database_module, "leader_connection", refuse)
    answer, _ = called(cluster, "sql", "-c", "DELETE FROM t; SELECT n FROM t")
    assert capsys.readouterr().err == "error: no statement was run: nobody leads it now\n"
    assert answer.document == {"results": [], "error": "no statement was run: nobody leads it now"}


def test_a_row_in_a_refusal_gives_a_terminal_no_command(cluster: PlayedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: PlayedConnection, sql: str) -> int:
        raise ServerError(f"{sql}: there is a row \x1b[2Jwith this key")

    terminal = Terminal()
    monkeypatch.setattr(PlayedConnection, "execute", refuse)
    monkeypatch.setattr(sys, "stderr", terminal)
    called(cluster, "sql", "-c", "DELETE FROM t")
    assert terminal.getvalue() == "error: statement 1 of 1: DELETE FROM t: there is a row \\x1b[2Jwith this key\n"


def test_statements_may_come_from_standard_input(cluster: PlayedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT n FROM t"))
    assert called(cluster, "sql")[1] == ["n\n-\n7"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-c", "SELECT 1", "-f", "x"), "--command and --filename: name one of them"),
        (("-c", " ; "), "there is no statement"),
        (("flightz", "-c", "SELECT 1"), "TABLESPACE flightz: no Tablespace of that name exists"),
    ],
)
def test_bad_input_is_named_with_the_fix(cluster: PlayedCluster, words: tuple[str, ...], message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        called(cluster, "sql", *words)


def test_a_tablespace_is_named_where_there_are_several(cluster: PlayedCluster) -> None:
    cluster.documents.append(resource("Tablespace", "orders"))
    with pytest.raises(BadInputError, match="TABLESPACE is not given, and there are flights, orders: name one"):
        called(cluster, "sql", "-c", "SELECT 1")


@pytest.fixture
def shell(cluster: PlayedCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., list[str]]:
    """Runs a shell in which these lines are written; what it showed, after its first line."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "stdin", Terminal())

    def run(*lines: str, options: tuple[str, ...] = ()) -> list[str]:
        remaining = iter(lines)
        monkeypatch.setattr("builtins.input", lambda _: next(remaining, "\\q"))
        answer, written = called(cluster, "sql", *options)
        assert answer.exit_code == FINE
        return written[1:]

    return run


@pytest.mark.parametrize("error", [ServerError("no such table"), ClusterError("the API server does not answer")])
def test_in_a_shell_an_error_ends_nothing(shell: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def refuse(_: PlayedConnection, sql: str) -> int:
        raise error

    monkeypatch.setattr(PlayedConnection, "execute", refuse)
    assert shell("DELETE FROM bread;", "SELECT n FROM t;") == [f"error: {error}", "n\n-\n7"]


def test_in_a_shell_an_interrupted_statement_ends_nothing_and_its_late_answer_is_not_taken_for_another_one(
    shell: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    connections: list[PlayedConnection] = []

    def interrupted(connection: PlayedConnection, sql: str) -> int:
        connections.append(connection)
        raise KeyboardInterrupt

    monkeypatch.setattr(PlayedConnection, "execute", interrupted)
    said = "interrupted: whether the statement was carried out is unknown"
    assert shell("DELETE FROM t;", "DELETE FROM t;", "SELECT n FROM t;") == [said, said, "n\n-\n7"]
    first, second = connections
    assert (first is not second, first.closed) == (True, True)


def test_in_a_shell_the_next_statement_asks_who_leads_after_one_whose_node_does_not(
    shell: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    connections: list[PlayedConnection] = []

    def refuse(connection: PlayedConnection, sql: str) -> int:
        connections.append(connection)
        raise NotLeader("node db-herddb-0 is not leader")

    monkeypatch.setattr(PlayedConnection, "execute", refuse)
    shell("DELETE FROM t;", "DELETE FROM t;")
    assert connections[0] is not connections[1]


def test_a_shell_has_no_documents(shell: Callable[..., list[str]]) -> None:
    with pytest.raises(BadInputError, match="--output json: a shell shows text"):
        shell("SELECT n FROM t;", options=("-o", "json"))


def test_the_mark_that_editors_put_before_a_text_is_none_of_its_first_statement(cluster: PlayedCluster, tmp_path: Path) -> None:
    (tmp_path / "file.sql").write_text("\ufeffSELECT n FROM t", encoding="utf-8")
    assert called(cluster, "sql", "-f", str(tmp_path / "file.sql"))[1] == ["n\n-\n7"]


def test_tab_completes_words_and_names() -> None:
    complete = completer(("flights", "flag"))
    assert [complete("fl", index) for index in range(3)] == ["flag", "flights", None]
    assert complete("sel", 0) == "SELECT"


def test_tab_writes_no_commands_of_a_name_to_the_terminal() -> None:
    """Another SQL user may have made such a table."""
    rows = [{"name": "flights"}, {"name": "fl\x1b[2j"}, {"name": "fl\x9b2j"}, {"name": "fl; DROP TABLE flights;"}]
    connection = cast(Connection, SimpleNamespace(query=lambda sql: rows))
    assert names_of(connection) == ("flights",)


class ForwardingCluster(PlayedCluster):
    """Forwards to a port that it notes."""

    @contextlib.contextmanager
    def forward(self, pod: str, port: int) -> Iterator[int]:
        self.texts[(pod, str(port))] = []
        yield 4711


def leader_of(cluster: PlayedCluster, authorities: str | None):
    with contextlib.ExitStack() as ports:
        return ForwardedLeader(cluster, "flights", authorities, ports).leader("flights")


def test_the_leader_is_whom_the_status_names_and_its_certificate_is_asked_for_its_own_name() -> None:
    cluster = ForwardingCluster(stack())
    plain = leader_of(cluster, None)
    assert (plain.host, plain.port, plain.encryption) == ("127.0.0.1", 4711, None)
    assert list(cluster.texts) == [("db-herddb-0", "7000")]
    encrypted = leader_of(cluster, "PEM")
    assert encrypted.encryption is not None
    assert (encrypted.encryption.server_name, encrypted.encryption.authorities) == ("db-herddb-0.db-herddb-nodes.demo.svc", "PEM")


def test_a_tablespace_without_a_leader_is_asked_again_since_it_may_have_one_soon() -> None:
    with pytest.raises(LeaderNotFound, match="nobody leads it now"):
        leader_of(ForwardingCluster([resource("Tablespace", "flights", {"herdDBRef": {"name": "db"}})]), None)


def test_without_a_secret_it_is_said_why() -> None:
    with pytest.raises(ClusterError, match="has no connection Secret"), open_database(PlayedCluster(stack()), "flights"):
        pass
    other = {"kind": "Secret", "metadata": {"name": "flights-connection"}, "data": {"user": "YQ=="}}
    with (
        pytest.raises(ClusterError, match="the Secret flights-connection lacks password, database, so it is not the operator's"),
        open_database(PlayedCluster([*stack(), other]), "flights"),
    ):
        pass


def answering(far: socket.socket) -> None:
    """Answers each word with itself in capitals, until the other side ends."""
    with far:
        while data := far.recv(100):
            far.sendall(data.upper())


def test_a_forwarded_port_carries_bytes_both_ways_for_each_connection_and_is_gone_afterwards() -> None:
    def dial() -> socket.socket:
        near, far = socket.socketpair()
        threading.Thread(target=answering, args=(far,), daemon=True).start()
        return near

    host, wait = "127.0.0.1", 120
    with (
        listening(dial) as port,
        socket.create_connection((host, port), wait) as one,
        socket.create_connection((host, port), wait) as two,
    ):
        two.sendall(b"two")
        one.sendall(b"one")
        assert (one.recv(3), two.recv(3)) == (b"ONE", b"TWO")
        one.shutdown(socket.SHUT_WR)
        assert one.recv(3) == b""
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((host, port), wait)


def test_a_pod_that_can_not_be_reached_is_told_at_once() -> None:
    def dial() -> socket.socket:
        raise ClusterError("no such pod")

    with pytest.raises(ClusterError, match="no such pod"), listening(dial):
        pass


def test_who_connects_to_a_pod_that_went_meanwhile_sees_the_connection_end() -> None:
    pods = [socket.socketpair()]

    def dial() -> socket.socket:
        return pods.pop()[0]

    with (
        listening(dial) as port,
        socket.create_connection(("127.0.0.1", port), 10),
        socket.create_connection(("127.0.0.1", port), 10) as connection,
    ):
        assert connection.recv(1) == b""


def handshake(status: str, message: str) -> str:
    """What the WebSocket client says of an answer."""
    return f"Handshake status {status} -+-+- {{'content-type': 'application/json'}} -+-+- {json.dumps({'message': message}).encode()!r}"


def test_why_no_port_is_forwarded_is_told_in_the_api_servers_words() -> None:
    refused = stream_refused(
        "no port of the pod db-herddb-0 can be forwarded", handshake("403 Forbidden", 'User "eve" cannot create pods/portforward')
    )
    assert isinstance(refused, ForbiddenError)
    assert str(refused) == 'no port of the pod db-herddb-0 can be forwarded: User "eve" cannot create pods/portforward'
    gone = stream_refused("no port of the pod db-herddb-0 can be forwarded", handshake("404 Not Found", "pods not found"))
    assert not isinstance(gone, ForbiddenError)
    assert str(stream_refused("no port of the pod db-herddb-0 can be forwarded", "[Errno 111] Connection refused")).endswith(
        "forwarded: [Errno 111] Connection refused"
    )


@pytest.mark.parametrize(("refused", "told"), [(ClusterError("pod is gone"), LeaderNotFound), (ForbiddenError("no right"), ForbiddenError)])
def test_a_leader_that_can_not_be_reached_is_looked_for_again_unless_the_caller_has_no_right(
    refused: ClusterError, told: type[Exception]
) -> None:
    class Refusing(PlayedCluster):
        def forward(self, pod: str, port: int) -> contextlib.AbstractContextManager[int]:
            raise refused

    with pytest.raises(told, match=str(refused)):
        leader_of(Refusing(stack()), None)
