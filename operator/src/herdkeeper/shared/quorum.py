"""Arithmetic of a ZooKeeper ensemble: quorum, tolerated losses, and how many members a client must know."""

from __future__ import annotations

from collections.abc import Collection

SAFE_SIZE = 3
"""The smallest ensemble that survives the loss of a member."""


def majority(voters: int) -> int:
    return voters // 2 + 1


def address_of(known: str | None, members: Collection[str], port: int) -> str:
    """Returns the connection string to publish: `known`, the published one, while it still names enough members.

    An ensemble survives while a majority does, so a client that knows a majority finds a live member. Keeping the string avoids a restart
    of every client. `members` are hosts, in order.
    """
    current = tuple(f"{host}:{port}" for host in members)
    named = set(known.split(",")) if known else set()
    if known and len(named & set(current)) >= majority(len(current)):
        return known
    return ",".join(current)
