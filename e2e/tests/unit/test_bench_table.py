"""The benchmark's figures, and what it leaves."""

from __future__ import annotations

import sys

import pytest
from test_kubectl import WrittenDown

from herdkeeper_e2e import bench_leadership
from herdkeeper_e2e.bench_leadership import table
from herdkeeper_e2e.sql_stack import SqlStack

GOES = ("delete", "namespace", "bench", "--wait=false")


@pytest.mark.parametrize(("violation", "code", "told"), [(None, 0, [GOES]), ("row 7 is lost", 1, [])])
def test_its_stack_goes_in_the_end_and_stays_to_be_looked_at_once_a_row_is_lost(
    monkeypatch: pytest.MonkeyPatch, violation: str | None, code: int, told: list[tuple[str, ...]]
) -> None:
    kubectl = WrittenDown("bench")
    monkeypatch.setattr(sys, "argv", ["bench_leadership"])
    monkeypatch.setattr(bench_leadership, "prepare", lambda _: (SqlStack(kubectl), None))
    monkeypatch.setattr(bench_leadership, "measure", lambda *_: violation)
    assert bench_leadership.main() == code
    assert kubectl.told == told


def test_the_figures_of_a_leader_change_are_its_extremes_its_median_and_the_one_below_which_nearly_all_are() -> None:
    seconds = [float(number) for number in range(20, 0, -1)]
    assert table("pause", {"switchover": seconds}).splitlines()[-1] == "| switchover | 20 | 1.00 | 10.50 | 19.00 | 20.00 |"


def test_one_figure_is_all_of_them() -> None:
    assert table("pause", {"SIGKILL": [0.5]}).splitlines()[-1] == "| SIGKILL | 1 | 0.50 | 0.50 | 0.50 | 0.50 |"
