"""The benchmark's figures."""

from herdkeeper_e2e.bench_leadership import table


def test_the_figures_of_a_leader_change_are_its_extremes_its_median_and_the_one_below_which_nearly_all_are() -> None:
    seconds = [float(number) for number in range(20, 0, -1)]
    assert table("pause", {"switchover": seconds}).splitlines()[-1] == "| switchover | 20 | 1.00 | 10.50 | 19.00 | 20.00 |"


def test_one_figure_is_all_of_them() -> None:
    assert table("pause", {"SIGKILL": [0.5]}).splitlines()[-1] == "| SIGKILL | 1 | 0.50 | 0.50 | 0.50 | 0.50 |"
