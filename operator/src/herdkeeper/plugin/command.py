"""What a command of `kubectl herdkeeper` is: its arguments, what it is given, and what it answers."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from herdkeeper.plugin.cluster import Cluster
from herdkeeper.plugin.kinds import Kind
from herdkeeper.plugin.screen import Screen
from herdkeeper.shared.objects import Json

FINE, WRONG, BAD_INPUT = 0, 1, 2
"""Exit codes: fine; something is wrong; the arguments are not what the command takes."""


class BadInputError(Exception):
    """Arguments that can't be. The message names the argument, its value and the fix."""


class Takes(Enum):
    """What stands behind an argument's name."""

    VALUE = "a value"
    NOTHING = "nothing"
    OPTIONAL = "a value or nothing"


@dataclass(frozen=True)
class Argument:
    """An argument of a command; one whose name begins with `-` is an option. Names of `kind`, or `choices`, complete it."""

    name: str
    help: str
    takes: Takes = Takes.VALUE
    kind: Kind | None = None
    choices: tuple[str, ...] = ()
    default: str | None = None
    required: bool = False
    short: str = ""
    field_name: str = ""

    @property
    def is_option(self) -> bool:
        """Whether it is given by its name."""
        return self.name.startswith("-")

    @property
    def field(self) -> str:
        """Its name in what was given: `as` and others are words of Python."""
        return self.field_name or self.name.lstrip("-").replace("-", "_")

    @property
    def value_name(self) -> str:
        """How usage lines call its value."""
        return self.name.lstrip("-").upper().replace("-", "_")


@dataclass(frozen=True)
class Answer:
    """What a command found or did: as text for people, and as a document for programs. No text: all of it was written before."""

    text: str
    document: Json
    exit_code: int = FINE


@dataclass(frozen=True)
class Call:
    """One call of a command. `given` has the arguments' values by their fields; `rescan_after_seconds` waits so many seconds."""

    given: argparse.Namespace
    cluster: Cluster
    screen: Screen
    pause: Callable[[float], None]

    def tell(self, text: str) -> None:
        """Writes a text for people before the answer is there; nothing where a document is asked for."""
        if text and self.given.output == "text":
            self.screen.write(text)


@dataclass(frozen=True)
class Command:
    """A command. `writes`: it asks the API server to change something, so that `--dry-run` is there."""

    name: str
    summary: str
    run: Callable[[Call], Answer]
    arguments: tuple[Argument, ...] = ()
    description: str = ""
    writes: bool = False
