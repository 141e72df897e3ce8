"""What a story asks of a leader before it judges the copies."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from herdkeeper_e2e.fuzz.judgement import Contents, Kind
from herdkeeper_e2e.fuzz.telling import Script
from herdkeeper_e2e.fuzz.world import Stuck, World

FENCED = (409, {"error": "this node does not write tablespace s1: ask its leader"})
CLOSED = (200, {"closed": 7, "lastEntry": 3})
ASKED_AT_MOST = 5


class Leader:
    """A world of one node, which gives these answers one after the other, and the last one from then on."""

    plan = SimpleNamespace(retention_millis=1)

    def __init__(self, *answers: tuple[int, Any]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def record(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(leader="node-0")

    def runs(self, node: str) -> bool:
        return True

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
