"""`herdkeeper run`: the operator."""

from __future__ import annotations

import typer

from herdkeeper.settings import Settings, SettingsError


def run() -> None:
    """Run the operator. Its settings are environment variables HERDKEEPER_*, as the chart sets them."""
    from herdkeeper.process.main import run as run_operator

    try:
        settings = Settings.from_environment()
    except SettingsError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from error
    run_operator(settings)
