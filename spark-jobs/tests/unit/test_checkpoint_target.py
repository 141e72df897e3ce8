"""Choosing an LSN: the meaning of "now", and how a follower that runs ahead is caught."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from herdkeeper_jobs.checkpoint import node_http, target
from herdkeeper_jobs.checkpoint.node_http import FollowerDigest, LeaderCounts, NotCounted, NotHeld
from herdkeeper_jobs.checkpoint.target import TargetRequest, choose_target
from herdkeeper_jobs.errors import CheckpointRefused, CheckpointRetryable, NotConfirmedYet
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.moment import Time


@dataclass
class PlayedLog:
    """A log whose confirmed end advances by one entry with every look."""

    end: Lsn = field(default_factory=lambda: Lsn(5, 10))
    name: str = "demo"

    def parts_up_to(self, lsn: Lsn, begin: Lsn) -> None:
        if lsn > (end := self.confirmed_end()):
            raise NotConfirmedYet(f"{lsn}: confirmed up to {end}")

    def confirmed_end(self) -> Lsn:
        now = self.end
        self.end = Lsn(now.ledger_id, now.entry_id + 1) if now.entry_id < 20 else Lsn(now.ledger_id + 1, 30)
        return now


@dataclass
class PlayedFollower:
    """Answers from the test's list; records the LSNs at which it was asked to be held."""

    answers: list[FollowerDigest | NotHeld]
    asked: list[Lsn] = field(default_factory=list)

    def digest(self, address: str, tablespace: str, lsn: Lsn, token: str, timeout_seconds: int) -> FollowerDigest | NotHeld:
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
    assert choose_target(PlayedLog(), TargetRequest()).read_to == Lsn(5, 10)  # type: ignore[arg-type]


def test_now_is_the_leaders_position_and_waits_until_it_is_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    follow(monkeypatch)
    monkeypatch.setattr(target, "log_position", lambda address, tablespace: Lsn(5, 13))
    log = PlayedLog()
    assert choose_target(log, TargetRequest(leader_http="n0:9845")).read_to == Lsn(5, 13)  # type: ignore[arg-type]
    assert log.end > Lsn(5, 13)


def test_a_new_leader_that_has_not_written_yet_stands_at_the_end_of_the_ledgers_before(monkeypatch: pytest.MonkeyPatch) -> None:
    follow(monkeypatch)
    monkeypatch.setattr(target, "log_position", lambda address, tablespace: Lsn(6, -1))
    assert choose_target(PlayedLog(), TargetRequest(leader_http="n0:9845")).read_to == Lsn(5, 10)  # type: ignore[arg-type]


def test_now_is_not_before_what_is_known_to_be_confirmed() -> None:
    assert choose_target(PlayedLog(), TargetRequest(not_before=Lsn(5, 14))).read_to == Lsn(5, 14)  # type: ignore[arg-type]
    assert choose_target(PlayedLog(), TargetRequest(not_before=Lsn(5, 3))).read_to == Lsn(5, 10)  # type: ignore[arg-type]


def test_a_follower_that_stands_at_the_lsn_is_held_there_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    follower = follow(monkeypatch, HELD)
    chosen = choose_target(PlayedLog(), TargetRequest(verify_against="n1:9845"))  # type: ignore[arg-type]
    assert chosen.follower is not None
    assert (chosen.at, chosen.read_to) == (Lsn(5, 10), Lsn(5, 10))
    assert follower.asked == [Lsn(5, 10)]


def test_a_follower_that_runs_ahead_is_caught_ahead_of_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    passed = (NotHeld("passed", Lsn(5, 12)), NotHeld("passed", Lsn(6, 3)), NotHeld("passed", Lsn(6, 40)))
    follower = follow(monkeypatch, *passed, HELD)
    chosen = choose_target(PlayedLog(), TargetRequest(verify_against="n1:9845"))  # type: ignore[arg-type]
    assert follower.asked == [Lsn(5, 10), Lsn(5, 12), Lsn(6, 4), Lsn(6, 60)]
    assert (chosen.at, chosen.read_to) == (Lsn(6, 60), Lsn(6, 60))


def test_a_quiet_log_whose_noop_came_twice_meanwhile_is_asked_for_its_next_entry_only(monkeypatch: pytest.MonkeyPatch) -> None:
    follower = follow(monkeypatch, NotHeld("passed", Lsn(5, 11)), NotHeld("passed", Lsn(5, 12)), HELD)
    assert choose_target(PlayedLog(), TargetRequest(verify_against="n1:9845")).read_to == Lsn(5, 13)  # type: ignore[arg-type]
    assert follower.asked == [Lsn(5, 10), Lsn(5, 11), Lsn(5, 13)]


def test_an_lsn_is_read_up_to_when_nothing_is_compared() -> None:
    chosen = choose_target(PlayedLog(), TargetRequest(Lsn(5, 9)))  # type: ignore[arg-type]
    assert (chosen.at, chosen.read_to, chosen.follower) == (Lsn(5, 9), Lsn(5, 9), None)


def test_for_an_lsn_of_the_past_the_log_is_read_on_to_where_the_follower_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    follower = follow(monkeypatch, NotHeld("passed", Lsn(5, 12)), HELD)
    chosen = choose_target(PlayedLog(), TargetRequest(Lsn(5, 3), verify_against="n1:9845"))  # type: ignore[arg-type]
    assert follower.asked == [Lsn(5, 11), Lsn(5, 12)]  # the check that the log has the LSN was the first look
    assert (chosen.at, chosen.read_to) == (Lsn(5, 3), Lsn(5, 12))


def test_the_log_is_read_up_to_a_confirmed_lsn_also_when_the_bookies_that_are_asked_next_know_of_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Forgetful(PlayedLog):
        def parts_up_to(self, lsn: Lsn, begin: Lsn | None = None) -> None:
            """Does nothing: the LSN is confirmed."""

    follower = follow(monkeypatch, HELD)
    chosen = choose_target(Forgetful(), TargetRequest(Lsn(5, 12), verify_against="n1:9845"))  # type: ignore[arg-type]
    assert follower.asked == [Lsn(5, 12)]
    assert chosen.read_to == Lsn(5, 12)


def test_an_lsn_that_is_about_to_be_confirmed_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    follow(monkeypatch)
    assert choose_target(PlayedLog(), TargetRequest(Lsn(5, 15))).read_to == Lsn(5, 15)  # type: ignore[arg-type]


def test_an_lsn_beyond_the_end_is_refused_with_what_is_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "_CONFIRM_SECONDS", 0.0)
    with pytest.raises(CheckpointRefused, match=r"5,19: confirmed up to 5,1\d; choose an LSN up to there, or none for the current state"):
        choose_target(PlayedLog(), TargetRequest(Lsn(5, 19)))  # type: ignore[arg-type]


@pytest.mark.parametrize("verify_against", ["", "n1:9845"])
def test_for_a_time_the_log_is_read_to_its_end_which_tells_where_the_time_was(verify_against: str, monkeypatch: pytest.MonkeyPatch) -> None:
    follow(monkeypatch, HELD)
    chosen = choose_target(PlayedLog(), TargetRequest(Time(1000, "1970-01-01T00:00:01Z"), verify_against=verify_against))  # type: ignore[arg-type]
    assert (chosen.at, chosen.read_to) == (Time(1000, "1970-01-01T00:00:01Z"), Lsn(5, 10))
    assert (chosen.follower is not None) is bool(verify_against)


def test_a_time_that_has_not_come_is_refused_by_name() -> None:
    with pytest.raises(CheckpointRefused, match=r"spec.target.timestamp .--to. is 9999-01-01T00:00:00Z: it is 2.* now; choose a past time"):
        choose_target(PlayedLog(), TargetRequest(Time(253370764800000, "9999-01-01T00:00:00Z")))  # type: ignore[arg-type]


def test_a_follower_that_does_not_arrive_in_time_is_worth_a_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    follow(monkeypatch, NotHeld("still at (5,1)", Lsn(5, 1)))
    with pytest.raises(CheckpointRetryable, match="still at"):
        choose_target(PlayedLog(), TargetRequest(verify_against="n1:9845"))  # type: ignore[arg-type]


def test_a_node_that_leads_now_is_worth_a_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    follow(monkeypatch, NotHeld("this node leads the tablespace", None))
    with pytest.raises(CheckpointRetryable, match="leads"):
        choose_target(PlayedLog(), TargetRequest(verify_against="n1:9845"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("counts", "ready", "words"),
    [
        (
            {"exact": True, "position": {"ledgerId": 5, "entryId": 11}, "tables": {"t": 3}},
            True,
            LeaderCounts("n0:9845", Lsn(5, 11), {"t": 3}),
        ),
        ({"exact": True, "position": {"ledgerId": 5, "entryId": 11}, "tables": {"t": 3}}, False, "the node n0:9845 does not lead it"),
        ({"exact": True, "position": {"ledgerId": 5, "entryId": 14}, "tables": {"t": 3}}, True, "the leader n0:9845 was at 5,14 by then"),
        ({"exact": False, "position": {"ledgerId": 5, "entryId": 11}, "tables": {}}, True, "was written to while it counted"),
        (None, True, "reports no row counts of its tables"),
    ],
    ids=[
        "only NOOPs lie between",
        "another one leads by now",
        "it has written on",
        "it is written to",
        "it boots, or is of an earlier version",
    ],
)
def test_the_leaders_rows_count_only_where_it_has_written_nothing_else(
    counts: object, ready: bool, words: LeaderCounts | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow(monkeypatch)
    body = [{"name": "demo", "role": "leader", "ready": ready, "applied": {"ledgerId": 5, "entryId": 13}, "counts": counts}]
    monkeypatch.setattr(node_http, "_call", lambda *_: (200, body))
    found = choose_target(PlayedLog(), TargetRequest(leader_http="n0:9845")).leader  # type: ignore[arg-type]
    if isinstance(words, LeaderCounts):
        assert found == words
    else:
        assert isinstance(found, NotCounted)
        assert words in found.reason
