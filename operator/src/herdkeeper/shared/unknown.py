"""Unknown as a value: what could not be read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Unknown:
    """A read that failed. It has no fields to compare and no defaults: whoever needs the value waits.

    `why` is a sentence for people, e.g. "ZooKeeper at zk-0:2181 did not answer within 5 s".
    """

    why: str


class NotListening(Unknown):
    """Nobody listens at the address: a process that ended or has yet to start. Silence may be a slow network or a slow process."""
