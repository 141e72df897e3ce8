"""The navigation of mkdocs.yml: its tree of titles and pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any


def expanded(nav: list[Any], docs: Path) -> list[Any]:
    """The same tree, with each entry that names a folder (`decisions/`) replaced by its pages, README.md first."""
    found: list[Any] = []
    for entry in nav:
        match entry:
            case str() if entry.endswith("/"):
                pages = sorted((docs / entry).glob("*.md"), key=lambda page: (page.name != "README.md", page.name))
                found += [page.relative_to(docs).as_posix() for page in pages]
            case dict():
                found.append({title: expanded(below, docs) if isinstance(below, list) else below for title, below in entry.items()})
            case _:
                found.append(entry)
    return found


def pages(nav: list[Any]) -> Iterator[str]:
    """The pages of a tree, in their order."""
    for entry in nav:
        match entry:
            case str():
                yield entry
            case dict():
                for below in entry.values():
                    yield from pages(below if isinstance(below, list) else [below])
