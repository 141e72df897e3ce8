"""A problem as a value: why something that a resource needs can't be used."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper.shared.reason import Reason


@dataclass(frozen=True)
class Problem:
    """Why something can't be used, or is not in force yet. `why` is a sentence, and names what to do if a person has to do it."""

    reason: Reason
    why: str
