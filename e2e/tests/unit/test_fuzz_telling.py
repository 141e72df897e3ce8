"""What a story asks of a leader before it judges the copies."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from herdkeeper.sql.connection import Connection
from herdkeeper.sql.errors import SqlError
from herdkeeper_e2e.fuzz.judgement import Contents, Kind
from herdkeeper_e2e.fuzz.script import Script
from herdkeeper_e2e.fuzz.world import Stuck, World

FENCED = (409, {"error": "this node does not write tablespace s1: ask its leader"})
CLOSED = (200, {"closed": 7, "lastEntry": 3})
ASKED_AT_MOST = 5


class Answering:
    """A connection that gives the next of these answers for each query; None is a leader whose log has failed."""

    address = "node-0"
    closed = False

    def __init__(self, rows: list[list[dict[str, Any]] | None]) -> None:
        self.rows = rows

    def query(self, sql: str) -> list[dict[str, Any]]:
        found = self.rows.pop(0) if len(self.rows) > 1 else self.rows[0]
        if found is None:
            raise SqlError("its log has failed")
        return found

    def close(self) -> None:
        self.closed = True


class Leader:
    """A world of one node, which gives these answers one after the other, and the last one from then on."""

    plan = SimpleNamespace(retention_millis=1)

    def __init__(self, *answers: tuple[int, Any]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.rows: list[list[dict[str, Any]] | None] = []

    def record(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(leader="node-0")

    def runs(self, node: str) -> bool:
        return True

    def connect(self, name: str) -> Connection:
        return cast(Connection, Answering(self.rows))

    def others(self, node: str) -> tuple[str, ...]:
        return ()

    def order(self, node: str, path: str) -> tuple[int, Any]:
        self.asked.append(path)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def wait(self, what: str, holds: Callable[[], bool]) -> None:
        if not any(holds() for _ in range(ASKED_AT_MOST)):
            raise Stuck(what)


def judged(leader: Leader) -> Script:
    script = Script("s1", lambda _: None, world=cast(World, leader))
    script._compare_copies(Contents.of({}))
    return script


def test_a_leader_whose_ledger_others_have_closed_is_asked_again_until_it_writes() -> None:
    leader = Leader(FENCED, FENCED, CLOSED)
    assert judged(leader).violations == []
    assert leader.asked == ["tablespaces/s1/close-ledger"] * 3


def test_a_leader_that_never_writes_again_is_a_violation_with_its_words() -> None:
    (violation,) = judged(Leader(FENCED)).violations
    assert violation.kind is Kind.NO_ANSWER
    assert "ask its leader" in str(violation)


def read_at(*rows: list[dict[str, Any]] | None) -> Contents | None:
    leader = Leader()
    leader.rows = list(rows)
    return Script("s1", lambda _: None, world=cast(World, leader))._contents_at_leader()


def test_rows_are_read_again_until_a_leader_whose_log_has_failed_leads_once_more() -> None:
    assert read_at(None, None, None, []) == Contents.of({})


def test_rows_that_no_leader_gives_are_told() -> None:
    assert read_at(None) is None
