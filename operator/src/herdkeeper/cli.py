"""`herdkeeper run`, and the generators `herdkeeper crds | reference | network | rights | chart | plugin`.

Called as the console script `herdkeeper` or as `python -m herdkeeper.cli`. Each subcommand is a file of `commands/`.
"""

from __future__ import annotations

import typer

from herdkeeper.commands.chart import chart
from herdkeeper.commands.crds import crds
from herdkeeper.commands.network import network
from herdkeeper.commands.plugin import plugin
from herdkeeper.commands.reference import reference
from herdkeeper.commands.rights import rights
from herdkeeper.commands.run import run

app = typer.Typer(
    help="Herdkeeper: a replicated SQL database on Apache BookKeeper, on Kubernetes.", no_args_is_help=True, add_completion=False
)
app.command()(crds)
app.command()(reference)
app.command()(network)
app.command()(rights)
app.command()(chart)
app.command()(plugin)
app.command()(run)


def main() -> None:
    """The console script."""
    app()


if __name__ == "__main__":
    main()
