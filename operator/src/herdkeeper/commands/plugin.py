"""`herdkeeper plugin`: the plugin's page, the page of all reasons, and the documentation's rows for `explain`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from herdkeeper.commands.generated import write_or_compare
from herdkeeper.plugin import how_to
from herdkeeper.plugin.page import page
from herdkeeper.plugin.reasons_page import reasons_page
from herdkeeper.plugin.table import COMMANDS


def pages_with_reasons(docs: Path) -> dict[str, str]:
    """Returns the pages with tables about reasons: path in docs/ to Markdown."""
    alone = (docs / f"{name}.md" for name in ("checkpoint", "archive", "destinations", "restore"))
    pages = [*sorted((docs / "how-to").glob("*.md")), *alone]
    return {page.relative_to(docs).as_posix(): page.read_text() for page in pages}


def plugin(
    docs: Annotated[Path, typer.Option(help="The folder docs, whose tables are read. kubectl-plugin.md and reasons.md are written there.")],
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail if something differs from the commands.")] = False,
) -> None:
    """Write the pages of `kubectl herdkeeper` and of all reasons, and the rows for `explain`."""
    rows = tuple(how_to.rows_of(pages_with_reasons(docs)))
    write_or_compare(docs, {"kubectl-plugin.md": page(COMMANDS), "reasons.md": reasons_page(rows)}, check=check, whole_folder=False)
    write_or_compare(Path(how_to.__file__).parent, {how_to.FILE: how_to.rows_text(rows)}, check=check, whole_folder=False)
