"""Arithmetic of a ZooKeeper ensemble: what a quorum is, what may be lost, and how many members a client must know."""

from __future__ import annotations

from collections.abc import Collection

SAFE_SIZE = 3
"""The smallest ensemble that survives the loss of a member."""


def majority(voters: int) -> int:
    """How many of the voters make a quorum."""
    return voters // 2 + 1


def address_of(known: str | None, members: Collection[str], port: int) -> str:
    """The connection string to publish: `known`, the one that is published already, as long as it serves its purpose.

    An ensemble survives the loss of all but a majority of its members, so a client that knows a majority finds one that serves. While the
    known string names as many of the members, it stays: a new one would restart every client for nothing. `members` are hosts, in order.
    """
    current = tuple(f"{host}:{port}" for host in members)
    named = set(known.split(",")) if known else set()
    if known and len(named & set(current)) >= majority(len(current)):
        return known
    return ",".join(current)
