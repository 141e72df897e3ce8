"""Dependents of a resource."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Dependents:
    """Dependents as `Kind name`. `not_deleted` use the resource; `deleting` still need it to delete their data."""

    not_deleted: tuple[str, ...] = ()
    deleting: tuple[str, ...] = ()


NO_DEPENDENTS = Dependents()
"""No resource refers to it."""
