"""The same seed gives the same faults."""

from __future__ import annotations

from itertools import islice

import pytest

from herdkeeper_e2e.checker.nemesis_plan import HOLD_SECONDS, LONG_ACTIONS, PAUSE_SECONDS, Action, steps


def test_the_same_seed_gives_the_same_steps_and_another_one_gives_others():
    first = list(islice(steps(7), 40))
    assert list(islice(steps(7), 40)) == first
    assert list(islice(steps(8), 40)) != first


def test_each_round_has_every_action_once_and_ends_with_the_long_ones():
    count = len(Action)
    for begin in (0, count):
        drawn = [step.action for step in islice(steps(3), begin, begin + count)]
        assert sorted(drawn) == sorted(Action)
        assert set(drawn[-len(LONG_ACTIONS) :]) == set(LONG_ACTIONS)


def test_pauses_and_holds_stay_in_their_ranges():
    for step in islice(steps(5), 200):
        assert PAUSE_SECONDS[0] <= step.pause_seconds <= PAUSE_SECONDS[1]
        assert HOLD_SECONDS[0] <= step.hold_seconds <= HOLD_SECONDS[1]


def test_only_the_named_actions_are_drawn_and_one_at_least():
    assert {step.action for step in islice(steps(1, [Action.ROLL]), 5)} == {Action.ROLL}
    with pytest.raises(ValueError, match="no action"):
        next(steps(1, []))
