"""How closely an audit looks."""

from __future__ import annotations

from enum import StrEnum


class AuditDepth(StrEnum):
    """What is read of the copies."""

    LIGHT = "Light"
    """Of each bookie's share of each segment the first entry, the last, and some in between, others in each run; all of it where one of
    these is not good."""
    DEEP = "Deep"
    """Every copy of every entry."""
