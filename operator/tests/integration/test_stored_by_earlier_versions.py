"""What clusters hold of earlier versions, under today's CRDs on a real API server (`herdkeeper_e2e.stored_resources`): nothing is dropped
but the fields that were removed, and the operator may write the status.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client

from herdkeeper_e2e.control_plane import REPOSITORY, apply_crds, make_namespace, running
from herdkeeper_e2e.stored_resources import read_today, stored_resources, with_names

CRDS = REPOSITORY / "crds"
CANARY = "ofNoVersion"
Json = dict[str, Any]


def without_schema(folder: Path) -> Path:
    """The CRDs as they would be if they had any field: what is stored by them is what another version stored."""
    folder.mkdir()
    for path in CRDS.glob("*.yaml"):
        crd = yaml.load(path.read_text(), yaml.CSafeLoader)
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        (folder / path.name).write_text(yaml.dump(crd))
    return folder


def in_namespaces() -> list[tuple[str, str, Json]]:
    """All, each with a namespace of its version, and once more with names that no object can have: 0.1.0 let them in."""
    found = [(version, f"of-{version.replace('.', '-')}", document) for version, document in stored_resources()]
    return found + [
        (version, f"misnamed-{namespace}", with_names(document, "../../x/secrets/s")[0]) for version, namespace, document in found
    ]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Json, Json, Json]]:
    """Of each stored resource: what today's API server should read, what it reads, and what it holds once its status is written again."""
    folder = tmp_path_factory.mktemp("stored")
    with running(folder) as plane:
        apply_crds(plane, without_schema(folder / "crds"))
        dynamic = plane.dynamic_client()
        kinds = {document["kind"] for _, _, document in in_namespaces()}
        of = {kind: dynamic.resources.get(api_version="herdkeeper.io/v1alpha1", kind=kind) for kind in kinds}
        for namespace in sorted({namespace for _, namespace, _ in in_namespaces()}):
            make_namespace(plane, namespace)
        for _, namespace, document in in_namespaces():
            name, resource = document["metadata"]["name"], of[document["kind"]]
            body = {**document, "metadata": {"name": name}, "spec": {**document["spec"], CANARY: True}}
            made = resource.create(body=body, namespace=namespace).to_dict()
            resource.status.replace(body={**made, "status": document["status"]}, name=name, namespace=namespace)
        with plane.api_client() as api:
            extensions = client.ApiextensionsV1Api(api)
            for path in CRDS.glob("*.yaml"):
                crd = yaml.load(path.read_text(), yaml.CSafeLoader)
                extensions.patch_custom_resource_definition(crd["metadata"]["name"], {"spec": crd["spec"]})
        found = []
        for version, namespace, document in in_namespaces():
            name, resource = document["metadata"]["name"], of[document["kind"]]
            read = served(resource, name, namespace)
            changed = {**read, "status": {**read["status"], "message": "written today"}}
            written = resource.status.replace(body=changed, name=name, namespace=namespace).to_dict()
            found.append((read_today(version, document), read, written))
        return found


def served(resource: Any, name: str, namespace: str) -> Json:
    """A resource, once the API server reads it by today's schema."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        found: Json = resource.get(name=name, namespace=namespace).to_dict()
        if CANARY not in found["spec"]:
            return found
        time.sleep(0.05)  # between polls of the condition
    raise AssertionError(f"the schema of {name} is not in force")


def test_nothing_that_an_earlier_version_stored_is_dropped(pairs: list[tuple[Json, Json, Json]]) -> None:
    for expected, read, _ in pairs:
        assert (read["spec"], read["status"]) == (expected["spec"], expected["status"])


def test_the_status_of_what_an_earlier_version_stored_can_be_written(pairs: list[tuple[Json, Json, Json]]) -> None:
    for expected, _, written in pairs:
        assert (written["spec"], written["status"]) == (expected["spec"], {**expected["status"], "message": "written today"})
