"""The depth of an audit."""

from __future__ import annotations

from enum import StrEnum


class AuditDepth(StrEnum):
    """Which copies are read."""

    LIGHT = "Light"
    """Of each bookie's share of a segment, the first entry, the last, and some in between, different ones in each run; all of it if one of
    them is bad."""
    DEEP = "Deep"
    """Every copy of every entry."""
