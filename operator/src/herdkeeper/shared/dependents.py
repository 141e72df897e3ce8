"""Who refers to a resource."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Dependents:
    """Each as `Kind name`. `living`: those that shall go on; `deleting`: those that still delete their data with its help."""

    living: tuple[str, ...] = ()
    deleting: tuple[str, ...] = ()


NOBODY = Dependents()
"""No resource refers to it."""
