"""`herdkeeper crds | reference | network | rights | chart`: files that are generated from the models and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from herdkeeper.commands.generated import write_or_compare
from herdkeeper.schema import field_reference, network_page, rights_page
from herdkeeper.schema.access import rule_files
from herdkeeper.schema.admission import policy_files
from herdkeeper.schema.crd import chart_manifests, manifests

Check = Annotated[bool, typer.Option("--check", help="Write nothing; fail if what is there differs from its source.")]
Page = Annotated[Path, typer.Option("--out", help="Markdown file to write.")]


def crds(out: Annotated[Path, typer.Option(help="Folder for one YAML file per kind.")], check: Check = False) -> None:
    """Write the CustomResourceDefinitions, one YAML file per kind. Files of removed kinds are deleted."""
    write_or_compare(out, manifests(), check=check)


def reference(out: Page, check: Check = False) -> None:
    """Write the field reference: every field of every kind, its type, default, unit and rules."""
    write_or_compare(out.parent, {out.name: field_reference.page()}, check=check, whole_folder=False)


def network(out: Page, check: Check = False) -> None:
    """Write the page about allowed connections."""
    write_or_compare(out.parent, {out.name: network_page.page()}, check=check, whole_folder=False)


def rights(out: Page, check: Check = False) -> None:
    """Write the page about the operator's rights."""
    write_or_compare(out.parent, {out.name: rights_page.page()}, check=check, whole_folder=False)


def chart(
    out: Annotated[Path, typer.Option(help="The chart's `files` folder, for `crds/`, `rules/` and `admission/`.")], check: Check = False
) -> None:
    """Write the chart's generated files: CRDs, which upgrades carry, RBAC rules, and what resources name."""
    write_or_compare(out / "crds", chart_manifests(), check=check)
    write_or_compare(out / "rules", rule_files(), check=check)
    write_or_compare(out / "admission", policy_files(), check=check)
