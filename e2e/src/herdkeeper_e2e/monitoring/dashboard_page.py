"""A dashboard's JSON and what its queries gave, as one HTML page that loads and runs nothing. Pure.

It stands for Grafana where that can't run: the same places, titles, units, limits and legends, by the defaults of Grafana for what the JSON
leaves out. What only Grafana has is left out: choosing, zooming, its links.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import Any

from herdkeeper_e2e.monitoring.chart import COLOURS, Line, Scale, Size, Span, line_chart, states
from herdkeeper_e2e.monitoring.grafana_units import written

_PAGE, _COLUMNS, _GAP, _LINE = 1440, 24, 8, 30
_AROUND, _CHART = 26, 172
_WITHOUT_LIMITS = {"steps": [{"color": "green", "value": None}, {"color": "red", "value": 80}]}
"""What Grafana takes for a stat."""


@dataclass(frozen=True)
class Series:
    """A series of an answer of Prometheus."""

    labels: Mapping[str, str]
    values: tuple[tuple[float, float], ...]


Answers = Mapping[str, Sequence[Series]]
"""By the text of the query, as it stands in the JSON."""


def page(dashboard: Mapping[str, Any], answers: Answers, span: Span) -> str:
    """The whole file."""
    when = f"{datetime.fromtimestamp(span.begin, UTC):%Y-%m-%d %H:%M} to {datetime.fromtimestamp(span.end, UTC):%H:%M} UTC"
    panels = "".join(_panel(panel, answers, span) for panel in dashboard["panels"])
    title = escape(dashboard["title"])
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style></head>'
        f"<body><header><h1>{title}</h1><p>{when}</p></header><main>{panels}</main></body></html>\n"
    )


def _panel(panel: Mapping[str, Any], answers: Answers, span: Span) -> str:
    place = panel["gridPos"]
    style = f"grid-area:{place['y'] + 1}/{place['x'] + 1}/span {place['h']}/span {place['w']}"
    if panel["type"] == "row":
        return f'<h2 style="{style}">{escape(panel["title"])}</h2>'
    about = f'<p class="about">{escape(panel["description"])}</p>' if panel.get("description") else ""
    found = [(target, series) for target in panel["targets"] for series in answers.get(target["expr"], ())]
    nothing = panel["fieldConfig"]["defaults"].get("noValue", "No data")
    content = _content(panel, found, span) if found else f'<p class="none">{escape(nothing)}</p>'
    return f'<section style="{style}"><h3>{escape(panel["title"])}</h3>{about}{content}</section>'


def _content(panel: Mapping[str, Any], found: Sequence[tuple[Mapping[str, Any], Series]], span: Span) -> str:
    lines = [Line(legend_of(target["legendFormat"], series.labels), series.values) for target, series in found]
    size = Size((_PAGE - _GAP * 4) / _COLUMNS * panel["gridPos"]["w"] - _AROUND, _CHART)
    defaults = panel["fieldConfig"]["defaults"]
    match panel["type"]:
        case "timeseries":
            limits = _limits(defaults) if defaults.get("custom", {}).get("thresholdsStyle", {}).get("mode", "off") != "off" else ()
            scale = Scale(defaults["unit"], defaults.get("min"), defaults.get("max"), limits)
            return line_chart(lines, span, scale, size) + _legend((f"c{number % COLOURS}", line.name) for number, line in enumerate(lines))
        case "state-timeline":
            words = _words(defaults)
            return states(lines, span, words, Size(size.width, size.height + 30)) + _legend(
                (colour, word) for word, colour in words.values()
            )
        case "stat":
            return _stat(lines, defaults)
        case "table":
            hidden = panel["transformations"][0]["options"]["excludeByName"]
            return _table([series.labels for _, series in found], hidden)
        case other:
            raise ValueError(f"panel type {other!r} is not known here")


def legend_of(text: str, labels: Mapping[str, str]) -> str:
    """Fills in `{{label}}`, as Grafana does."""
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda found: labels.get(found[1], ""), text)


def _limits(defaults: Mapping[str, Any]) -> tuple[tuple[float, str], ...]:
    return tuple((step["value"], step["color"]) for step in defaults["thresholds"]["steps"] if step["value"] is not None)


def _colour(value: float, defaults: Mapping[str, Any]) -> str:
    steps = defaults.get("thresholds", _WITHOUT_LIMITS)["steps"]
    return str([step["color"] for step in steps if step["value"] is None or value >= step["value"]][-1])


def _words(defaults: Mapping[str, Any]) -> dict[float, tuple[str, str]]:
    return {float(value): (word["text"], word["color"]) for each in defaults.get("mappings", ()) for value, word in each["options"].items()}


def _stat(lines: Sequence[Line], defaults: Mapping[str, Any]) -> str:
    shown = ""
    for line in lines:
        value = line.values[-1][1]
        name = f"<span>{escape(line.name)}</span>" if len(lines) > 1 else ""
        shown += f'<div>{name}<b class="{_colour(value, defaults)}">{written(defaults["unit"], value)}</b></div>'
    return f'<div class="stat">{shown}</div>'


def _table(rows: Sequence[Mapping[str, str]], hidden: Mapping[str, bool]) -> str:
    names = sorted({name for row in rows for name in row if not hidden.get(name)})
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{escape(row.get(name, ''))}</td>" for name in names) + "</tr>" for row in rows)
    return f'<div class="rest"><table><tr>{head}</tr>{body}</table></div>'


def _legend(entries: Iterable[tuple[str, str]]) -> str:
    return '<p class="rest">' + "".join(f'<span><i class="{style}"></i>{escape(words)}</span> ' for style, words in entries) + "</p>"


_LIGHT = ("#56962b", "#b8860b", "#2a93a8", "#d4631c", "#c4302b", "#1f78c1", "#a5348f", "#705da0", "#2f575e", "#7a5c00")
_DARK = ("#7eb26d", "#eab839", "#6ed0e0", "#ef843c", "#e24d42", "#5195ce", "#d683ce", "#a89ee0", "#9fc5b8", "#cca300")


def _lines(colours: Sequence[str]) -> str:
    return "".join(f"--c{number}:{colour};" for number, colour in enumerate(colours))


def _coloured(name: str) -> str:
    own = f"var(--{name})"
    return f".{name}{{fill:{own};stroke:{own};background:{own}}}.stat .{name}{{color:{own}}}"


_NAMED = ("green", "orange", "red", "grey", "blue", "super-light-blue", *(f"c{number}" for number in range(COLOURS)))
_STYLE = f"""
:root{{--page:#f4f5f5;--panel:#fff;--ink:#24292e;--soft:#5c6470;--edge:#dcdfe3;--green:#2f8a3a;--orange:#d9730d;--red:#cf2530;
--grey:#9aa3ad;--blue:#3274d9;--super-light-blue:#c0d8ff;{_lines(_LIGHT)}}}
@media (prefers-color-scheme:dark){{:root{{--page:#111217;--panel:#181b1f;--ink:#ccccdc;--soft:#9a9cab;--edge:#2c3037;--green:#56a64b;
--orange:#ff9830;--red:#f2495c;--grey:#6b7280;--blue:#5794f2;--super-light-blue:#2b4a7a;{_lines(_DARK)}}}}}
body{{margin:0 auto;padding:16px;width:{_PAGE - _GAP * 4}px;background:var(--page);color:var(--ink);
font:13px/1.35 system-ui,"DejaVu Sans",sans-serif}}
header{{display:flex;gap:16px;align-items:baseline}}h1{{font-size:18px;margin:0}}header p{{color:var(--soft);margin:0}}
main{{display:grid;grid-template-columns:repeat({_COLUMNS},1fr);grid-auto-rows:{_LINE}px;gap:{_GAP}px}}
h2{{font-size:15px;margin:0;align-self:end}}h3{{font-size:14px;margin:0}}
section{{background:var(--panel);border:1px solid var(--edge);border-radius:3px;padding:7px 12px;display:flex;flex-direction:column;
min-width:0}}
.about{{color:var(--soft);font-size:11px;margin:0 0 4px}}.none{{margin:auto;color:var(--soft)}}
svg{{flex:none;width:100%}}svg text{{font-size:11px;fill:var(--soft)}}.grid{{stroke:var(--edge)}}
.line{{fill:none!important;stroke-width:1.5}}.limit{{stroke-width:1.2;stroke-dasharray:6 4}}rect{{stroke:none!important}}
.rest{{overflow:auto;margin:2px 0 0;font-size:12px}}.rest span{{white-space:nowrap;margin-right:8px}}
.rest i{{display:inline-block;width:13px;height:4px;border-radius:2px;margin-right:4px;vertical-align:3px}}
table{{border-collapse:collapse;width:100%}}th,td{{text-align:left;padding:4px 10px 4px 0;border-bottom:1px solid var(--edge)}}
.stat{{display:flex;flex-wrap:wrap;gap:4px 24px;margin:auto;justify-content:center}}.stat div{{text-align:center}}
.stat span{{display:block;color:var(--soft)}}.stat b{{font-size:34px;background:none!important}}
{"".join(map(_coloured, _NAMED))}
"""
