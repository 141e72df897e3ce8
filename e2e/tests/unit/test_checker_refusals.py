"""A client that is often refused: what it was promised survives the end of its program, and it goes on through leader changes."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from types import SimpleNamespace

from herdkeeper.sql.errors import LeaderNotFound, NotLeader, OutcomeUnknown, ServerError
from herdkeeper_e2e.checker.refusals import Refusals, judged, to_text
from herdkeeper_e2e.fuzz.judgement import Contents, Promises
from herdkeeper_e2e.fuzz.story import OUTSIDE, Begin, Checkpoints, End, Sql


def insert(tag: int, slot: int = OUTSIDE) -> Sql:
    return Sql(slot, "INSERT INTO w (k, v) VALUES (?, ?)", (tag, tag), "w", (tag,), adds=True)


class PlayedSession:
    """Answers changes with the next of `answers`, and each look at the tables with nothing. Each connection is to another node."""

    def __init__(self, *answers: Exception | int, there: tuple[int, ...] = ()) -> None:
        self.there = there
        self.answers = list(answers)
        self.connects = 0
        self.closed = False
        self.timeout_seconds = 0.0

    @property
    def address(self) -> SimpleNamespace:
        return SimpleNamespace(host=f"n{self.connects}")

    def connect(self, patience):
        self.connects += 1
        if self.connects == 2:
            raise LeaderNotFound("none yet")
        self.closed = False
        return self

    def close(self) -> None:
        self.closed = True

    def query(self, sql: str, parameters=()):
        if sql == "SELECT * FROM w":
            return [{"k": tag, "v": tag} for tag in self.there]
        return [{"table_name": "w"}] if "systables" in sql else []

    def execute(self, sql: str, parameters=()) -> int:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @contextmanager
    def transaction(self):
        yield SimpleNamespace(id=1, execute=self.execute)
        self.execute("COMMIT")


def told(*steps, answers, rows: tuple[int, ...] = ()) -> Refusals:
    session = PlayedSession(*answers, there=rows)
    client = Refusals("t", lambda _: None, Promises(late=True), session=session, stop=threading.Event())
    client.tell(steps)
    return client


def there(*tags: int) -> Contents:
    return Contents.of({"w": [{"k": tag, "v": tag} for tag in tags]})


def test_what_was_acknowledged_must_be_there_and_what_was_refused_must_not():
    client = told(insert(1), insert(2), answers=[1, ServerError("no")])
    assert client.told == {"accepted": 1, "refused": 1}
    assert [str(found) for found in judged(to_text(client), "n1", there(1))] == []
    assert len(list(judged(to_text(client), "n1", there()))) == 1
    assert len(list(judged(to_text(client), "n1", there(1, 2)))) == 1


def test_it_goes_on_with_the_next_leader_and_knows_nothing_of_what_was_not_answered():
    client = told(insert(1), insert(2), answers=[OutcomeUnknown("lost"), 1])
    assert client.session.connects == 3
    assert (set(client.promises.kept), client.promises.broken) == ({2}, {})
    moved = told(insert(1), insert(2), answers=[NotLeader("moved"), 1])
    assert (set(moved.promises.kept), set(moved.promises.broken)) == ({2}, {1})


def test_what_the_next_leader_lacks_is_found_when_it_is_met_though_it_may_be_removed_later():
    steps = insert(1), insert(2), Sql(OUTSIDE, "TRUNCATE TABLE w", table="w", spoils=("w",))
    answers = [1, NotLeader("moved"), 1]
    (found,) = told(*steps, answers=answers).violations
    assert str(found) == "n3: acknowledged rows are gone: 1 rows (1 of w), tags 1"
    assert told(*steps, answers=answers, rows=(1,)).violations == []


def test_a_transaction_that_is_open_at_the_end_is_rolled_back():
    client = told(Begin(1), insert(1, slot=1), Checkpoints(1), answers=[1])
    assert set(client.promises.broken) == {1}
    committed = told(Begin(1), insert(1, slot=1), End(1, commit=True), answers=[1, 1])
    assert set(committed.promises.kept) == {1}
