"""The dashboards are drawn without Grafana: a page from JSON and series; and each panel shows a played stack, by a real Prometheus."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from herdkeeper_e2e.monitoring.chart import Span
from herdkeeper_e2e.monitoring.dashboard import Dashboard, Look, Panel, Query, as_json, red_below, red_from, row
from herdkeeper_e2e.monitoring.dashboard_page import Series, legend_of, page
from herdkeeper_e2e.monitoring.dashboards import DASHBOARDS
from herdkeeper_e2e.monitoring.draw import Ask, asker, chosen, draw
from herdkeeper_e2e.monitoring.grafana_units import written
from herdkeeper_e2e.monitoring.played_stack import playing, series
from herdkeeper_e2e.monitoring.queries import known_labels

SPAN = Span(0, 300, 30)
LOADS = re.compile(r"""//|\bsrc=|\bhref=|url\(|@import|<script|<link|<iframe""", re.IGNORECASE)
PANELS = [panel for dashboard in DASHBOARDS for panel in dashboard.panels]
panels = pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.title)


class Balanced(HTMLParser):
    """Tracks open tags."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Does nothing."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def drawn(panel: Panel, *found: Series) -> str:
    """The page of one panel, whole and without anything that a browser would load."""
    dashboard = json.loads(as_json(Dashboard("uid", "Title", (), (row("Row", panel),))))
    html = page(dashboard, {panel.query.text: found}, SPAN)
    assert LOADS.search(html) is None
    parser = Balanced()
    parser.feed(html)
    assert parser.open == []
    return html.partition("</h3>")[2]


def of(pod: str, *values: float) -> Series:
    return Series({"pod": pod}, tuple((30.0 * number, value) for number, value in enumerate(values)))


def lines(html: str) -> list[list[tuple[float, float]]]:
    found = re.findall(r'<polyline[^>]* points="([^"]*)"', html)
    return [[(float(x), float(y)) for x, _, y in (place.partition(",") for place in line.split())] for line in found]


QUERY = Query("q", "{{pod}}")


def test_a_line_is_drawn_from_zero_in_the_unit_of_its_panel_with_its_limit_and_legend() -> None:
    html = drawn(Panel("Title", "About.", QUERY, Look("ms", limits=red_from(1500))), of("a", 500, 1000, 2000), of("b", 100, 100, 100))
    assert re.findall(r">([\d.]+ s)<", html) == ["0.0 s", "0.5 s", "1.0 s", "1.5 s", "2.0 s"]
    rising, flat = lines(html)
    assert rising[0][1] > rising[1][1] > rising[2][1]
    assert len({y for _, y in flat}) == 1
    ((limit,),) = [re.findall(r'class="limit red"[^>]* y1="([\d.]+)"', html)]
    assert rising[1][1] > float(limit) > rising[2][1]
    assert re.findall(r"</i>([^<]*)</span>", html) == ["a", "b"]


def test_a_line_is_broken_where_there_was_no_value() -> None:
    broken = Series({"pod": "a"}, ((0, 1), (30, 1), (60, float("nan")), (90, 2), (120, 2), (240, 3), (270, 3)))
    assert [len(line) for line in lines(drawn(Panel("Title", "About.", QUERY), broken))] == [2, 2, 2]


def test_a_state_has_its_colour_for_as_long_as_it_lasts() -> None:
    look = Look(states=((1, "leads", "blue"), (0, "follows", "super-light-blue")))
    html = drawn(Panel("Title", "About.", QUERY, look, "state-timeline"), of("a", 1, 1, 0, 0, 0, 1))
    found = re.findall(r'<rect class="([\w-]+)"[^>]* width="([\d.]+)"[^>]*><title>([^<]*)</title>', html)
    assert [(colour, title) for colour, _, title in found] == [
        ("blue", "a: leads"),
        ("super-light-blue", "a: follows"),
        ("blue", "a: leads"),
    ]
    first, second, _ = (float(width) for _, width, _ in found)
    assert second == pytest.approx(1.5 * first, rel=0.01)


@pytest.mark.parametrize(
    ("limits", "value", "colour"),
    [(red_from(1), 0, "green"), (red_from(1), 1, "red"), (red_below(14), 13.9, "red"), (red_below(14), 80, "green")],
)
def test_a_stat_has_the_colour_of_its_limits(limits: Any, value: float, colour: str) -> None:
    html = drawn(Panel("Title", "About.", QUERY, Look("suffix:days", limits=limits), "stat"), of("a", value))
    assert f'<b class="{colour}">{value:g} days</b>' in html or f'<b class="{colour}">{value:.1f} days</b>' in html


def test_a_table_shows_the_labels_and_names_can_not_become_a_part_of_the_page() -> None:
    evil = "<script>&"
    html = drawn(Panel("Title", "About.", QUERY, kind="table"), Series({"name": evil, "instance": "hidden"}, ((0, 0),)))
    assert "<th>name</th>" in html
    assert "<td>&lt;script&gt;&amp;</td>" in html
    assert "hidden" not in html


def test_a_panel_without_data_says_what_that_means() -> None:
    assert ">No data<" in drawn(Panel("Title", "About.", QUERY))
    assert ">All is well.<" in drawn(Panel("Title", "About.", QUERY, if_none="All is well."))


@pytest.mark.parametrize(
    ("unit", "value", "words"),
    [
        ("s", 0, "0 s"),
        ("s", 5400, "1.50 hours"),
        ("ms", 2.5, "2.50 ms"),
        ("bytes", 3 * 2**20, "3 MiB"),
        ("percentunit", 0.85, "85%"),
        ("Bps", -1500, "-1.50 kB/s"),
        ("short", float("nan"), "nan"),
    ],
)
def test_a_value_is_written_as_grafana_does(unit: str, value: float, words: str) -> None:
    assert written(unit, value) == words


def test_the_played_series_have_the_labels_of_the_reference() -> None:
    for each in series(0):
        assert each.labels.keys() == known_labels()[each.name], each.name


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    with playing() as address:
        yield asker(address)


@panels
def test_a_panel_shows_each_stack_under_a_name_of_its_own(panel: Panel, ask: Ask) -> None:
    answered = ask("query", {"query": chosen(panel.query.text)})["result"]
    assert answered
    names = [legend_of(panel.query.legend, each["metric"]) for each in answered]
    assert panel.kind == "table" or len(names) == len(set(names))


def test_a_page_of_each_dashboard_is_written(ask: Ask, tmp_path: Path) -> None:
    made = draw(ask, tmp_path, 3600)
    assert {file.stem for file in made} == {dashboard.uid for dashboard in DASHBOARDS}
    for file in made:
        assert "No data" not in file.read_text()


@panels
def test_a_single_number_has_limits_of_its_own(panel: Panel) -> None:
    """Without them, Grafana shows every number below 80 in green, and above in red."""
    assert panel.kind != "stat" or panel.look.limits


@pytest.mark.parametrize("title", ["Not Ready", "Bookies that are not writable"])
def test_a_number_is_not_zero_while_its_metrics_are_missing(title: str, ask: Ask) -> None:
    (panel,) = [panel for panel in PANELS if panel.title == title]
    nowhere = chosen(panel.query.text.replace("$namespace", "nowhere"))
    assert ask("query", {"query": nowhere})["result"] == []
