"""Commands of `kubectl herdkeeper`: arguments, calls and answers."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from herdkeeper.plugin.api_server import ApiServer
from herdkeeper.plugin.kinds import Kind
from herdkeeper.plugin.screen import Screen
from herdkeeper.shared.objects import Json

FINE, WRONG, BAD_INPUT = 0, 1, 2
"""Exit codes: fine; something is wrong; bad arguments."""


class BadInputError(Exception):
    """Invalid arguments. The message names the argument, its value and the fix."""


class Takes(Enum):
    """What follows an argument's name."""

    VALUE = "a value"
    NOTHING = "nothing"
    OPTIONAL = "a value or nothing"


@dataclass(frozen=True)
class Argument:
    """An argument of a command; an option if its name begins with `-`. Names of `kind`, or `choices`, complete it."""

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
        """Whether it is an option."""
        return self.name.startswith("-")

    @property
    def field(self) -> str:
        """Its name as an attribute: `as` and others are Python keywords."""
        return self.field_name or self.name.lstrip("-").replace("-", "_")

    @property
    def value_name(self) -> str:
        """The placeholder of its value in usage lines."""
        return self.name.lstrip("-").upper().replace("-", "_")

    @property
    def meaning(self) -> str:
        """Its help, with its values, if they are few, and its default."""
        choices = f" ({', '.join(self.choices)})" if 0 < len(self.choices) < 10 else ""
        default = f"; {self.default} when absent" if self.default else ""
        return f"{self.help}{choices}{default}"


@dataclass(frozen=True)
class Answer:
    """The result of a command: text for people, a document for programs. Without text, everything was already written."""

    text: str
    document: Json
    exit_code: int = FINE


@dataclass(frozen=True)
class Call:
    """One call of a command. `given` has the arguments' values by field; `rescan_after_seconds` sleeps."""

    given: argparse.Namespace
    cluster: ApiServer
    screen: Screen
    pause: Callable[[float], None]

    def tell(self, text: str) -> None:
        """Writes a text for people before the answer is there; nothing where a document is asked for."""
        if text and self.given.output == "text":
            self.screen.write(text)


@dataclass(frozen=True)
class Command:
    """A command. `writes`: it changes something at the API server, so it has `--dry-run`."""

    name: str
    summary: str
    run: Callable[[Call], Answer]
    arguments: tuple[Argument, ...] = ()
    description: str = ""
    writes: bool = False
