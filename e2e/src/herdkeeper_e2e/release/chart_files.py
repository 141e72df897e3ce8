"""Writes what the chart takes from elsewhere in the repository: the table of settings in its README.md, its alerts and its PodMonitor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from herdkeeper.commands.generated import write_or_compare
from herdkeeper_e2e.release.chart_settings import spec_of, with_table

REPOSITORY = Path(__file__).resolve().parents[4]
CHART = REPOSITORY / "charts" / "herdkeeper"
MONITORING = REPOSITORY / "examples" / "monitoring" / "prometheus.yaml"


def main(check: Annotated[bool, typer.Option("--check", help="Write nothing; fail when a file is stale.")] = False) -> None:
    """Write the table of settings into the chart's README.md, and its alerts and PodMonitor from examples/monitoring."""
    readme = with_table((CHART / "README.md").read_text(), (CHART / "values.yaml").read_text())
    write_or_compare(CHART, {"README.md": readme}, check=check, whole_folder=False)
    example = MONITORING.read_text()
    # Indented as in the example: the one is put under `spec:` as it is, the other is read.
    files = {"alerts.yaml": spec_of("PrometheusRule", example), "pod-monitor.yaml": spec_of("PodMonitor", example)}
    write_or_compare(CHART / "files", files, check=check, whole_folder=False)


if __name__ == "__main__":
    typer.run(main)
