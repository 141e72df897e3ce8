"""What a resource says and must not say. Only what the CRD can't refuse, or did not: other patterns and CEL rules are not repeated here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import get_args, get_type_hints

from pydantic import ValidationError

from herdkeeper.api.network import NetworkPeer
from herdkeeper.api.resource import (
    LABEL_NAME,
    LONGEST_DOMAIN,
    MAY_HOLD_A_SECRET,
    NAME_FIX,
    OBJECT_NAME,
    OBJECT_NAME_FIX,
    Model,
    ObjectName,
)
from herdkeeper.api.schedule import FIVE_FIELDS, Times
from herdkeeper.shared import owned_config
from herdkeeper.shared.owned_config import OwnedKeys
from herdkeeper.shared.timetable import Timetable, TimetableError


@dataclass(frozen=True)
class Refusal:
    """An invalid value in a resource.

    `path` is the field as a user writes it (`spec.ledgers.writeQuorum`), `value` the value found, `problem` why it is invalid, `fix` what
    to write instead.
    """

    path: str
    value: str
    problem: str
    fix: str

    @property
    def sentence(self) -> str:
        """Returns the refusal as one sentence for a condition, an event or a log line."""
        return f"{self.path} is {self.value}: {self.problem}; {self.fix}"


def unreadable_refusals(error: ValidationError) -> tuple[Refusal, ...]:
    """Returns one refusal for each field that the model could not read. Such a resource was stored under older rules, or bypassed them."""
    return tuple(
        Refusal(
            path=".".join(str(part) for part in problem["loc"]),
            value=_shown(problem["loc"], problem["input"]),
            problem=problem["msg"],
            fix="correct it, see the field in docs/reference.md",
        )
        for problem in error.errors()
    )


def _shown(path: tuple[int | str, ...], value: object) -> str:
    if path[-1] in MAY_HOLD_A_SECRET or path[:2] == ("spec", "config"):
        return "set"
    return "an object" if isinstance(value, Mapping) else repr(value)


def name_refusals(part: object, path: str = "spec") -> Iterator[Refusal]:
    """Refuses each name of an object in a spec, or a part of it, that no object can have: an earlier version's schema let it in."""
    if isinstance(part, tuple):
        for index, each in enumerate(part):
            yield from name_refusals(each, f"{path}[{index}]")
    elif isinstance(part, Model):
        for name, field in type(part).model_fields.items():
            value, there = getattr(part, name), f"{path}.{field.alias}"
            if name not in _object_names(type(part)):
                yield from name_refusals(value, there)
            elif value is not None and not re.fullmatch(OBJECT_NAME, value):
                yield Refusal(there, repr(value), "no object can have this name", OBJECT_NAME_FIX)


@cache
def _object_names(model: type[Model]) -> frozenset[str]:
    types = get_type_hints(model, include_extras=True)
    return frozenset(name for name in model.model_fields if ObjectName in (types[name], *get_args(types[name])))


def timetable_refusals(timing: Times, path: str) -> Iterator[Refusal]:
    try:
        Timetable.of(timing.schedule, timing.time_zone)
    except TimetableError as error:
        if error.field == "timeZone":
            yield unknown_time_zone(f"{path}.timeZone", timing.time_zone)
        else:
            yield Refusal(f"{path}.schedule", repr(timing.schedule), str(error), f"write {FIVE_FIELDS}")


def unknown_time_zone(path: str, name: str) -> Refusal:
    return Refusal(path, repr(name), "this time zone does not exist", "use a name of the IANA database, e.g. UTC or Europe/Vienna")


def peer_refusals(peers: Sequence[NetworkPeer] | None, path: str) -> Iterator[Refusal]:
    for index, peer in enumerate(peers or ()):
        for field, labels in (("podLabels", peer.pod_labels), ("namespaceLabels", peer.namespace_labels or {})):
            yield from (
                Refusal(
                    f"{path}[{index}].{field}[{key!r}]",
                    repr(value),
                    "this is not a valid label name in Kubernetes",
                    NAME_FIX,
                )
                for key, value in sorted(labels.items())
                if not re.fullmatch(LABEL_NAME, key) or len(key.partition("/")[0]) > LONGEST_DOMAIN
            )


def config_refusals(config: Mapping[str, str], owned: OwnedKeys, prefixes: tuple[str, ...] = ()) -> Iterator[Refusal]:
    """Without the values, which may be passwords: conditions, events and logs tell of a refusal."""
    for key, value in sorted(config.items()):
        owner = owned_config.owner_of(key, owned, prefixes)
        if owner is not None:
            fix = "remove it" if owner == "the operator" else f"set {owner} instead"
            yield Refusal(f"spec.config[{key}]", "set", f"{owner} sets this key", fix)
        elif re.search(r"[\r\n\\]|[$][{]", value) or not re.fullmatch(r"[A-Za-z0-9._-]+", key):
            yield Refusal(
                f"spec.config[{key!r}]",
                "set",
                # A backslash joins lines, or hides what follows. For ${file:…} BookKeeper reads a file, such as a key or a token, and its
                # log tells what is in it.
                "it is not a plain line of the file",
                "write one key of letters, digits, `.`, `_`, `-` and one value, without line breaks, backslashes and `${`",
            )
