"""The documentation's table rows about reasons, verbatim, from `how_to.json`, which `make generate` writes."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from herdkeeper.plugin.reasons import reason_of
from herdkeeper.shared.reason import Reason

FILE = "how_to.json"
_CELL = re.compile(r"(?<!\\)\|")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")


@dataclass(frozen=True)
class Row:
    """A row of a table about reasons. `page` is a file of docs/, `heading` the table's heading."""

    reasons: tuple[str, ...]
    page: str
    heading: str
    subject: str
    cells: tuple[str, ...]

    @property
    def sentences(self) -> str:
        """The cells, one behind the other. Each but the first begins as a sentence does."""
        first, *others = self.cells
        return ". ".join((first, *(cell[:1].upper() + cell[1:] for cell in others)))


def rows_of(pages: Mapping[str, str]) -> Iterator[Row]:
    """Yields rows that begin with a reason, from pages (file name -> Markdown). Not of tables about verdicts: one has a reason's name."""
    for page, text in pages.items():
        heading = head = ""
        lines = text.splitlines()
        for line, following in itertools.pairwise((*lines, "")):
            if line.startswith("#"):
                heading, head = line.lstrip("# "), ""
            elif following.startswith("|---"):
                head = line
            elif line.startswith("|") and not head.startswith("| Verdict"):
                found = (cell.strip().replace("\\|", "|") for cell in _CELL.split(line.strip().strip("|")))
                subject, *cells = (_LINK.sub(r"\1", cell) for cell in found)
                if reasons := _reasons(subject):
                    yield Row(reasons, page, heading, subject, tuple(cell for cell in cells if cell))


def rows_text(rows: Iterable[Row]) -> str:
    return json.dumps([asdict(row) for row in rows], indent=1, ensure_ascii=False) + "\n"


def rows_about(reason: Reason) -> tuple[Row, ...]:
    stored = json.loads((Path(__file__).parent / FILE).read_text(encoding="utf-8"))
    rows = (Row(**{**row, "reasons": tuple(row["reasons"]), "cells": tuple(row["cells"])}) for row in stored)
    return tuple(row for row in rows if reason.value in row.reasons)


def _reasons(subject: str) -> tuple[str, ...]:
    """Returns the reasons that begin a first cell: `DrillFailed, DrillOverdue`, `NodeLost (on NodesReachable)`, `True, Drilled`."""
    words = re.findall(r"[A-Za-z]+", subject.partition("(")[0].replace("`", ""))
    return tuple(word for word in words if reason_of(word) is not None)
