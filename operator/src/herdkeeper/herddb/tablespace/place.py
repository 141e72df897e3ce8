"""Where a SQL node runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """The Kubernetes node, and that one's zone; None where it can't be told."""

    machine: str | None = None
    zone: str | None = None
