"""Stages run as a graph: beside one another where they may, and what one of them does to the others when it fails."""

from __future__ import annotations

import sys

import pytest

from herdkeeper_e2e.stage_graph import Graph, Kind, Outcome, Stage

PASSES, FAILS = ("true",), ("false",)


def suite(name, command=PASSES, lane="one", after=()):
    return Stage(name, command, Kind.SUITE, lane, after)


def waits_for(path):
    """A command that ends when somebody has made the file."""
    return (sys.executable, "-c", f"import pathlib, time\nwhile not pathlib.Path({str(path)!r}).exists(): time.sleep(0.01)")


@pytest.fixture
def run(tmp_path):
    def go(*stages, remembered=()):
        told = []
        graph = Graph(stages, tmp_path, lambda name, result: told.append((name, result.outcome if result else None)), remembered)
        graph.run(60, lambda: None)
        return graph, told

    return go


def outcomes(graph):
    return {name: result.outcome for name, result in graph.results.items()}


def test_a_stage_begins_when_those_before_it_have_passed(run):
    graph, told = run(suite("first", lane="one"), suite("second", lane="two", after=("first",)))
    assert told == [("first", None), ("first", Outcome.PASSED), ("second", None), ("second", Outcome.PASSED)]
    assert set(outcomes(graph).values()) == {Outcome.PASSED}


def test_lanes_run_side_by_side(run, tmp_path):
    made = tmp_path / "made"
    graph, _ = run(suite("waits", waits_for(made), "one"), suite("makes", ("touch", str(made)), "two"))
    assert outcomes(graph) == {"waits": Outcome.PASSED, "makes": Outcome.PASSED}


def test_stages_of_one_lane_run_one_at_a_time_in_their_order(run):
    _, told = run(suite("first"), suite("second"))
    assert [name for name, _ in told] == ["first", "first", "second", "second"]


def test_a_stage_that_can_t_begin_yet_does_not_keep_its_lane_from_the_next(run):
    _, told = run(suite("needs", after=("slow",)), suite("next"), suite("slow", lane="two", after=("next",)))
    assert [name for name, outcome in told if outcome] == ["next", "slow", "needs"]


def test_a_suite_that_fails_keeps_only_what_needs_it_from_running(run):
    graph, _ = run(suite("fails", FAILS), suite("needs", after=("fails",)), suite("needs-that", after=("needs",)), suite("other"))
    assert outcomes(graph) == {
        "fails": Outcome.FAILED,
        "needs": Outcome.NOT_RUN,
        "needs-that": Outcome.NOT_RUN,
        "other": Outcome.PASSED,
    }


def test_a_check_that_fails_ends_the_others_with_all_their_processes(run, tmp_path):
    never = waits_for(tmp_path / "never")
    shell = ("sh", "-c", '"$@"; true', "sh", *never)
    graph, _ = run(suite("long", shell, "two"), Stage("check", FAILS, Kind.CHECK, "one"), suite("later"))
    assert outcomes(graph) == {"check": Outcome.FAILED, "long": Outcome.ENDED, "later": Outcome.ENDED}


def test_what_passed_before_is_not_run_and_holds_nobody_up(run):
    graph, told = run(suite("before", FAILS), suite("now", after=("before",)), remembered={"before"})
    assert outcomes(graph) == {"before": Outcome.REMEMBERED, "now": Outcome.PASSED}
    assert [name for name, _ in told] == ["now", "now"]


def test_each_stage_has_a_log_and_its_seconds_of_cpu(run, tmp_path):
    graph, _ = run(suite("burns", (sys.executable, "-c", "print('said'); sum(range(3_000_000))")))
    result = graph.results["burns"]
    assert result.log.read_text() == "said\n"
    assert result.cpu_seconds > 0
    assert result.seconds > 0


def test_whoever_waits_hears_that_stages_still_run(tmp_path):
    made = tmp_path / "made"
    graph = Graph([suite("waits", waits_for(made))], tmp_path, lambda *_: None)
    heard = []

    def heartbeat():
        heard.append(graph.running)
        made.touch()

    graph.run(0.01, heartbeat)
    assert heard[0] == ["waits"]
    assert outcomes(graph) == {"waits": Outcome.PASSED}


def test_an_interrupted_run_leaves_no_process_behind(tmp_path):
    graph = Graph([suite("waits", waits_for(tmp_path / "never"))], tmp_path, lambda *_: None)

    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        graph.run(0.01, interrupt)
    # the thread that reaps the process tells so
    assert graph._ended.get(timeout=60)[0] == "waits"
