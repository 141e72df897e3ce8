"""Generates docs/metrics.md, docs/metrics-of-servers.md and the chart's dashboards."""

from __future__ import annotations

from typing import Annotated

import typer

from herdkeeper.commands.generated import write_or_compare
from herdkeeper_e2e.monitoring.dashboard import as_json
from herdkeeper_e2e.monitoring.dashboards import DASHBOARDS
from herdkeeper_e2e.monitoring.reference_page import page
from herdkeeper_e2e.monitoring.served import REPOSITORY
from herdkeeper_e2e.monitoring.served_page import page as page_of_servers

CHART_DASHBOARDS = REPOSITORY / "charts" / "herdkeeper" / "files" / "dashboards"


def main(check: Annotated[bool, typer.Option("--check", help="Write nothing; fail when a file is stale.")] = False) -> None:
    """Write the two pages of metrics and the dashboards of the chart."""
    pages = {"metrics.md": page(), "metrics-of-servers.md": page_of_servers()}
    write_or_compare(REPOSITORY / "docs", pages, check=check, whole_folder=False)
    files = {f"{dashboard.uid}.json": as_json(dashboard) for dashboard in DASHBOARDS}
    write_or_compare(CHART_DASHBOARDS, files, check=check, whole_folder=False)


if __name__ == "__main__":
    typer.run(main)
