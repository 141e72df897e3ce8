"""What a bookie's page of metrics says (the text format of Prometheus, names of BookKeeper 4.18). Pure."""

from __future__ import annotations

_READ_BYTES = "bookie_READ_BYTES"


def bytes_read(page: str) -> int:
    """What it has read of its ledgers for whoever asked, since it started. Raises ValueError when the page does not tell."""
    for line in page.splitlines():
        name, _, value = line.partition(" ")
        if name == _READ_BYTES:
            return int(float(value))
    raise ValueError(f"the page of metrics has no line {_READ_BYTES}")
