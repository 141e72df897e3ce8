"""The dependents of a resource."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Dependents:
    """Each as `Kind name`. `not_deleted`: those that use it; `deleting`: those that still need it to delete their data."""

    not_deleted: tuple[str, ...] = ()
    deleting: tuple[str, ...] = ()


NO_DEPENDENTS = Dependents()
"""No resource refers to it."""
