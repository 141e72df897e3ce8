"""The same seed gives the same faults."""

from __future__ import annotations

from itertools import islice

import pytest

from herdkeeper_e2e.checker.nemesis_plan import (
    ACTIONS,
    FIRST_PAUSE_SECONDS,
    HOLD_SECONDS,
    MOST_AT_ONCE,
    PAUSE_SECONDS,
    Hit,
    Maneuver,
    Target,
    Way,
    action_of,
    bursts,
)


def test_the_same_seed_gives_the_same_steps_and_another_one_gives_others():
    first = list(islice(bursts(7), 40))
    assert list(islice(bursts(7), 40)) == first
    assert list(islice(bursts(8), 40)) != first


def test_each_round_has_every_action_once_and_ends_with_a_node_more_and_fewer_alone():
    drawn = bursts(3)
    for _ in range(2):
        actions = []
        while len(actions) < len(ACTIONS):
            burst = next(drawn)
            actions += [step.action for step in burst]
        assert sorted(map(str, actions)) == sorted(map(str, ACTIONS))
        assert [step.action for step in burst] == [Maneuver.SCALE]


def test_faults_of_all_servers_come_alone_and_several_at_once():
    drawn = list(islice(bursts(5), 200))
    assert {len(burst) for burst in drawn} == set(range(1, MOST_AT_ONCE + 1))
    together = {step.action.target for burst in drawn if len(burst) > 1 for step in burst if isinstance(step.action, Hit)}
    assert together == set(Target)


def test_pauses_and_holds_stay_in_their_ranges():
    for first, *others in islice(bursts(5), 200):
        assert FIRST_PAUSE_SECONDS[0] <= first.pause_seconds <= FIRST_PAUSE_SECONDS[1]
        for step in others:
            assert PAUSE_SECONDS[0] <= step.pause_seconds <= PAUSE_SECONDS[1]
        for step in (first, *others):
            assert HOLD_SECONDS[0] <= step.hold_seconds <= HOLD_SECONDS[1]


def test_only_the_named_actions_are_drawn_and_one_at_least():
    killed = action_of("bookie killed")
    assert killed == Hit(Target.BOOKIE, Way.KILLED)
    assert {step.action for burst in islice(bursts(1, [killed, action_of("switchover")]), 5) for step in burst} == {
        killed,
        Maneuver.SWITCH_OVER,
    }
    with pytest.raises(ValueError, match="no action"):
        next(bursts(1, []))


def test_a_name_that_is_none_is_told_with_those_that_are():
    with pytest.raises(ValueError, match=r"'bookie stolen' is no action of the nemesis: use leader killed, .*bookie paused"):
        action_of("bookie stolen")
