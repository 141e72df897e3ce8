"""Resources as the API server of a version stored them, and what later versions took from their fields, or added.

`operator/tests/unit/data/stored/VERSION/KIND.yaml` was read from a real API server with that version's CRDs. Together they have every
field. Never change one whose version is released: it stands for what clusters hold. A new field goes into a resource in the folder of the
version that brings it.
"""

from __future__ import annotations

from typing import Any

import yaml

from herdkeeper.api import KINDS
from herdkeeper.schema.crd import Schema, resource_schema
from herdkeeper_e2e.control_plane import REPOSITORY

Json = dict[str, Any]
FOLDER = REPOSITORY / "operator/tests/unit/data/stored"

REMOVED = {
    "0.1.0": {
        "Checkpoint": ("spec.at", "spec.destination.fileSystem"),
        "ScheduledCheckpoint": ("spec.concurrency", "spec.template.destination.fileSystem"),
        "ScheduledReplicationAudit": ("spec.concurrency",),
        "Tablespace": (
            "spec.bootstrap.archive.fileSystem",
            "spec.bootstrap.files.fileSystem",
            "spec.log.archive.destination.fileSystem",
            "status.archive.fileSystem",
            "status.restore.fileSystem",
        ),
    },
}
"""By version and kind, each field that was removed since. CHANGELOG.md says of each what to do before the upgrade."""

NETWORK_POLICY = {"networkPolicy": "Enabled"}
ADDED: dict[str, dict[str, Json]] = {
    "0.1.0": {
        "ZooKeeperCluster": {**NETWORK_POLICY, "security": {"mode": "TLS"}},
        "BookKeeperCluster": NETWORK_POLICY,
        "HerdDBCluster": NETWORK_POLICY,
        "Tablespace": {
            "log": {"releaseOnOneDisk": False},
            "fullCheck": {"suspend": False, "timeZone": "UTC", "maxWritesStoppedMilliseconds": 200},
        },
        "Checkpoint": {"fullEvery": "7d"},
        "ScheduledCheckpoint": {"template": {"fullEvery": "7d"}},
    },
}
"""By version and kind, the defaults of fields that the version did not have: the API server adds them to each spec that it reads."""


def stored_resources() -> list[tuple[str, Json]]:
    """All, with their version."""
    files = sorted(FOLDER.glob("*/*.yaml"))
    return [(file.parent.name, document) for file in files for document in yaml.load_all(file.read_text(), yaml.CSafeLoader)]


def read_today(version: str, document: Json) -> Json:
    """What today's API server reads of a stored resource."""
    kind = document["kind"]
    found = {**document, "spec": _completed(document["spec"], ADDED.get(version, {}).get(kind, {}))}
    for path in REMOVED.get(version, {}).get(kind, ()):
        found = _without(found, path.split("."))
    return found


def with_names(document: Json, name: str) -> tuple[Json, set[str]]:
    """A stored resource in whose spec each name of an object is this one, and where those are, by the rules of today's definition."""
    (schema,) = (resource_schema(kind)["properties"]["spec"] for kind in KINDS if document["kind"] == kind.KIND)
    places: set[str] = set()
    return {**document, "spec": _renamed(document["spec"], schema, "spec", name, places)}, places


def _renamed(value: Any, schema: Schema, path: str, name: str, places: set[str]) -> Any:
    if isinstance(value, dict):
        fields = schema.get("properties", {})
        return {key: _renamed(part, fields.get(key, {}), f"{path}.{key}", name, places) for key, part in value.items()}
    if isinstance(value, list):
        return [_renamed(part, schema["items"], f"{path}[{index}]", name, places) for index, part in enumerate(value)]
    if any("no name of an object" in rule["message"] for rule in schema.get("x-kubernetes-validations", ())):
        places.add(path)
        return name
    return value


def paths(value: Any) -> set[str]:
    """The paths of all fields in a value, with `[]` behind lists."""
    if isinstance(value, dict):
        return _below({name: paths(part) for name, part in value.items()})
    return {f"[].{path}" for part in value for path in paths(part)} if isinstance(value, list) else set()


def paths_of_schema(schema: Json) -> set[str]:
    """The paths of all fields that a schema has. Keys that users name are none."""
    if "items" in schema:
        return {f"[].{path}" for path in paths_of_schema(schema["items"])}
    return _below({name: paths_of_schema(part) for name, part in schema.get("properties", {}).items()})


def _below(fields: dict[str, set[str]]) -> set[str]:
    deeper = {f"{name}{path}" if path.startswith("[]") else f"{name}.{path}" for name, found in fields.items() for path in found}
    return fields.keys() | deeper


def _completed(value: Any, defaults: Any) -> Any:
    """With the defaults of what is absent."""
    if isinstance(value, dict) and isinstance(defaults, dict):
        return {**defaults, **{name: _completed(part, defaults.get(name)) for name, part in value.items()}}
    return value


def _without(value: Json, path: list[str]) -> Json:
    """Without the field at a path, if it is there."""
    name, *below = path
    if name not in value:
        return value
    rest = {key: part for key, part in value.items() if key != name}
    return {**rest, name: _without(value[name], below)} if below else rest
