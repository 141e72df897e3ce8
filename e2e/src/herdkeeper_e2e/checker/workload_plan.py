"""The clients of each program. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Share:
    """One program's clients. Adding clients are numbered from `first_client`, and one client writes `register`."""

    first_client: int
    adders: int
    register: int
    readers: int
    pause_seconds: float = 0.02


PYTHON = Share(first_client=0, adders=3, register=0, readers=2)
JDBC = Share(first_client=100, adders=2, register=1, readers=1)
REGISTERS = 2
