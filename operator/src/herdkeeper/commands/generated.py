"""Writes generated files, or compares them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import typer


def stale_files(folder: Path, contents: Mapping[str, str], *, whole_folder: bool) -> tuple[str, ...]:
    """Returns a sentence about each file that differs. With `whole_folder`, also about YAML files without a source."""
    found = []
    for name, text in contents.items():
        path = folder / name
        if not path.is_file():
            found.append(f"{path} is missing")
        elif path.read_text() != text:
            found.append(f"{path} differs from its source")
    if whole_folder and folder.is_dir():
        found += [f"{path} has no source any more" for path in sorted(folder.glob("*.yaml")) if path.name not in contents]
    return tuple(found)


def write_or_compare(folder: Path, contents: Mapping[str, str], *, check: bool, whole_folder: bool = True) -> None:
    """Write `contents` (file name -> text) into `folder`. With `check`, write nothing and exit with 1 if something is stale."""
    stale = stale_files(folder, contents, whole_folder=whole_folder)
    if check:
        for sentence in stale:
            typer.echo(f"{sentence}: run `make generate` and commit the result", err=True)
        if stale:
            raise typer.Exit(code=1)
        return
    folder.mkdir(parents=True, exist_ok=True)
    if whole_folder:
        for path in folder.glob("*.yaml"):
            if path.name not in contents:
                path.unlink()
    for name, text in contents.items():
        (folder / name).write_text(text)
