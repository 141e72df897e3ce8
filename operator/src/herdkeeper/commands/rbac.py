"""`herdkeeper rbac`: the operator's RBAC rules for the Helm chart."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from herdkeeper.commands.generated import write_or_compare
from herdkeeper.schema.access import chart_files


def rbac(
    out: Annotated[Path, typer.Option(help="Folder for the rule files that the Helm chart includes.")],
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail when the folder differs from the table of rules.")] = False,
) -> None:
    """Write the RBAC rules that the operator needs, as the chart's templates include them."""
    write_or_compare(out, chart_files(), check=check)
