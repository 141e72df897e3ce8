"""The examples for Flux are what Flux's own definitions accept, field by field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from herdkeeper_e2e.flux import definitions

REPOSITORY = Path(__file__).resolve().parents[3]
EXAMPLES = sorted((REPOSITORY / "examples/gitops/flux").glob("*.yaml"))
DOCUMENTS = [document for path in EXAMPLES for document in yaml.safe_load_all(path.read_text())]
DEFINED_BY = {"Kustomization": "kustomize-controller", "GitRepository": "source-controller", "HelmRelease": "helm-controller"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}


@cache
def schema_of(kind: str, version: str) -> dict[str, Any]:
    documents = map(yaml.safe_load, (path.read_text() for path in definitions(DEFINED_BY[kind]).glob("*.yaml")))
    (versions,) = [each["spec"]["versions"] for each in documents if each["spec"]["names"]["kind"] == kind]
    (schema,) = [each["schema"]["openAPIV3Schema"] for each in versions if each["name"] == version and each["served"]]
    return dict(schema)


def faults(value: Any, schema: dict[str, Any], path: str) -> Iterator[str]:
    """What a strict API server refuses: another type, an unknown or missing field, a value that is not permitted."""
    expected = TYPES.get(schema.get("type", ""))
    if expected is not None and not isinstance(value, expected):
        yield f"{path} is no {schema['type']}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path} is {value}, not one of {schema['enum']}"
    if "pattern" in schema and not re.search(schema["pattern"], str(value)):
        yield f"{path} is {value}"
    if isinstance(value, dict) and "properties" in schema:
        yield from (f"{path}.{name} is missing" for name in schema.get("required", ()) if name not in value)
        for name, part in value.items():
            if name in schema["properties"]:
                yield from faults(part, schema["properties"][name], f"{path}.{name}")
            else:
                yield f"{path}.{name} is unknown"
    if isinstance(value, list):
        for number, part in enumerate(value):
            yield from faults(part, schema.get("items", {}), f"{path}[{number}]")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: f"{document['kind']} {document['metadata']['name']}")
def test_flux_accepts_what_the_example_says(document: dict[str, Any]):
    schema = schema_of(document["kind"], document["apiVersion"].partition("/")[2])
    assert list(faults(document["spec"], schema["properties"]["spec"], "spec")) == []


def test_a_field_that_flux_does_not_know_is_found():
    document = next(document for document in DOCUMENTS if document["kind"] == "Kustomization")
    spec = schema_of("Kustomization", "v1")["properties"]["spec"]
    wrong = {**document["spec"], "waitt": True, "prune": "yes"}
    assert set(faults(wrong, spec, "spec")) == {"spec.waitt is unknown", "spec.prune is no boolean"}


def test_what_an_example_refers_to_is_in_the_examples_and_each_waits_for_its_resources():
    there = {(document["kind"], document["metadata"]["name"]) for document in DOCUMENTS}
    for document in DOCUMENTS:
        if document["kind"] == "Kustomization":
            spec = document["spec"]
            needs = {("Kustomization", each["name"]) for each in spec.get("dependsOn", ())} | {("GitRepository", spec["sourceRef"]["name"])}
            assert needs <= there
            assert spec.get("wait") or spec.get("healthChecks")
        if document["kind"] == "HelmRelease":
            source = document["spec"]["chart"]["spec"]["sourceRef"]
            assert (source["kind"], source["name"]) in there
