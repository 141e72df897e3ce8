"""The dependents of a resource."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Dependents:
    """Each as `Kind name`. `living`: those that use it; `deleting`: those that still need it to delete their data."""

    living: tuple[str, ...] = ()
    deleting: tuple[str, ...] = ()


NOBODY = Dependents()
"""No resource refers to it."""
