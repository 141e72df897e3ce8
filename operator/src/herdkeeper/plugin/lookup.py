"""Finds the resources that arguments name."""

from __future__ import annotations

from collections.abc import Sequence

from herdkeeper.plugin.api_server import ApiServer
from herdkeeper.plugin.command import BadInputError
from herdkeeper.plugin.kinds import RESOURCES, Kind, resource_kind
from herdkeeper.shared.objects import Json

MOST_NAMES = 20


def find(cluster: ApiServer, kind: Kind, name: str, argument: str) -> Json:
    """Returns the resource that an argument names. Raises BadInputError, with the existing names, if there is none."""
    found = cluster.get(kind, name)
    if found is None:
        raise BadInputError(
            f"{argument} {name}: no {kind.name} of that name exists in the namespace {cluster.namespace}; {_there(cluster, kind)}"
        )
    return found


def find_any(cluster: ApiServer, written: str, argument: str, kinds: Sequence[Kind] = RESOURCES) -> tuple[Kind, Json]:
    """Returns the resource that an argument names as `KIND/NAME`, with the kind's name, plural or short name. `kinds` are those that the
    command is for; another one is found, too.
    """
    word, slash, name = written.partition("/")
    kind = resource_kind(word)
    if not slash or not name:
        example = f"{kind.name}/NAME" if kind is not None else f"{kinds[0].name}/{word or 'NAME'}"
        raise BadInputError(f"{argument} {written}: name a resource as KIND/NAME, e.g. {example}")
    if kind is None:
        known = ", ".join(f"{each.name} ({each.short})" for each in RESOURCES)
        raise BadInputError(f"{argument} {written}: there is no kind {word}; there are {known}")
    return kind, find(cluster, kind, name, argument)


def listed(names: Sequence[str]) -> str:
    """Returns names as text, shortened if there are many."""
    shown = ", ".join(names[:MOST_NAMES])
    return f"{shown} and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else shown


def _there(cluster: ApiServer, kind: Kind) -> str:
    names = [str(item["metadata"]["name"]) for item in cluster.list(kind)]
    return f"there is {listed(names)}" if len(names) == 1 else f"there are {listed(names)}" if names else "there is none at all"
