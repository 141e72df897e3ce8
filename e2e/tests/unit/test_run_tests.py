"""What a run of all tests says: how many passed, what failed and where to look, and what need not run again."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from herdkeeper_e2e.run_tests import STAGES, Console, Passed, busy_seconds, closing_lines, content_key, failed_tests, table, what_failed
from herdkeeper_e2e.stage_graph import Kind, Outcome, Result, Stage

PYTEST = """
FAILED operator/tests/unit/test_a.py::test_one - assert 1 == 2
ERROR spark-jobs/tests/unit/test_b.py::test_two[a b] - RuntimeError: no store
=========== 1 failed, 4522 passed, 1 error in 358.20s (0:05:58) ===========
"""
MAVEN = """
[INFO] Running io.herdkeeper.SettingsTest
[INFO] Tests run: 12, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.2 s
[ERROR]   SettingsTest.aPortIsRefused:42 expected: <1> but was: <2>
[ERROR] Tests run: 47, Failures: 1, Errors: 0, Skipped: 0
"""


def result(name, outcome, log=Path("/nowhere"), seconds=0.0):
    return Result(Stage(name, ("true",), Kind.SUITE, "one"), outcome, log, seconds, 2 * seconds)


def failed(folder, name, text):
    log = folder / f"{name}.log"
    log.write_text(text)
    return result(name, Outcome.FAILED, log)


@pytest.mark.parametrize(
    ("text", "closing", "tests"),
    [
        (PYTEST, ["=========== 1 failed, 4522 passed, 1 error in 358.20s (0:05:58) ==========="], PYTEST.splitlines()[1:3]),
        (MAVEN, ["[ERROR] Tests run: 47, Failures: 1, Errors: 0, Skipped: 0"], [MAVEN.splitlines()[3]]),
        ("a.py:3: error: no [x]\nFound 1 error\n", [], ["a.py:3: error: no [x]"]),
        ("built\nno space left\n", [], ["built", "no space left"]),
        ("scenario: e2e/tests/sql/test_a.py\n", ["scenario: e2e/tests/sql/test_a.py"], ["scenario: e2e/tests/sql/test_a.py"]),
        ("", [], []),
    ],
    ids=["pytest", "Maven", "mypy", "a program that names no test", "a scenario by turn", "nothing"],
)
def test_a_log_tells_how_many_passed_and_which_failed(text, closing, tests):
    lines = text.splitlines()
    assert closing_lines(lines) == closing
    assert failed_tests(lines) == tests


def test_the_end_of_a_stage_is_told_with_the_counts_of_its_tests(tmp_path):
    said = []
    console = Console(0, said.append)
    console.tell("unit", failed(tmp_path, "unit", PYTEST))
    assert "unit: FAILED" in said[0]
    assert "4522 passed" in said[1]


def test_a_failure_names_stage_test_log_and_explanation(tmp_path):
    (tmp_path / "test_1_quickstart.explained.txt").touch()
    lines = what_failed([failed(tmp_path, "unit", PYTEST), result("lint", Outcome.PASSED)], tmp_path)
    assert lines == [
        f"unit failed; its log: {tmp_path}/unit.log",
        "  FAILED operator/tests/unit/test_a.py::test_one - assert 1 == 2",
        "  ERROR spark-jobs/tests/unit/test_b.py::test_two[a b] - RuntimeError: no store",
        f"conditions, events, logs of pods: {tmp_path}/test_1_quickstart.explained.txt",
        "go on with what has not passed: make test RESUME=1",
    ]


@pytest.mark.parametrize("stages", [1, 3, 6])
def test_however_much_failed_ten_lines_tell_of_it(tmp_path, stages):
    text = "".join(f"FAILED a.py::test_{number} - assert False\n" for number in range(100))
    lines = what_failed([failed(tmp_path, f"stage-{number}", text) for number in range(stages)], tmp_path)
    assert len(lines) <= 10
    assert lines[0].startswith("stage-0 failed (and ")


def test_the_table_has_each_stage_with_its_seconds():
    text = table([result("unit", Outcome.PASSED, seconds=358.4), result("e2e", Outcome.FAILED, seconds=9)], 400, 731.6)
    assert [line.split() for line in text.splitlines()] == [
        ["stage", "seconds", "CPU"],
        ["unit", "358", "717", "passed"],
        ["e2e", "9", "18", "FAILED"],
        ["in", "all", "400", "732"],
    ]


def test_a_stage_counts_as_passed_for_the_very_same_content_only(tmp_path):
    passed = Passed(tmp_path / "passed.json")
    assert passed.of("a") == frozenset()
    passed.keep("a", {"unit", "lint"})
    assert passed.of("a") == {"unit", "lint"}
    assert passed.of("b") == frozenset()


def test_the_key_changes_with_files_that_are_committed_or_not_and_with_what_was_chosen(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("built/\n")
    keys = [content_key(tmp_path)]
    (tmp_path / "new").write_text("1")
    keys.append(content_key(tmp_path))
    subprocess.run(["git", "-C", str(tmp_path), "add", "."], check=True)
    assert content_key(tmp_path) == keys[-1]
    (tmp_path / "new").write_text("2")
    keys.append(content_key(tmp_path))
    (tmp_path / "new").unlink()
    keys.append(content_key(tmp_path))
    keys.append(content_key(tmp_path, "sql_4"))
    assert len(set(keys)) == len(keys)

    (tmp_path / "built").mkdir()
    (tmp_path / "built/result").write_text("1")
    assert content_key(tmp_path, "sql_4") == keys[-1]


def test_the_machine_s_busy_seconds_are_all_but_idling_and_waiting_for_disks():
    ticks = os.sysconf("SC_CLK_TCK")
    stat = f"cpu  {1 * ticks} {2 * ticks} {3 * ticks} {1000 * ticks} {500 * ticks} {4 * ticks} {5 * ticks} {6 * ticks} 7 8\ncpu0 1 1 1\n"
    assert busy_seconds(stat) == 21


def test_each_stage_comes_after_stages_that_there_are():
    names = [stage.name for stage in STAGES]
    assert len(set(names)) == len(names)
    assert {name for stage in STAGES for name in stage.after} <= set(names)
