"""`herdkeeper run`, and the generators `herdkeeper crds | reference | network | rights | chart | plugin`.

Called as the console script `herdkeeper` or as `python -m herdkeeper.cli`. The subcommands are in `commands/`.
"""

from __future__ import annotations

import typer

from herdkeeper.commands.generate import chart, crds, network, reference, rights
from herdkeeper.commands.plugin import plugin
from herdkeeper.commands.run import run

app = typer.Typer(
    help="Herdkeeper: a replicated SQL database on Apache BookKeeper, on Kubernetes.", no_args_is_help=True, add_completion=False
)
for command in (crds, reference, network, rights, chart, plugin, run):
    app.command()(command)


def main() -> None:
    """The console script."""
    app()


if __name__ == "__main__":
    main()
