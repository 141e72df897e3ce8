"""Which machine a benchmark may have stand still: one whose loss costs a leader, and nothing that nobody could go on without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MOST_BOOKIES = 1
"""Of the quickstart's four, whose ledgers are spread over three: after two nothing can be written until one is back."""


@dataclass(frozen=True)
class Placement:
    """Where the pods run, as machines' names. `replicas` are the SQL nodes with a copy, by name; `leader` is one of them. `observers` are
    those that must go on for there to be something to measure, by what they are."""

    leader: str
    replicas: Mapping[str, str]
    bookies: Sequence[str]
    observers: Mapping[str, str]


@dataclass(frozen=True)
class Refused:
    """No machine may be lost, and why, for each."""

    why: str


def who_shall_lead(seen: Placement) -> str | Refused:
    """The SQL node whose machine may be lost with it as the leader: the present one if possible, since that changes nothing."""
    names = sorted(seen.replicas, key=lambda name: (name != seen.leader, name))
    for name in names:
        if why_not(seen, seen.replicas[name]) is None:
            return name
    reasons = "; ".join(f"{name} on {seen.replicas[name]}: {why_not(seen, seen.replicas[name])}" for name in names)
    return Refused(f"no machine with a replica may be lost ({reasons}): move what stands there, or make the cluster anew")


def why_not(seen: Placement, machine: str) -> str | None:
    """Why a machine must not be lost; None when it may."""
    on_it = sorted(what for what, where in seen.observers.items() if where == machine)
    if on_it:
        return f"it has {' and '.join(on_it)}"
    bookies = sum(where == machine for where in seen.bookies)
    if bookies > MOST_BOOKIES:
        return f"it has {bookies} of {len(seen.bookies)} bookies, without which nothing could be written"
    return None
