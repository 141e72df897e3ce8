"""What is wrong with an archive, by the entries that it has of each ledger."""

from __future__ import annotations

import pytest

from herdkeeper_e2e.archive_check import wrong_of


def test_whole_ledgers_and_the_beginning_of_an_open_one_are_right() -> None:
    assert wrong_of({1: range(5), 4: range(3)}, {1: 4, 4: None}) == []


@pytest.mark.parametrize(
    ("archived", "ends", "why"),
    [
        ({1: [0, 2]}, {1: None}, "gap"),
        ({1: [0, 0, 1]}, {1: None}, "twice"),
        ({1: range(4), 4: range(3)}, {1: 4, 4: None}, "ends with 4, and is archived up to entry 3"),
        ({1: range(5), 4: range(1, 3)}, {1: 4, 4: None}, "ledger 4 begins with entry 1"),
    ],
)
def test_what_is_missing_or_there_twice_is_named(archived: dict[int, list[int]], ends: dict[int, int | None], why: str) -> None:
    (found,) = wrong_of(archived, ends)
    assert why in found


def test_a_ledger_that_ended_a_moment_ago_may_not_be_archived_to_its_end_yet() -> None:
    assert wrong_of({1: range(5), 4: range(3)}, {1: 4, 4: 7}) == []


def test_the_oldest_ledger_may_have_lost_its_beginning_since_that_expired() -> None:
    assert wrong_of({1: range(3, 5), 4: range(3)}, {1: 4, 4: None}) == []
