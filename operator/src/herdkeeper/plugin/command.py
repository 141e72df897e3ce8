"""Commands of `kubectl herdkeeper`: arguments and the resources that they name, calls and answers."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from herdkeeper.plugin.cluster import Cluster, ForbiddenError
from herdkeeper.plugin.kinds import POD, RESOURCES, Kind, resource_kind
from herdkeeper.plugin.screen import Screen
from herdkeeper.shared.objects import Json

FINE, WRONG, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: fine; something is wrong; bad arguments; ended by Ctrl-C."""
MOST_NAMES = 20


class BadInputError(Exception):
    """Invalid arguments. The message names the argument, its value and the fix."""


class Takes(Enum):
    """What follows an argument's name."""

    VALUE = "a value"
    NOTHING = "nothing"
    OPTIONAL = "a value or nothing"


@dataclass(frozen=True)
class Argument:
    """An argument of a command; an option if its name begins with `-`. Names of `kind`, KIND/NAME of `kinds`, or `choices` complete it."""

    name: str
    help: str
    takes: Takes = Takes.VALUE
    kind: Kind | None = None
    kinds: tuple[Kind, ...] = ()
    choices: tuple[str, ...] = ()
    default: str | None = None
    required: bool = False
    short: str = ""
    field_name: str = ""

    @property
    def is_option(self) -> bool:
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
    """One call of a command. `given` has the arguments' values by field; `pause` sleeps for so many seconds."""

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
    """A command. `writes`: it changes something at the API server, so it has `--dry-run`."""

    name: str
    summary: str
    run: Callable[[Call], Answer]
    arguments: tuple[Argument, ...] = ()
    description: str = ""
    writes: bool = False


def find(cluster: Cluster, kind: Kind, name: str, argument: str) -> Json:
    """Returns the resource that an argument names. Raises BadInputError, with the existing names, if there is none."""
    found = cluster.get(kind, name)
    if found is None:
        raise BadInputError(
            f"{argument} {name}: no {kind.name} of that name exists in the namespace {cluster.namespace}; {_there(cluster, kind)}"
        )
    return found


def find_any(cluster: Cluster, written: str, argument: str, kinds: Sequence[Kind] = RESOURCES) -> tuple[Kind, Json]:
    """Returns the resource `KIND/NAME`, by the kind's name, plural or short name. Errors tell of `kinds`; others are found, too."""
    word, slash, name = written.partition("/")
    kind = resource_kind(word)
    if not slash or not name:
        example = f"{kind.name}/NAME" if kind is not None else f"{kinds[0].name}/{word or 'NAME'}"
        raise BadInputError(f"{argument} {written}: name a resource as KIND/NAME, e.g. {example}")
    if kind is None:
        known = ", ".join(f"{each.name} ({each.short})" for each in RESOURCES)
        raise BadInputError(f"{argument} {written}: there is no kind {word}; there are {known}")
    return kind, find(cluster, kind, name, argument)


def new_file(written: str) -> Path:
    """Returns the path that `--file` names. Raises BadInputError if there is a file already, or not even its folder."""
    path = Path(written)
    if os.path.lexists(path):
        raise BadInputError(f"--file {path}: the file exists; name another")
    if not os.path.isdir(path.parent):
        raise BadInputError(f"--file {path}: there is no folder {path.parent}; make it, or name another file")
    return path


def write_new(path: Path, content: bytes) -> None:
    """Write a new file. Raises BadInputError if that fails."""
    try:
        with path.open("xb") as file:
            file.write(content)
    except OSError as error:
        raise BadInputError(f"--file {path}: it can't be written ({error.strerror})") from error


@dataclass(frozen=True)
class Seen:
    """What a caller may read of the stacks of a namespace. `unread` says of which kinds nothing is known, and why."""

    resources: tuple[Json, ...]
    pods: tuple[Json, ...]
    unread: tuple[str, ...]


def seen(cluster: Cluster) -> Seen:
    """Reads all resources and pods. Raises ForbiddenError if the caller may not read any kind of resource."""
    found: dict[Kind, tuple[Json, ...]] = {}
    refused: dict[Kind, ForbiddenError] = {}
    for kind in (*RESOURCES, POD):
        try:
            found[kind] = cluster.list(kind)
        except ForbiddenError as error:
            refused[kind] = error
    if set(RESOURCES) <= set(refused):
        raise refused[RESOURCES[0]]
    resources = tuple(item for kind in RESOURCES for item in found.get(kind, ()))
    return Seen(resources, found.get(POD, ()), tuple(f"No {kind.plural} are shown: {error}" for kind, error in refused.items()))


def nothing_in(namespace: str) -> str:
    """Returns the sentence for a namespace without resources of herdkeeper.io."""
    return f"There is nothing of herdkeeper.io in the namespace {namespace}; name another one with --namespace."


def listed(names: Sequence[str]) -> str:
    """Returns names as text, shortened if there are many."""
    shown = ", ".join(names[:MOST_NAMES])
    return f"{shown} and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else shown


def _there(cluster: Cluster, kind: Kind) -> str:
    names = [str(item["metadata"]["name"]) for item in cluster.list(kind)]
    return f"there is {listed(names)}" if len(names) == 1 else f"there are {listed(names)}" if names else "there is none at all"
