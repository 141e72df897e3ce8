"""Files that users name: their text, and the resources in it."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from herdkeeper.plugin.command import BadInputError
from herdkeeper.plugin.kinds import OURS, Kind, resource_kind
from herdkeeper.shared.objects import Json

if TYPE_CHECKING:
    import yaml


def read(filename: str) -> str:
    """Returns a file's text, or standard input for `-`."""
    try:
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(encoding="utf-8", newline="")  # as a file: a carriage return in a text of SQL is part of it
        text = sys.stdin.read() if filename == "-" else Path(filename).read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise BadInputError(f"--filename {filename}: it can't be read ({why})") from error
    return text.removeprefix("\ufeff")  # the mark that editors of Windows put first


def resources_of(text: str, filename: str) -> Iterator[tuple[Kind, Json]]:
    """Yields the resources of herdkeeper.io in a file, also those in a list. Raises BadInputError if it is not YAML, or has none."""
    import yaml

    try:
        documents = [item for document in yaml.load_all(text, _loader()) for item in _in_list(document) if isinstance(item, dict)]
    except yaml.YAMLError as error:
        raise BadInputError(f"--filename {filename}: it is not YAML ({str(error).splitlines()[0]})") from error
    found = [(kind, item) for item in documents if _is_ours(item) and (kind := resource_kind(str(item.get("kind")))) is not None]
    if not found:
        raise BadInputError(f"--filename {filename}: it has no resource of herdkeeper.io; name a file with one")
    for kind, item in found:
        if item.get("apiVersion", OURS) != OURS:
            raise BadInputError(
                f"--filename {filename}: a {kind.name} has the apiVersion {item['apiVersion']}, which is not known here; write {OURS}"
            )
        for part in ("metadata", "spec"):
            if not isinstance(item.get(part) or {}, dict):
                raise BadInputError(f"--filename {filename}: {part} of a {kind.name} is no mapping; give it fields")
        if not (item.get("metadata") or {}).get("name"):
            raise BadInputError(f"--filename {filename}: a {kind.name} has no metadata.name; name it")
        yield kind, item


def _loader() -> type[yaml.SafeLoader]:
    """Reads times as texts, as kubectl does: `2026-11-21T14:30:00Z`, and `22:00`, which is 1320 in YAML 1.1."""
    import yaml

    class Loader(yaml.SafeLoader):
        pass

    def number(loader: Loader, node: yaml.ScalarNode) -> object:
        text = loader.construct_scalar(node)
        whole = node.tag.endswith(":int")
        return text if ":" in text else loader.construct_yaml_int(node) if whole else loader.construct_yaml_float(node)

    known = yaml.SafeLoader.yaml_implicit_resolvers.items()
    Loader.yaml_implicit_resolvers = {first: [each for each in found if not each[0].endswith(":timestamp")] for first, found in known}
    for kind in ("int", "float"):
        Loader.add_constructor(f"tag:yaml.org,2002:{kind}", number)
    return Loader


def _in_list(document: Any) -> Iterable[Any]:
    items = document.get("items") if isinstance(document, dict) and str(document.get("kind")).endswith("List") else None
    return items if isinstance(items, list) else (document,)


def _is_ours(item: Json) -> bool:
    """Whether it is of this group: others have kinds of these names, too."""
    return str(item.get("apiVersion", OURS)).partition("/")[0] == OURS.partition("/")[0]
