"""In which tablespaces a restore may begin or continue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from herdkeeper.codecs.herddb.table import Column, ColumnType, TableDefinition
from herdkeeper.protocol.restore_bookkeeping import HEADER_STEP
from herdkeeper.sql.connection import Connection
from herdkeeper.sql.errors import DuplicateKey, NotLeader, ServerError, TransactionEnded
from herdkeeper.sql.frames import Executed
from herdkeeper_jobs.errors import InvariantViolated, RestoreRefused
from herdkeeper_jobs.manifests.manifest import ManifestIndex
from herdkeeper_jobs.restore import bookkeeping, run
from herdkeeper_jobs.restore.bookkeeping import Begin, Header, end_lost, find_begin
from herdkeeper_jobs.restore.run import failed_comparison

HEADER = Header("hash-1", "/checkpoints/m.json", 10, 1000, 5000)
OURS = "herdkeeper_restore"


@pytest.mark.parametrize(
    ("situation", "tables", "header", "begin"),
    [
        ("an empty tablespace", set(), None, Begin.EMPTY),
        ("cut off before it could say which restore it is", {OURS}, None, Begin.EMPTY),
        ("cut off while tables were made", {OURS, "a"}, HEADER, Begin.BEGUN),
        ("cut off while rows were loaded, by an image with other chunks", {OURS, "a", "b"}, replace(HEADER, chunk_rows=5), Begin.BEGUN),
        ("cut off after its end", {"a", "b"}, None, Begin.FILLED),
    ],
)
def test_a_restore_knows_how_far_it_came(situation: str, tables: set[str], header: Header | None, begin: Begin) -> None:
    assert find_begin(tables, header, HEADER, {"a", "b"}) is begin, situation


@pytest.mark.parametrize(
    ("situation", "tables", "header", "message"),
    [
        ("somebody's table", {"mine"}, None, r"did not make \(mine\)"),
        ("some of the checkpoint's tables", {"a"}, None, r"did not make \(a\)"),
        ("somebody's table beside ours", {OURS, "a", "mine"}, HEADER, r"did not make \(mine\)"),
        ("bookkeeping without a header beside tables", {OURS, "a"}, None, r"did not make \(a\)"),
        ("bookkeeping without a header beside all tables", {OURS, "a", "b"}, None, r"did not make \(a, b\)"),
        ("another restore", {OURS, "a"}, replace(HEADER, manifest_hash="other", manifest="/m2.json"), "of /m2.json"),
    ],
)
def test_a_tablespace_with_something_else_in_it_is_refused(situation: str, tables: set[str], header: Header | None, message: str) -> None:
    with pytest.raises(RestoreRefused, match=message):
        find_begin(tables, header, HEADER, {"a", "b"})


def test_a_header_is_read_as_it_was_written() -> None:
    assert Header.from_json(HEADER.to_json()) == HEADER


def test_tables_of_the_same_names_with_another_content_are_somebody_else_s() -> None:
    difference = InvariantViolated("table 'a': the checkpoint has 3 rows, SQL returns 2")
    assert failed_comparison(Begin.BEGUN, difference) is difference
    refused = failed_comparison(Begin.FILLED, difference)
    assert isinstance(refused, RestoreRefused)
    assert "did not make: table 'a'" in str(refused)


@dataclass
class PlayedLeader:
    """Transactions by id, with the leader's answer to their ROLLBACK: None ends them."""

    open: dict[int, ServerError | None]
    ended: list[int] = field(default_factory=list)
    is_restored: bool = False

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[dict[str, Any]]:
        if sql == "SELECT * FROM systransactions":
            return [{"txid": number} for number in self.open]
        if self.is_restored:
            raise ServerError(f"no such table {OURS}")
        return [{"detail": HEADER.to_json()}]

    def rollback(self, transaction_id: int) -> None:
        if (refusal := self.open[transaction_id]) is not None:
            raise refusal
        self.ended.append(transaction_id)


def test_what_a_killed_run_left_open_is_rolled_back_and_what_has_ended_meanwhile_is_left() -> None:
    leader = PlayedLeader({7: None, 8: ServerError("no such transaction 8"), 9: None})
    assert end_lost(cast(Connection, leader)) == 2
    assert leader.ended == [7, 9]


def test_a_driver_that_goes_on_after_another_one_has_ended_rolls_back_no_transaction_of_a_user() -> None:
    leader = PlayedLeader({7: None}, is_restored=True)
    with pytest.raises(ServerError, match="no such table"):
        end_lost(cast(Connection, leader))
    assert leader.ended == []


def test_a_former_leader_is_not_asked_to_roll_back() -> None:
    with pytest.raises(NotLeader):
        end_lost(cast(Connection, PlayedLeader({7: NotLeader("not me")})))


class FoundTablespace:
    """Tables by name; ours has steps. It is its own connection."""

    tablespace = "restored"

    def __init__(self, *tables: str, steps: Sequence[str] | None = None) -> None:
        self.tables: dict[str, list[str]] = {name: [] for name in tables} | ({} if steps is None else {OURS: list(steps)})

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[dict[str, str]]:
        if "systables" in sql:
            return [{"table_name": name, "systemtable": "false", "tablespace": self.tablespace} for name in self.tables]
        return [{"detail": HEADER.to_json()} for step in self.tables[OURS] if step in parameters]

    def execute(self, sql: str, parameters: Sequence[str] = ()) -> int:
        if sql.startswith("CREATE TABLE IF NOT EXISTS"):
            self.tables.setdefault(OURS, [])
        elif sql.startswith("DROP TABLE"):
            del self.tables[OURS]
        elif parameters[0] in self.tables[OURS]:
            raise DuplicateKey("the header is there")
        else:
            self.tables[OURS].append(parameters[0])
        return 1


def test_a_driver_that_looked_before_another_one_restored_the_tablespace_begins_nothing_in_it() -> None:
    """It would load rows again that were deleted since, and leave its table behind, with which no Checkpoint can be restored."""
    ready = FoundTablespace("a", "b")
    with pytest.raises(RestoreRefused, match=r"did not make \(a, b\)"):
        bookkeeping.begin(cast(Connection, ready), HEADER)
    assert set(ready.tables) == {"a", "b"}


def test_a_driver_that_looked_before_another_one_began_leaves_its_bookkeeping_alone() -> None:
    begun = FoundTablespace("a", steps=[HEADER_STEP, "chunk 1"])
    with pytest.raises(DuplicateKey):
        bookkeeping.begin(cast(Connection, begun), HEADER)
    assert begun.tables[OURS] == [HEADER_STEP, "chunk 1"]


@pytest.mark.parametrize("steps", [None, []])
def test_a_restore_begins_in_an_empty_tablespace_and_in_one_without_a_header(steps: list[str] | None) -> None:
    empty = FoundTablespace(steps=steps)
    bookkeeping.begin(cast(Connection, empty), HEADER)
    assert empty.tables == {OURS: [HEADER_STEP]}


class ReadyTablespace:
    """A tablespace that another driver has restored: no bookkeeping is left. It is its own session, connection and transaction."""

    tablespace = "restored"
    id = 1

    def __init__(self) -> None:
        self.changed: list[str] = []

    def connection(self) -> ReadyTablespace:
        return self

    def query(self, sql: str) -> list[dict[str, object]]:
        return []

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> int:
        if OURS in sql:
            raise ServerError(f"no such table {OURS}")
        self.changed.append(sql)
        return 1

    def begin(self) -> ReadyTablespace:
        return self

    def run(self, sql: str) -> Executed:
        return Executed(self.execute(sql), 0 if sql.startswith("ALTER") else self.id)

    def commit(self) -> None:
        return

    def rollback(self) -> None:
        return

    @contextmanager
    def transaction(self) -> Iterator[ReadyTablespace]:
        yield self


def test_a_driver_that_goes_on_after_another_one_has_ended_changes_no_row_and_makes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    keyed = TableDefinition("demo", "keyed", "u", (Column("k", ColumnType.LONG, 0, nullable=False),), ("k",), auto_increment=True)
    manifest = SimpleNamespace(highest_auto_increment=4)
    source = SimpleNamespace(tables=(SimpleNamespace(name="keyed", definition=keyed, manifest=manifest, indexes=()),))
    monkeypatch.setattr(run, "levels", lambda _: [])
    monkeypatch.setattr(bookkeeping, "marks", lambda _: {})
    ready = ReadyTablespace()
    with pytest.raises(ServerError, match="no such table"):
        run._fill(cast(Any, None), cast(Any, source), cast(Any, None), cast(Any, ready), HEADER)
    assert ready.changed == []


class LockedTablespace(ReadyTablespace):
    """A tablespace with our bookkeeping and open transactions. A transaction that is not open executes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.open: set[int] = set()
        self.begun = 0

    def begin(self) -> ReadyTablespace:
        self.begun += 1
        self.open.add(self.begun)
        return LockedTransaction(self, self.begun)

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[dict[str, object]]:
        if "systransactions" in sql:
            return [{"txid": number} for number in self.open]
        return [{"detail": HEADER.to_json()}]

    def rollback(self, transaction_id: int = 0) -> None:
        self.open.discard(transaction_id)

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> int:
        self.changed.append(sql)
        return 1


class LockedTransaction(ReadyTablespace):
    def __init__(self, tablespace: LockedTablespace, number: int) -> None:
        super().__init__()
        self.id = number
        self._tablespace = tablespace

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> int:
        if self.id not in self._tablespace.open:
            raise TransactionEnded(f"transaction {self.id} not found")
        return self._tablespace.execute(sql)

    def commit(self) -> None:
        self._tablespace.open.remove(self.id)


@pytest.mark.parametrize("statement", ["CREATE TABLE t", "CREATE BRIN INDEX i", "ALTER TABLE t ADD CONSTRAINT k"])
def test_a_definition_that_stands_still_behind_its_mark_is_refused_once_another_driver_has_ended(
    monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    tablespace = LockedTablespace()
    mark = bookkeeping.mark

    def marked(*arguments: Any) -> None:
        mark(*arguments)
        bookkeeping.end(cast(Connection, tablespace))

    monkeypatch.setattr(bookkeeping, "mark", marked)
    with pytest.raises(TransactionEnded):
        bookkeeping.define(cast(Connection, tablespace), statement)
    assert (statement not in tablespace.changed, tablespace.changed[-1]) == (True, f"DROP TABLE `{OURS}`")
    monkeypatch.setattr(bookkeeping, "mark", mark)
    bookkeeping.define(cast(Connection, tablespace), statement)
    assert tablespace.changed[-1] == statement


class MadeTablespace(ReadyTablespace):
    """A tablespace with indexes, which refuses to alter an indexed column, as HerdDB does."""

    def __init__(self, *indexes: str) -> None:
        super().__init__()
        self.indexes = indexes

    def query(self, sql: str) -> list[dict[str, object]]:
        if "systables" in sql:
            return [{"table_name": "paths", "systemtable": "false", "tablespace": self.tablespace}] if self.indexes else []
        return [{"index_name": name, "tablespace": self.tablespace} for name in self.indexes] if "sysindexes" in sql else []

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> int:
        if sql.startswith("ALTER TABLE") and self.indexes:
            raise ServerError("cannot alter indexed v in table paths")
        return 1 if OURS in sql else super().execute(sql, parameters)


def test_a_restore_that_goes_on_alters_no_column_that_has_its_index_already() -> None:
    columns = (Column("k", ColumnType.LONG, 0, nullable=False), Column("v", ColumnType.STRING, 1, default=b"c:\\"))
    paths = TableDefinition("demo", "paths", "u", columns, ("k",))
    index = ManifestIndex(name="by_v", table="paths", type="brin", unique=False, columns=("v",))
    manifest = SimpleNamespace(highest_auto_increment=None)
    source = SimpleNamespace(tables=(SimpleNamespace(name="paths", definition=paths, manifest=manifest, indexes=(index,)),))
    empty, made = MadeTablespace(), MadeTablespace("by_v")
    for tablespace in (empty, made):
        run._make_tables(cast(Any, tablespace), cast(Any, source), {})
    assert [statement.partition("`")[0] for statement in empty.changed] == [
        "CREATE TABLE IF NOT EXISTS ",
        "ALTER TABLE ",
        "CREATE BRIN INDEX ",
    ]
    assert made.changed == []
