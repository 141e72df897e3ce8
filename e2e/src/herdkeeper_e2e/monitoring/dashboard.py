"""A Grafana dashboard: rows of panels with their queries, and its JSON. Source of the format: Grafana's dashboard model, schema 39."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

Unit = Literal["short", "s", "ms", "bytes", "Bps", "percent", "percentunit", "ops", "reqps", "suffix:days"]
Colour = Literal["green", "orange", "red", "blue", "super-light-blue"]
Limits = tuple[tuple[float | None, Colour], ...]
"""The colour of the smallest values, then the values from which on there is another one."""
_WIDTH, _HEIGHT = 24, 8
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_CHOICE_OF_SOURCE = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}


@dataclass(frozen=True)
class Query:
    """A query. `legend` names a line; Grafana fills in `{{label}}`."""

    text: str
    legend: str


@dataclass(frozen=True)
class Look:
    """How values are shown. A chart begins at `low` (None: at the smallest value) and marks its limits. `states` are values with names."""

    unit: Unit = "short"
    low: float | None = 0
    limits: Limits = ()
    states: tuple[tuple[float, str, Colour], ...] = ()


def red_from(value: float) -> Limits:
    return ((None, "green"), (value, "red"))


def red_below(value: float) -> Limits:
    return ((None, "red"), (value, "green"))


@dataclass(frozen=True)
class Panel:
    """One chart. `about` says what it shows, and when to worry; `if_none` what it means if there is nothing to show."""

    title: str
    about: str
    query: Query
    look: Look = Look()
    kind: Literal["timeseries", "state-timeline", "stat", "table"] = "timeseries"
    if_none: str = ""


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
        "templating": {"list": [_CHOICE_OF_SOURCE, *map(_variable, dashboard.variables)]},
        "panels": [{"id": number, **panel} for number, panel in enumerate(panels, 1)],
    }
    return json.dumps(document, indent=1) + "\n"


def _place(y: int, x: int, width: int, height: int) -> dict[str, int]:
    return {"x": x, "y": y, "w": width, "h": height}


def _panel(panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    target: dict[str, Any] = {"refId": "A", "datasource": _SOURCE, "expr": panel.query.text, "legendFormat": panel.query.legend}
    if panel.kind in ("stat", "table"):
        target |= {"instant": True, "range": False}
    if panel.kind == "table":
        target["format"] = "table"
    # Labels that are equal for every line, or only Prometheus' own.
    hidden = {"excludeByName": dict.fromkeys(("Time", "Value", "__name__", "container", "endpoint", "instance", "job", "service"), True)}
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": _SOURCE,
        "gridPos": place,
        "targets": [target],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        "options": _OPTIONS.get(panel.kind, {}),
        **({"transformations": [{"id": "organize", "options": hidden}]} if panel.kind == "table" else {}),
    }


_LEGEND = {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True}}
_OPTIONS: dict[str, dict[str, Any]] = {"timeseries": _LEGEND, "state-timeline": {**_LEGEND, "showValue": "never", "rowHeight": 0.8}}


def _defaults(panel: Panel) -> dict[str, Any]:
    look = panel.look
    found: dict[str, Any] = {"unit": look.unit}
    if panel.if_none:
        found["noValue"] = panel.if_none
    if look.limits:
        found["thresholds"] = {"mode": "absolute", "steps": [{"color": colour, "value": value} for value, colour in look.limits]}
    if look.states:
        named = {f"{value:g}": {"index": number, "text": text, "color": colour} for number, (value, text, colour) in enumerate(look.states)}
        found["mappings"] = [{"type": "value", "options": named}]
    if panel.kind == "timeseries":
        found |= {} if look.low is None else {"min": look.low}
        found |= {"custom": {"thresholdsStyle": {"mode": "dashed"}}} if look.limits else {}
    return found


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
