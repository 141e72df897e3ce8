"""The place of a SQL node."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """The Kubernetes node, and its zone; None if unknown."""

    machine: str | None = None
    zone: str | None = None
