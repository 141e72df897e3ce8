"""`herdkeeper chart`: the generated files of the Helm chart."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from herdkeeper.commands.generated import write_or_compare
from herdkeeper.schema.access import rule_files
from herdkeeper.schema.admission import policy_files
from herdkeeper.schema.crd import chart_manifests


def chart(
    out: Annotated[Path, typer.Option(help="The chart's `files` folder, for `crds/`, `rules/` and `admission/`.")],
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail if the folder differs from the models.")] = False,
) -> None:
    """Write the chart's generated files: CRDs, which upgrades carry, RBAC rules, and what resources name."""
    write_or_compare(out / "crds", chart_manifests(), check=check)
    write_or_compare(out / "rules", rule_files(), check=check)
    write_or_compare(out / "admission", policy_files(), check=check)
