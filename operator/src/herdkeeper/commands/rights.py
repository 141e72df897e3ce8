"""`herdkeeper rights`: the page about the operator's rights, generated from their table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from herdkeeper.commands.generated import write_or_compare
from herdkeeper.schema.rights_page import page


def rights(
    out: Annotated[Path, typer.Option(help="Markdown file to write.")],
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail if the file differs from the table.")] = False,
) -> None:
    """Write the page about the operator's rights."""
    write_or_compare(out.parent, {out.name: page()}, check=check, whole_folder=False)
