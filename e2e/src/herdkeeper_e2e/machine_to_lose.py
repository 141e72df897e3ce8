"""Chooses a machine for a benchmark to freeze: one whose loss costs a leader, but nothing indispensable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MOST_BOOKIES = 1
"""Of the quickstart's four, with ensembles of three: after two losses, writes stop until one is back."""


@dataclass(frozen=True)
class Placement:
    """The machines of the pods. `replicas` are the SQL nodes with a replica, by name, `leader` one of them. `observers` are pods that the
    measurement needs, by role.
    """

    leader: str
    replicas: Mapping[str, str]
    bookies: Sequence[str]
    observers: Mapping[str, str]


@dataclass(frozen=True)
class Refused:
    """No machine may be lost, with a reason for each."""

    why: str


def who_shall_lead(seen: Placement) -> str | Refused:
    """Returns the SQL node whose machine may be lost with it as the leader: preferably the current one, without a change."""
    names = sorted(seen.replicas, key=lambda name: (name != seen.leader, name))
    for name in names:
        if why_not(seen, seen.replicas[name]) is None:
            return name
    reasons = "; ".join(f"{name} on {seen.replicas[name]}: {why_not(seen, seen.replicas[name])}" for name in names)
    return Refused(f"no machine with a replica may be lost ({reasons}): move what stands there, or make the cluster anew")


def why_not(seen: Placement, machine: str) -> str | None:
    """Returns why a machine must not be lost, or None."""
    on_it = sorted(what for what, where in seen.observers.items() if where == machine)
    if on_it:
        return f"it has {' and '.join(on_it)}"
    bookies = sum(where == machine for where in seen.bookies)
    if bookies > MOST_BOOKIES:
        return f"it has {bookies} of {len(seen.bookies)} bookies, without which nothing could be written"
    return None
