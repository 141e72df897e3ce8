"""Choosing an LSN: what "now" is, and how a follower that runs ahead is caught."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from herdkeeper.formats.herddb_tablespace import TablespaceRecord
from herdkeeper_jobs.checkpoint import target
from herdkeeper_jobs.checkpoint.errors import CheckpointRefused, CheckpointRetryable
from herdkeeper_jobs.checkpoint.node_http import FollowerDigest, NotHeld
from herdkeeper_jobs.checkpoint.target import TargetRequest, choose_target
from herdkeeper_jobs.wal.lsn import Lsn


@dataclass
class PlayedLog:
    """A log whose confirmed end moves on by one entry with every look."""

    end: Lsn = field(default_factory=lambda: Lsn(5, 10))
    tablespace: TablespaceRecord = field(default_factory=lambda: TablespaceRecord("u", "demo", "n0", ("n0",), 1, 0))

    def confirmed_end(self) -> Lsn:
        now = self.end
        self.end = Lsn(now.ledger_id, now.entry_id + 1) if now.entry_id < 20 else Lsn(now.ledger_id + 1, 30)
        return now


@dataclass
class PlayedFollower:
    """Answers as the test lists; records where it was asked to stand."""

    answers: list[FollowerDigest | NotHeld]
    asked: list[Lsn] = field(default_factory=list)

    def digest(self, address: str, tablespace: str, lsn: Lsn, timeout_seconds: int) -> FollowerDigest | NotHeld:
        self.asked.append(lsn)
        answer = self.answers.pop(0)
        return FollowerDigest(lsn, {}, address) if isinstance(answer, FollowerDigest) else answer


HELD = FollowerDigest(Lsn(0, 0), {}, "f")


def follow(monkeypatch: pytest.MonkeyPatch, *answers: FollowerDigest | NotHeld) -> PlayedFollower:
    follower = PlayedFollower(list(answers))
    monkeypatch.setattr(target, "follower_digest", follower.digest)
    monkeypatch.setattr(target, "_POLL_SECONDS", 0.001)
    return follower


def test_now_is_the_confirmed_end_when_no_node_is_named() -> None:
    assert choose_target(PlayedLog(), TargetRequest()).lsn == Lsn(5, 10)  # type: ignore[arg-type]


def test_now_is_the_leaders_position_and_waits_until_it_is_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    follow(monkeypatch)
    monkeypatch.setattr(target, "log_position", lambda address, tablespace: Lsn(5, 13))
    log = PlayedLog()
    assert choose_target(log, TargetRequest(leader_http="n0:9845")).lsn == Lsn(5, 13)  # type: ignore[arg-type]
    assert log.end > Lsn(5, 13)


def test_a_new_leader_that_has_not_written_yet_stands_at_the_end_of_the_ledgers_before(monkeypatch: pytest.MonkeyPatch) -> None:
    follow(monkeypatch)
    monkeypatch.setattr(target, "log_position", lambda address, tablespace: Lsn(6, -1))
    assert choose_target(PlayedLog(), TargetRequest(leader_http="n0:9845")).lsn == Lsn(5, 10)  # type: ignore[arg-type]


def test_a_follower_that_stands_at_the_lsn_is_held_there_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    follower = follow(monkeypatch, HELD)
    chosen = choose_target(PlayedLog(), TargetRequest(verify_against="n1:9845"))  # type: ignore[arg-type]
    assert chosen.follower is not None
    assert chosen.lsn == Lsn(5, 10)
    assert follower.asked == [Lsn(5, 10)]


def test_a_follower_that_runs_ahead_is_caught_ahead_of_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    follower = follow(monkeypatch, NotHeld("passed", Lsn(5, 12)), NotHeld("passed", Lsn(6, 3)), HELD)
    chosen = choose_target(PlayedLog(), TargetRequest(verify_against="n1:9845"))  # type: ignore[arg-type]
    assert follower.asked == [Lsn(5, 10), Lsn(5, 12), Lsn(6, 23)]
    assert chosen.lsn == Lsn(6, 23)


def test_an_lsn_that_the_follower_has_passed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    follow(monkeypatch, NotHeld("already at (5,12)", Lsn(5, 12)))
    with pytest.raises(CheckpointRefused, match="take a later LSN"):
        choose_target(PlayedLog(), TargetRequest(Lsn(5, 9), verify_against="n1:9845"))  # type: ignore[arg-type]


def test_a_follower_that_does_not_come_is_worth_a_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    follow(monkeypatch, NotHeld("still at (5,1)", Lsn(5, 1)))
    with pytest.raises(CheckpointRetryable, match="still at"):
        choose_target(PlayedLog(), TargetRequest(verify_against="n1:9845"))  # type: ignore[arg-type]


def test_a_node_that_leads_now_is_worth_a_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    follow(monkeypatch, NotHeld("this node leads the tablespace", None))
    with pytest.raises(CheckpointRetryable, match="leads"):
        choose_target(PlayedLog(), TargetRequest(verify_against="n1:9845"))  # type: ignore[arg-type]
