"""The settings of the Helm chart with what its values.yaml says of each: the comment above a key is its description."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

_KEY = re.compile(r"^(?P<indent> *)(?P<name>[A-Za-z]+):")
BEGIN, END = "<!-- settings: written by `make generate` from values.yaml -->", "<!-- end of settings -->"


class UndescribedSettingError(ValueError):
    """A setting without a comment; the message names it."""


@dataclass(frozen=True)
class Setting:
    """One that a person sets: its path (`images.registry`), its default as YAML in one line, and what its comment says."""

    path: str
    default: str
    description: str


def settings(values: str) -> tuple[Setting, ...]:
    """Those of a values.yaml, in its order. A key below which a comment stands is a group; it has settings, and is none itself.

    Raises:
        UndescribedSettingError: a setting has no comment, and neither has what it stands in.
    """
    comments = dict(_comments(values))
    return tuple(_settings(yaml.safe_load(values), comments, ""))


def _settings(values: Mapping[str, Any], comments: Mapping[str, str], above: str) -> Iterator[Setting]:
    for name, value in values.items():
        path = f"{above}{name}"
        if isinstance(value, dict) and any(other.startswith(f"{path}.") for other in comments):
            yield from _settings(value, comments, f"{path}.")
        elif path not in comments:
            raise UndescribedSettingError(f"{path} has no comment in values.yaml: say above it what it is for")
        else:
            yield Setting(path, json.dumps(value), comments[path])


def _comments(values: str) -> Iterator[tuple[str, str]]:
    """Path -> text of the comment that stands directly above each key that has one."""
    way: list[str] = []
    said: list[str] = []
    for line in values.splitlines():
        found = _KEY.match(line)
        if line.lstrip().startswith("#"):
            said.append(line.lstrip().removeprefix("#").strip())
        elif found is None:
            said = []
        else:
            way = [*way[: len(found["indent"]) // 2], found["name"]]
            if said:
                yield ".".join(way), " ".join(said)
            said = []


def table(found: tuple[Setting, ...]) -> str:
    """The settings as a table in Markdown."""
    rows = (f"| `{setting.path}` | `{setting.default}` | {_cell(setting.description)} |" for setting in found)
    return "\n".join(["| Setting | Default | What it is |", "|---|---|---|", *rows])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def with_table(page: str, values: str) -> str:
    """The page with the settings of `values` between its two marks. ValueError when it has no such marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the chart's README.md lacks a mark: put {BEGIN} and {END} around its settings")
    return f"{before}{BEGIN}\n{table(settings(values))}\n{END}{after}"


def spec_of(kind: str, example: str) -> str:
    """The spec of the only document of a kind in an example, as it is written, comments and all."""
    (found,) = [part for part in re.split(r"^---$", example, flags=re.MULTILINE) if re.search(rf"^kind: {kind}$", part, re.MULTILINE)]
    _, _, spec = found.partition("\nspec:\n")
    return spec
