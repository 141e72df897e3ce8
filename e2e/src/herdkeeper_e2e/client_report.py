"""The final report of a client of the bookies (e2e/clients, `Report.java`). Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass

from herdkeeper_e2e.history import Gap, gap_table


class ReportError(ValueError):
    """A line is not a report. The message has it."""


@dataclass(frozen=True)
class ClientReport:
    """Promised and read entries."""

    acknowledged: int
    """Entries that the bookies acknowledged."""
    tailed: int
    """Entries that the following reader got without fencing."""
    read: int
    """Entries that a fresh client read back after the end."""
    gaps: tuple[Gap, ...]
    violation: str | None
    """The first entry that was wrong, out of order, or acknowledged but missing; or None."""

    def __str__(self) -> str:
        counts = f"{self.acknowledged} acknowledged, {self.tailed} followed, {self.read} read back"
        verdict = f"{counts}: {self.violation or 'nothing is missing'}"
        return f"{verdict}\n{gap_table(self.gaps)}" if self.gaps else verdict


def parse_report(line: str) -> ClientReport:
    """Parses a line of JSON. Raises ReportError."""
    try:
        found = json.loads(line)["report"]
        gaps = tuple(Gap(str(gap["fault"]), float(gap["seconds"]), int(gap["unknown_rows"])) for gap in found["gaps"])
        violation = found["violation"]
        acknowledged, tailed, read = (int(found[name]) for name in ("acknowledged", "tailed", "read"))
        return ClientReport(acknowledged, tailed, read, gaps, None if violation is None else str(violation))
    except (ValueError, KeyError, TypeError) as error:
        raise ReportError(f"this is no client's report: {line[:200]!r} ({error})") from error
