"""Writes the page docs/metrics.md."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from herdkeeper.commands.generated import write_or_compare
from herdkeeper_e2e.monitoring.reference_page import page

REPOSITORY = Path(__file__).resolve().parents[4]


def main(check: Annotated[bool, typer.Option("--check", help="Write nothing; fail when a file is stale.")] = False) -> None:
    """Write docs/metrics.md."""
    write_or_compare(REPOSITORY / "docs", {"metrics.md": page()}, check=check, whole_folder=False)


if __name__ == "__main__":
    typer.run(main)
