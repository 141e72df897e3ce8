"""Each commit has a long scenario of its own, until all of them have come by."""

from __future__ import annotations

import subprocess

import pytest

from herdkeeper_e2e.scenario_by_turn import LEFT_OUT, REPOSITORY, WITHOUT_TURN, ChoiceError, named, turn_of_commit, turns


def test_every_long_scenario_takes_a_turn_but_those_that_are_left_out():
    files = {turn.partition("::")[0] for turn in turns(REPOSITORY)}
    scenarios = (path for path in (REPOSITORY / "e2e/tests").glob("*/test_*.py") if path.parent.name not in ("unit", *WITHOUT_TURN))
    there = {str(path.relative_to(REPOSITORY)) for path in scenarios}
    assert {path for path in there if not any(name in path for name in LEFT_OUT)} == files


def test_all_of_them_come_by_within_sixty_commits():
    assert len(turns(REPOSITORY)) == len(set(turns(REPOSITORY))) <= 60


def test_a_file_that_is_too_long_takes_a_turn_for_each_of_its_functions():
    assert len([turn for turn in turns(REPOSITORY) if "test_storage_1_bookies_leave.py::test_" in turn]) == 3


def test_a_scenario_is_chosen_by_a_part_of_its_name_that_no_other_one_has():
    assert named(["a/test_sql_4_x.py", "a/test_sql_5_x.py"], "sql_4") == "a/test_sql_4_x.py"
    with pytest.raises(ChoiceError, match=r"SCENARIO is 'sql_': name one of a/test_sql_4_x.py, a/test_sql_5_x.py"):
        named(["a/test_sql_4_x.py", "a/test_sql_5_x.py"], "sql_")
    with pytest.raises(ChoiceError, match=r"SCENARIO is 'b': name one of a/test_sql_4_x.py"):
        named(["a/test_sql_4_x.py"], "b")


def test_the_next_commit_has_the_next_turn_and_a_shallow_clone_one_too(tmp_path):
    def git(*arguments):
        subprocess.run(["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", *arguments], check=True)

    git("init", "-q", "whole")
    for _ in range(2):
        git("-C", "whole", "commit", "-q", "--allow-empty", "-m", "x")
    assert turn_of_commit(tmp_path / "whole") == 2
    git("clone", "-q", "--depth", "1", f"file://{tmp_path}/whole", "shallow")
    assert turn_of_commit(tmp_path / "shallow") > 2
