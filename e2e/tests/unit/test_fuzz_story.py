"""What a seed draws."""

from __future__ import annotations

from collections import Counter
from itertools import islice

from herdkeeper_e2e.fuzz.story import (
    OUTSIDE,
    STORIES_OF_A_WORLD,
    Checkpoints,
    Move,
    Refusal,
    Sql,
    Step,
    Story,
    Trouble,
    draw,
    endless,
    world_of,
)

_STORIES = [draw(seed) for seed in range(40 * STORIES_OF_A_WORLD)]


def _steps(story: Story) -> list[Step]:
    return [step for act in story.acts for script in act.scripts for step in script]


def test_a_seed_draws_the_same_story_each_time_and_another_one_another() -> None:
    assert draw(7) == draw(7)
    assert draw(7) != draw(8)


def test_each_trouble_and_each_kind_of_step_comes_by() -> None:
    assert {act.trouble for story in _STORIES for act in story.acts} == set(Trouble)
    kinds = Counter(type(step) for story in _STORIES for step in _steps(story))
    assert len(kinds) == 7
    assert {step.times for story in _STORIES for step in _steps(story) if isinstance(step, Checkpoints)} == {1, 20}


def test_stories_of_one_world_share_it_and_only_the_first_tells_the_default_tablespace() -> None:
    for story in _STORIES:
        assert story.world == world_of(story.seed - story.seed % STORIES_OF_A_WORLD)
        assert story.tells_default is (story.seed % STORIES_OF_A_WORLD == 0)


def test_a_node_is_away_for_longer_than_the_log_is_kept_only_where_a_log_is_dropped_and_has_its_first_ledger() -> None:
    absences = [story for story in _STORIES for act in story.acts if act.trouble is Trouble.LONG_ABSENCE]
    assert absences
    for story in absences:
        assert story.acts[0].trouble is Trouble.LONG_ABSENCE
        assert story.tells_default
        assert story.world.retention_millis is not None
        assert story.birth.stop_at_ledger is None


def test_bookies_are_late_in_some_clusters_also_where_a_node_is_away_for_longer_than_the_log_is_kept() -> None:
    assert {story.world.bookies_late for story in _STORIES} == {True, False}
    assert any(story.world.bookies_late for story in _STORIES for act in story.acts if act.trouble is Trouble.LONG_ABSENCE)


def test_a_tablespace_without_a_habit_has_none_of_its_statements() -> None:
    for story in _STORIES:
        for number, habit in enumerate(story.habits):
            statements = [step.sql for act in story.acts for step in act.scripts[number] if isinstance(step, Sql)]
            if Refusal.TRUNCATE not in habit:
                assert not [sql for sql in statements if sql.startswith("TRUNCATE")]
            if Refusal.LOCK not in habit:
                assert not [sql for sql in statements if "FOR UPDATE" in sql]
            if Refusal.DEFINITION not in habit:
                assert not [sql for sql in statements if sql.startswith(("CREATE", "ALTER", "DROP"))]


def test_no_two_rows_of_a_tablespace_are_given_one_tag() -> None:
    for story in _STORIES:
        for number in range(len(story.habits)):
            steps = [step for act in story.acts for step in act.scripts[number]]
            tags = [tag for step in steps if isinstance(step, Sql) for tag in step.tags]
            tags += [step.first_tag for step in steps if isinstance(step, Move) and step.writers]
            assert len(tags) == len(set(tags))


def test_a_row_is_locked_inside_of_a_transaction_only() -> None:
    locks = [step for story in _STORIES for step in _steps(story) if isinstance(step, Sql) and "FOR UPDATE" in step.sql]
    assert locks
    assert OUTSIDE not in {step.slot for step in locks}


def test_an_endless_script_has_statements_of_every_habit_and_moves_no_leader() -> None:
    steps = list(islice(endless(7), 3000))
    assert list(islice(endless(7), 3000)) == steps
    assert not any(isinstance(step, Move) for step in steps)
    said = " ".join(step.sql for step in steps if isinstance(step, Sql))
    for kind in ("TRUNCATE", "ALTER TABLE", "DROP TABLE", "CREATE UNIQUE INDEX", "FOR UPDATE", "VALUES (?, ?, ?), (?, ?, ?)"):
        assert kind in said, kind
    tags = [tag for step in steps if isinstance(step, Sql) for tag in step.tags]
    assert len(set(tags)) == len(tags)
