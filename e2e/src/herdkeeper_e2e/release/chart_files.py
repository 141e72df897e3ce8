"""Writes what the chart takes from elsewhere in the repository: the table of settings in its README.md, and its alerts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from herdkeeper.commands.generated import write_or_compare
from herdkeeper_e2e.release.chart_settings import alert_groups, with_table

REPOSITORY = Path(__file__).resolve().parents[4]
CHART = REPOSITORY / "charts" / "herdkeeper"
ALERTS = REPOSITORY / "examples" / "monitoring" / "prometheus.yaml"


def main(check: Annotated[bool, typer.Option("--check", help="Write nothing; fail when a file is stale.")] = False) -> None:
    """Write the table of settings into the chart's README.md, and its alerts from examples/monitoring."""
    readme = with_table((CHART / "README.md").read_text(), (CHART / "values.yaml").read_text())
    write_or_compare(CHART, {"README.md": readme}, check=check, whole_folder=False)
    write_or_compare(CHART / "files", {"alerts.yaml": alert_groups(ALERTS.read_text())}, check=check, whole_folder=False)


if __name__ == "__main__":
    typer.run(main)
