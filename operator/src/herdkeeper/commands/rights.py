"""`herdkeeper rights`: the page that tells what the operator may do, generated from the table of its rights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from herdkeeper.commands.generated import write_or_compare
from herdkeeper.schema.rights_page import page


def rights(
    out: Annotated[Path, typer.Option(help="Markdown file to write.")],
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail when the file differs from what the table says.")] = False,
) -> None:
    """Write what the operator may do."""
    write_or_compare(out.parent, {out.name: page()}, check=check, whole_folder=False)
