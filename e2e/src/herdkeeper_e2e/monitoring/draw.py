"""Draws the chart's dashboards without Grafana: asks a Prometheus for each panel, and writes one page each (`make dashboards`)."""

from __future__ import annotations

import json
import re
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from herdkeeper_e2e.monitoring.chart import Span
from herdkeeper_e2e.monitoring.dashboard_page import Series, page
from herdkeeper_e2e.monitoring.generate import CHART_DASHBOARDS
from herdkeeper_e2e.monitoring.played_stack import playing
from herdkeeper_e2e.monitoring.served import REPOSITORY

DRAWN = REPOSITORY / "target" / "dashboards"
_POINTS = 360
Ask = Callable[[str, Mapping[str, str]], Any]
"""Sends a request to a path of Prometheus' API with these parameters, and returns its data."""


def draw(ask: Ask, folder: Path, seconds: float) -> list[Path]:
    """Writes the page of each dashboard over the last seconds, with everything chosen. Returns the files."""
    now = time.time()
    span = Span(now - seconds, now, max(15.0, seconds / _POINTS))
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for file in sorted(CHART_DASHBOARDS.glob("*.json")):
        dashboard = json.loads(file.read_text())
        targets = [target for panel in dashboard["panels"] for target in panel.get("targets", ())]
        answers = {target["expr"]: _answer(ask, target, span) for target in targets}
        made.append(folder / f"{file.stem}.html")
        made[-1].write_text(page(dashboard, answers, span))
    return made


def chosen(query: str) -> str:
    """The query as Grafana sends it when everything is chosen."""
    return re.sub(r"\$\w+", ".*", query)


def _answer(ask: Ask, target: Mapping[str, Any], span: Span) -> list[Series]:
    asked = {"query": chosen(target["expr"])}
    if target.get("instant"):
        found = ask("query", asked | {"time": f"{span.end}"})["result"]
        return [_series(each["metric"], [each["value"]]) for each in found]
    times = {"start": f"{span.begin}", "end": f"{span.end}", "step": f"{span.step}"}
    return [_series(each["metric"], each["values"]) for each in ask("query_range", asked | times)["result"]]


def _series(labels: Mapping[str, str], values: list[tuple[float, str]]) -> Series:
    return Series(labels, tuple((float(at), float(value)) for at, value in values))


def asker(address: str) -> Ask:
    """Of a Prometheus at an HTTP address."""

    def ask(path: str, parameters: Mapping[str, str]) -> Any:
        with urllib.request.urlopen(f"{address.rstrip('/')}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=60) as answer:
            return json.load(answer)["data"]

    return ask


def main(
    prometheus: Annotated[str, typer.Option(help="HTTP address of a Prometheus; without it, a stack is played.")] = "",
    hours: Annotated[float, typer.Option(help="How far back the pages go.")] = 3,
    folder: Annotated[Path, typer.Option(help="Where the pages go.")] = DRAWN,
) -> None:
    """Write one HTML page for each dashboard."""
    if prometheus:
        made = draw(asker(prometheus), folder, hours * 3600)
    else:
        with playing() as address:
            made = draw(asker(address), folder, hours * 3600)
    typer.echo("\n".join(map(str, made)))


if __name__ == "__main__":
    typer.run(main)
