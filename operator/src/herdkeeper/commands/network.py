"""`herdkeeper network`: the page about allowed connections, generated from the table of the NetworkPolicies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from herdkeeper.commands.generated import write_or_compare
from herdkeeper.schema.network_page import page


def network(
    out: Annotated[Path, typer.Option(help="Markdown file to write.")],
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail if the file differs from the table.")] = False,
) -> None:
    """Write the page about allowed connections."""
    write_or_compare(out.parent, {out.name: page()}, check=check, whole_folder=False)
