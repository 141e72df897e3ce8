"""The dashboards: each query asks for what there is, by labels that it has, and Prometheus can read it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from herdkeeper_e2e.monitoring.dashboard import Dashboard, Panel, as_json
from herdkeeper_e2e.monitoring.dashboards import DASHBOARDS
from herdkeeper_e2e.monitoring.draw import chosen
from herdkeeper_e2e.monitoring.promtool import promtool
from herdkeeper_e2e.monitoring.queries import asked_by, known_labels
from herdkeeper_e2e.monitoring.server_metrics import SERVERS
from herdkeeper_e2e.release.chart_files import MONITORING

LABEL = re.compile(r"\{\{(\w+)\}\}")
GRAFANAS = frozenset({"datasource"})
PANELS = [(dashboard, panel) for dashboard in DASHBOARDS for panel in dashboard.panels]
dashboards = pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.uid)
panels = pytest.mark.parametrize(("dashboard", "panel"), PANELS, ids=[f"{each.uid}: {panel.title}" for each, panel in PANELS])


@panels
def test_a_query_asks_for_metrics_by_labels_that_there_are(dashboard: Dashboard, panel: Panel) -> None:
    asked = asked_by(chosen(panel.query.text))
    assert asked
    for selector in asked:
        assert selector.names, "no metric of the reference has such a name"
        for name in selector.names:
            assert name in known_labels()
            assert {label for label, _, _ in selector.matchers} <= known_labels()[name]


@panels
def test_a_legend_names_labels_that_one_of_the_metrics_has(dashboard: Dashboard, panel: Panel) -> None:
    had = {label for selector in asked_by(chosen(panel.query.text)) for name in selector.names for label in known_labels()[name]}
    assert set(LABEL.findall(panel.query.legend)) <= had


@panels
def test_stacks_of_two_namespaces_have_lines_and_names_of_their_own(dashboard: Dashboard, panel: Panel) -> None:
    """They usually have the same names. A single number counts all that is chosen."""
    had = {label for selector in asked_by(chosen(panel.query.text)) for name in selector.names for label in known_labels()[name]}
    if "namespace" in had and LABEL.search(panel.query.legend):
        assert "namespace" in LABEL.findall(panel.query.legend)
        assert all("namespace" in labels for labels in re.findall(r"\bby \(([^)]*)\)", panel.query.text))


@panels
def test_an_empty_panel_does_not_say_that_all_is_well_while_the_operator_is_not_read(dashboard: Dashboard, panel: Panel) -> None:
    assert panel.if_none == "" or panel.if_none.endswith(", or the operator is not read.")


@panels
def test_a_panel_says_what_it_shows_in_sentences(dashboard: Dashboard, panel: Panel) -> None:
    assert panel.about.endswith(".")


@panels
def test_a_query_uses_only_variables_that_its_dashboard_offers(dashboard: Dashboard, panel: Panel) -> None:
    offered = {variable.name for variable in dashboard.variables} | GRAFANAS
    assert set(re.findall(r"\$(\w+)", panel.query.text)) <= offered


@dashboards
def test_prometheus_can_read_every_query(dashboard: Dashboard, tmp_path: Path) -> None:
    queries = [panel.query.text for panel in dashboard.panels]
    rules = [{"record": f"panel:query:{number}", "expr": chosen(text)} for number, text in enumerate(queries)]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    promtool("check", "rules", str(file))


@dashboards
def test_a_variable_offers_the_values_of_a_label_that_its_metric_has(dashboard: Dashboard) -> None:
    for variable in dashboard.variables:
        assert variable.name in known_labels()[variable.metric]


@dashboards
def test_the_panels_of_a_dashboard_do_not_overlap_and_have_titles_of_their_own(dashboard: Dashboard) -> None:
    document = json.loads(as_json(dashboard))
    taken: set[tuple[int, int]] = set()
    for panel in document["panels"]:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken
        assert place["x"] + place["w"] <= 24
        taken |= cells
    assert len({panel["id"] for panel in document["panels"]}) == len(document["panels"])
    assert len({panel.title for panel in dashboard.panels}) == len(dashboard.panels)


def test_each_metric_of_the_servers_in_the_reference_is_used() -> None:
    rules = [
        rule for part in yaml.safe_load_all(MONITORING.read_text()) for group in part["spec"].get("groups", ()) for rule in group["rules"]
    ]
    texts = [rule["expr"] for rule in rules] + [chosen(panel.query.text) for _, panel in PANELS]
    used = {name for text in texts for selector in asked_by(text) for name in selector.names}
    assert {metric.name for server in SERVERS for metric in server.metrics if not used & set(metric.series)} == set()
