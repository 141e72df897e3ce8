"""`herdkeeper reference`: the field reference, generated from the models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from herdkeeper.commands.generated import write_or_compare
from herdkeeper.schema.field_reference import page


def reference(
    out: Annotated[Path, typer.Option(help="Markdown file to write.")],
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail if the file differs from the models.")] = False,
) -> None:
    """Write the field reference: every field of every kind, its type, default, unit and rules."""
    write_or_compare(out.parent, {out.name: page()}, check=check, whole_folder=False)
