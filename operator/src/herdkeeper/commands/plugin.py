"""`herdkeeper plugin`: the plugin's page, and what it tells of the documentation's tables about reasons."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from herdkeeper.commands.generated import write_or_compare
from herdkeeper.plugin import how_to
from herdkeeper.plugin.page import page
from herdkeeper.plugin.table import COMMANDS

PAGES = ("how-to.md", "checkpoint.md", "restore.md")
"""The pages with tables about reasons."""


def plugin(
    docs: Annotated[Path, typer.Option(help="The folder docs: its tables are read, and kubectl-plugin.md is written there.")],
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail when something differs from what the commands say.")] = False,
) -> None:
    """Write the page of `kubectl herdkeeper`, and the rows that its `explain` shows."""
    rows = how_to.rows_text(how_to.rows_of({name: (docs / name).read_text() for name in PAGES}))
    write_or_compare(docs, {"kubectl-plugin.md": page(COMMANDS)}, check=check, whole_folder=False)
    write_or_compare(Path(how_to.__file__).parent, {how_to.FILE: rows}, check=check, whole_folder=False)
