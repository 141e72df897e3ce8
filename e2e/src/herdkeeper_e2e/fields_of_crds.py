"""The leaf fields of every kind's spec, from the CRDs, and another valid value for each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from herdkeeper_e2e.control_plane import REPOSITORY

Json = dict[str, Any]
LAST_LSN = f"{7:020d}-{9:020d}"
PLACES = ("persistentVolumeClaim", "objectStore")
ONE_OF = (PLACES, ("credentialsSecretRef", "serviceAccountName"), ("lsn", "timestamp", "latest"), ("checkpoint", "files"))
"""Siblings of which a resource may have one."""
BESIDE: dict[str, Json] = {"storageAccount": {"uri": "az://other-container/prefix"}}
"""What must be beside a field, which the schema does not tell."""
NEW_ITEMS: dict[str, Json] = {
    "tolerations": {"key": "dedicated", "effect": "NoExecute"},
    "topologySpreadConstraints": {"topologyKey": "kubernetes.io/hostname", "maxSkew": 2, "whenUnsatisfiable": "ScheduleAnyway"},
    "ledgerRanges": {"first": 3, "last": 9},
}
"""An item of a list that is empty so far, without which its other fields mean nothing."""

CHOSEN: dict[str, Any] = {
    r"ZooKeeperCluster config": {"snapCount": "50000"},
    r"BookKeeperCluster config": {"numAddWorkerThreads": "4"},
    r"HerdDBCluster config": {"server.checkpoint.period": "1200000"},
    r"ZooKeeperCluster replicas": 5,
    r"ZooKeeperCluster security\.mode": "TLS",
    r"BookKeeperCluster bookies": 3,
    r"BookKeeperCluster drain": [3],
    r"HerdDBCluster ledgers\.(write|ack)Quorum": 1,
    r"Tablespace replicas": 1,
    r"Tablespace preferredLeader": "db-herddb-1",
    r".*(labels|annotations|nodeSelector|podLabels|namespaceLabels)": {"example.com/other": "yes"},
    r".*image": "example.com/other:9",
    r".*resources\.requests": {"ephemeral-storage": "100Mi"},
    r".*limits": {"cpu": "4"},
    r"ScheduledReplicationAudit schedule": "30 2 * * 0",
    r".*schedule": "30 2 * * *",
    r".*timeZone": "Europe/Vienna",
    r".*zooKeeperAddress": "elsewhere.example.com:2181",
    r".*\buri": "s3://other-bucket/prefix",
    r".*\bendpoint": "https://other.example.com:9000",
    r".*timestamp": "2026-01-01T12:00:00Z",
    r".*\bmanifest": f"an-instance/other-uuid/manifests/{LAST_LSN}.json",
    r".*archive\.folder": "an-instance/other-uuid",
    r".*window\.from": "01:00",
    r".*window\.to": "06:00",
    r".*(keepWithin|fullEvery)": "3d",
    r".*ledgers": [8],
    r".*filter\.states": ["Open"],
    r".*filter\.bookies": ["other-bookie"],
    r".*ledgerRanges\[\]\.first": 5,
}
"""Values that no schema tells, by kind and path."""


@dataclass(frozen=True)
class Leaf:
    """A field of a kind's spec that has no fields itself. `path` has `[]` behind lists."""

    kind: str
    path: str

    def __str__(self) -> str:
        return f"{self.kind} {self.path}"

    def changed(self, spec: Json) -> Json:
        """The spec with another value there, and with what the schema wants beside it."""
        return _changed(spec, SCHEMAS[self.kind], self.path, str(self))

    def value(self, spec: Json) -> Any:
        """What a spec has there, None when nothing."""
        found: Any = spec
        for part in self.path.split("."):
            found = found.get(part.removesuffix("[]")) if found is not None else None
            found = found[0] if part.endswith("[]") and found else found
        return found


def _schemas() -> Iterator[tuple[str, Json]]:
    for file in sorted((REPOSITORY / "crds").glob("*.yaml")):
        crd = yaml.safe_load(file.read_text())["spec"]
        yield crd["names"]["kind"], crd["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


SCHEMAS = dict(_schemas())


def leaves(kind: str) -> list[Leaf]:
    """All of a kind."""
    return [Leaf(kind, path) for path in _paths(SCHEMAS[kind])]


def _paths(schema: Json) -> Iterator[str]:
    for name, below in schema["properties"].items():
        is_list = below.get("type") == "array"
        inner = below["items"] if is_list else below
        if "properties" in inner:
            yield from (f"{name}{'[]' if is_list else ''}.{rest}" for rest in _paths(inner))
        else:
            yield name


def _changed(spec: Json, schema: Json, path: str, whole: str) -> Json:
    head, _, rest = path.partition(".")
    name = head.removesuffix("[]")
    below, present = schema["properties"][name], spec.get(name)
    if head.endswith("[]"):
        first, *more = present or [NEW_ITEMS.get(name, {})]
        value: Any = [_changed(first, below["items"], rest, whole), *more]
    else:
        value = _changed(present or {}, below, rest, whole) if rest else other_value(whole, below, present)
    excluded = {sibling for group in ONE_OF if name in group for sibling in group} - {name}
    kept = {key: entry for key, entry in spec.items() if key not in excluded}
    return _completed({**kept, **BESIDE.get(name, {}), name: value}, schema, whole)


def _completed(spec: Json, schema: Json, whole: str) -> Json:
    """With another value for each field that is required and absent."""
    missing = [name for name in schema.get("required", ()) if name not in spec]
    if {"credentialsSecretRef", "serviceAccountName"} <= schema["properties"].keys() - spec.keys():
        missing.append("credentialsSecretRef")
    return spec | {name: _made(schema["properties"][name], f"{whole.split(maxsplit=1)[0]} {name}") for name in missing}


def _made(schema: Json, whole: str) -> Any:
    if "properties" not in schema:
        return other_value(whole, schema, None)
    found = _completed({}, schema, whole)
    if PLACES[0] in schema["properties"]:
        found[PLACES[0]] = {"claimName": "other"}
    return found


def other_value(whole: str, schema: Json, present: Any) -> Any:
    """A valid value other than the present one (or the default) of the field that `whole` names by kind and path."""
    present = schema.get("default") if present is None else present
    for pattern, chosen in CHOSEN.items():
        if re.fullmatch(pattern, whole):
            assert chosen != present, f"{whole} is {present} already"
            return chosen
    match schema:
        case {"enum": choices}:
            return next((choice for choice in choices if choice != present), choices[0])
        case {"type": "boolean"}:
            return not present
        case {"type": "integer"}:
            return _other_number(schema, present)
        case {"type": "string"}:
            return _other_text("".join(each["rule"] for each in schema.get("x-kubernetes-validations", ())), present)
    raise AssertionError(f"no value is known for {whole}: {schema}")


def _other_number(schema: Json, present: int | None) -> int:
    if present is None:
        return int(schema["minimum"])
    return present + 1 if present < schema.get("maximum", 2**31) else present - 1


def _other_text(rule: str, present: str | None) -> str:
    if "Ki|Mi" in rule:
        return "2Gi" if present is None else f"{2 * int(present[:-2])}{present[-2:]}"
    if "^[0-9]+m?$" in rule:
        return "700m" if present != "700m" else "800m"
    return "other"
