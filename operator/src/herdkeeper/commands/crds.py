"""`herdkeeper crds`: the CustomResourceDefinitions, generated from the models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from herdkeeper.commands.generated import write_or_compare
from herdkeeper.schema.crd import manifests


def crds(
    out: Annotated[Path, typer.Option(help="Folder for one YAML file per kind.")],
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail if the folder differs from the models.")] = False,
) -> None:
    """Write the CustomResourceDefinitions, one YAML file per kind. Files of removed kinds are deleted."""
    write_or_compare(out, manifests(), check=check)
