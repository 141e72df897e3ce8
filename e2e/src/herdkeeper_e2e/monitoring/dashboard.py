"""A Grafana dashboard: rows of panels with their queries, and its JSON. Source of the format: Grafana's dashboard model, schema 39."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

Unit = Literal["short", "s", "bytes", "Bps", "percent", "percentunit", "dateTimeFromNow", "ops", "bool"]
_WIDTH, _HEIGHT = 24, 8
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True)
class Query:
    """A query. `legend` names a line; Grafana fills in `{{label}}`."""

    text: str
    legend: str


@dataclass(frozen=True)
class Panel:
    """One chart. `about` says what it shows, and when to worry."""

    title: str
    about: str
    query: Query
    unit: Unit = "short"
    kind: Literal["timeseries", "stat", "table"] = "timeseries"
    more: tuple[Query, ...] = ()

    @property
    def queries(self) -> tuple[Query, ...]:
        return (self.query, *self.more)


@dataclass(frozen=True)
class Row:
    """At most four panels side by side."""

    title: str
    panels: tuple[Panel, ...]


def row(title: str, *panels: Panel) -> Row:
    return Row(title, panels)


@dataclass(frozen=True)
class Variable:
    """A choice among the values of a metric's label."""

    name: str
    label: str
    metric: str


@dataclass(frozen=True)
class Dashboard:
    """A dashboard. `uid` is its id in links, so it never changes."""

    uid: str
    title: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]

    @property
    def panels(self) -> tuple[Panel, ...]:
        return tuple(panel for row in self.rows for panel in row.panels)


def as_json(dashboard: Dashboard) -> str:
    """Returns the JSON for Grafana's import."""
    panels: list[dict[str, Any]] = []
    top = 0
    for row in dashboard.rows:
        panels.append({"type": "row", "title": row.title, "collapsed": False, "panels": [], "gridPos": _place(top, 0, _WIDTH, 1)})
        width = _WIDTH // len(row.panels)
        panels += [_panel(panel, _place(top + 1, index * width, width, _HEIGHT)) for index, panel in enumerate(row.panels)]
        top += 1 + _HEIGHT
    document = {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "tags": ["herdkeeper"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [_datasource(), *map(_variable, dashboard.variables)]},
        "panels": [{"id": number, **panel} for number, panel in enumerate(panels, 1)],
    }
    return json.dumps(document, indent=1) + "\n"


def _place(y: int, x: int, width: int, height: int) -> dict[str, int]:
    return {"x": x, "y": y, "w": width, "h": height}


def _panel(panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    at_once = panel.kind != "timeseries"
    targets = [
        {"refId": chr(ord("A") + number), "datasource": _SOURCE, "expr": query.text, "legendFormat": query.legend}
        | ({"instant": True, "range": False} if at_once else {})
        | ({"format": "table"} if panel.kind == "table" else {})
        for number, query in enumerate(panel.queries)
    ]
    # Labels that are equal for every line, or only Prometheus' own.
    hidden = {"excludeByName": dict.fromkeys(("Time", "Value", "__name__", "container", "endpoint", "instance", "job", "service"), True)}
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": _SOURCE,
        "gridPos": place,
        "targets": targets,
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}} if panel.kind == "timeseries" else {},
        **({"transformations": [{"id": "organize", "options": hidden}]} if panel.kind == "table" else {}),
    }


def _datasource() -> dict[str, Any]:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}


def _variable(variable: Variable) -> dict[str, Any]:
    return {
        "name": variable.name,
        "label": variable.label,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": f"label_values({variable.metric}, {variable.name})", "refId": variable.name},
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "sort": 1,
    }
