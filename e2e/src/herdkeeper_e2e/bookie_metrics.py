"""Parses a bookie's metrics page (Prometheus text format, names of BookKeeper 4.18). Pure."""

from __future__ import annotations

_READ_BYTES = "bookie_READ_BYTES"


def bytes_read(page: str) -> int:
    """Returns the bytes that it has read for clients since its start. Raises ValueError if the page lacks them."""
    for line in page.splitlines():
        name, _, value = line.partition(" ")
        if name == _READ_BYTES:
            return int(float(value))
    raise ValueError(f"the page of metrics has no line {_READ_BYTES}")
