"""Unknown as a value: a read that failed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Unknown:
    """A failed read, without any default, so code that needs the value must wait. `why` is a sentence, e.g. "zk-0:2181 did not answer"."""

    why: str


class NotThereYet(Unknown):
    """An object that somebody else is about to create."""


class NotListening(Unknown):
    """A refused connection: the process has ended or has yet to start. Silence may instead be a slow network or process."""
